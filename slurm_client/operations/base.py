"""What the operations have in common: the session they call, and how lists and single objects are asked for."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from slurm_client import errors
from slurm_client.connection.session import LAST_REQUEST
from slurm_client.models.listing import Listing
from slurm_client.operations.checking import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slurm_client.connection.answers import Answer, ListOf
    from slurm_client.connection.session import Session

__all__ = ["Listing", "Operations", "missing", "named"]

_WITHOUT_UPDATE_TIME = frozenset({"v0.0.40", "v0.0.41"})
"""Parsers that document ``update_time`` and refuse every value of it."""


class Operations:
    """
    Base of all classes of operations.

    What each public call is given is checked against its annotations, and each error says what it is about.
    """

    _session: Session

    @override
    def __init_subclass__(cls) -> None:
        """Wrap every public call."""
        super().__init_subclass__()
        for name, function in list(vars(cls).items()):
            if not name.startswith("_") and inspect.iscoroutinefunction(function):
                setattr(cls, name, _located(checked(function)))
            elif not name.startswith("_") and inspect.isasyncgenfunction(function):
                setattr(cls, name, checked(function))

    async def _list(
        self, operation: str, wanted: ListOf, *, update_time: int | None = None, **options: Any
    ) -> Listing[Any] | None:
        """
        Ask for a list; ``None`` if it has not changed since ``update_time``.

        Asked for changed nodes while the partitions are unchanged, releases before mid-2026 fail with status 500. So
        a failure of the server is an answer here: something has changed, ask for everything.
        """
        if update_time is not None and await self._session.negotiate(options.get("timeout")) in _WITHOUT_UPDATE_TIME:
            update_time = None
        options["query"] = {"update_time": update_time, **(options.get("query") or {})}
        try:
            answer = await self._session.call(operation, wanted=wanted, **options)
        except errors.ServerError:
            if update_time is None:
                raise
            options["query"]["update_time"] = None
            answer = await self._session.call(operation, wanted=wanted, **options)
        if answer.not_modified and options["query"]["update_time"] is not None:
            return None
        if answer.items is None:
            raise missing(wanted.key, answer, operation)
        return Listing(tuple(answer.items), answer.last_update, answer.warnings)

    async def _one(
        self, operation: str, wanted: ListOf, what: str, *, pick: Callable[[Iterable[Any]], Any], **options: Any
    ) -> Any:
        """
        Ask for one object by its name, and return the one that is picked; ``None`` is NotFound too.

        Servers say "no such object" in four ways: with the number for it, with error number 0, with number 9000, or
        with an empty list and a warning. All of them are NotFound.
        """
        try:
            answer = await self._session.call(operation, wanted=wanted, **options)
        except errors.NotFound:
            raise
        except (errors.ServerError, errors.InvalidRequest) as error:
            nothing_said = error.status == 200 and not error.number
            if nothing_said or error.number == 9000:
                raise errors.NotFound(
                    f"no {what}: {error.message}",
                    request=error.request,
                    status=error.status,
                    reports=error.reports,
                    warnings=error.warnings,
                ) from error
            raise
        if answer.items is None and not any(each.description.startswith("Unable to find") for each in answer.warnings):
            raise missing(wanted.key, answer, operation)
        found = pick(answer.items or ())
        if found is None:
            raise errors.NotFound(f"no {what}", status=answer.status, warnings=answer.warnings)
        return found


def _located(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call whose errors name the server and the request that they are about, unless it was not even tried."""

    @functools.wraps(function)
    async def call(self: Operations, *args: Any, **kwargs: Any) -> Any:
        LAST_REQUEST.set(None)
        try:
            return await function(self, *args, **kwargs)
        except errors.InvalidArgument:
            raise
        except errors.SlurmError as error:
            if error.request is None or not error.request.server:
                error.request = LAST_REQUEST.get() or self._session.about(function.__name__)
            raise

    return call


def named(name: str) -> Callable[[Iterable[Any]], Any]:
    """Return what picks the object of a name."""
    return lambda records: next((record for record in records if record.name == name), None)


def missing(key: str, answer: Answer, operation: str) -> errors.DecodeError:
    """Return the error for a good answer without what was asked for; it must not pass for an empty list."""
    return errors.DecodeError(
        f"the answer has no {key!r}",
        request=errors.Request("", operation),
        status=answer.status,
        warnings=answer.warnings,
    )
