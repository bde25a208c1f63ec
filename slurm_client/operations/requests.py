"""Any call of slurmrestd, also those that have no method here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import number
from slurm_client.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.errors import Report
    from slurm_client.operations.arguments import HttpMethod, UrlPath

__all__ = ["RawAnswer", "RequestOperations"]


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """
    An answer as slurmrestd wrote it.

    Parameters
    ----------
    status
        HTTP status: 200, or 304 if nothing has changed since the ``update_time`` of the query.
    body
        The JSON object; empty with 304.
    warnings
        Reports of the server that are no errors.
    """

    status: int
    body: Mapping[str, Any]
    warnings: tuple[Report, ...] = ()

    @property
    def not_modified(self) -> bool:
        """Whether the server says that nothing changed since the time it was given."""
        return self.status == 304

    @property
    def last_update(self) -> int | None:
        """Time to give as ``update_time`` next, in seconds since 1970; ``None`` if the server does not say."""
        return number(self.body.get("last_update"))


class RequestOperations(Operations):
    """Requests by method and path."""

    async def request(
        self,
        method: HttpMethod,
        path: UrlPath,
        *,
        query: Mapping[str, str | int | float | bool | None] | None = None,
        body: Mapping[str, Any] | None = None,
        repeatable: bool = False,
        timeout: float | None = None,
    ) -> RawAnswer:
        """
        Send a request to any path of the server and return its JSON object, with the errors of all other calls.

        It has the client's token, time limit, circuit and room for answers. What was sent is repeated only for a GET of
        a path that this library knows to change nothing, or with ``repeatable``. All else counts as a write, GETs of
        unknown paths included: slurmrestd requeues jobs by GET.

        Parameters
        ----------
        method
            ``GET``, ``POST`` or ``DELETE``.
        path
            Below the URL of the server, without a query, e.g. ``/slurm/{version}/node/w-0``: ``{version}`` is replaced
            by the data parser in use, any other is taken as it is written. Quote names with
            ``urllib.parse.quote(name, safe="")``.
        query
            Parameters of the query; Booleans are ``true`` and ``false``, and ``None`` is left out.
        body
            The JSON object to send.
        repeatable
            Say that the request may be carried out twice, e.g. because it sets a value. It is a write all the same.

        Raises
        ------
        DecodeError
            If the answer is no JSON object.
        NotSupported
            If the server has no such path.
        """
        answer = await self._session.request(
            method,
            path,
            query={name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
            if query is not None
            else None,
            body=body,
            repeatable=repeatable,
            timeout=timeout,
        )
        return RawAnswer(answer.status, answer.fields, answer.warnings)
