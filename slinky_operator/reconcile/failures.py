"""What an object shows of a pass that has failed: a condition and an Event, for both controllers.

An error that only the log knows is no help to whoever owns the object. So the last error of a pass that fails reaches
it: Ready is False, Degraded is True, with a reason, the words of whoever refused, and what to do. The next pass that
ends well takes that back, since it writes the conditions by itself.

- What goes by itself (a conflict, a limit on requests, an API server or a Slurm that is away) is told only when it has
  lasted for `PATIENCE`. A write that was fenced is never told: somebody else may lead by now.
- What nobody expects is a mistake of the operator's. Its own words stay in the log, since nobody knows what is in them.
- The same failure is written once, and one that changes with each try every `REWRITE` at most: each write of a status
  wakes the controller, which must not keep itself awake.
- What keeps this from being written is logged, and never takes the place of the failure itself.

When a pass is tried again, and how it is logged, is left to `runtime.controller`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from pydantic import ValidationError

from slinky_api import labels
from slinky_api.conditions import ClusterCondition, Reason, merge
from slinky_api.errors import SpecError
from slinky_api.v1alpha1.common import Condition
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, Resource
from slinky_operator.runtime.logging import redact
from slurm_client.errors import SlurmError

PATIENCE: Final = 60.0
"""Seconds for which what goes by itself may fail before it is told."""

REWRITE: Final = 30.0
"""Seconds between two different failures that one object shows."""

_SUMMARY: Final[Mapping[Reason, str]] = {
    Reason.FORBIDDEN: "operator lacks a right",
    Reason.REQUEST_REFUSED: "refused by the API server",
    Reason.API_UNAVAILABLE: "API server does not answer",
    Reason.RECONCILE_ERROR: "operator tries again",
    Reason.INVALID_SPEC: "spec invalid",
    Reason.INTERNAL_ERROR: "error in the operator",
}
"""The status text of a Cluster whose passes fail."""

LONGEST: Final = 500
"""Characters of one error."""

LONGEST_SUMMARY: Final = 120
"""Characters of a NodeSet's status text."""

MOST: Final = 3
"""Errors told at once; work done side by side fails side by side."""

_ADVICE: Final[Mapping[Reason, str]] = {
    Reason.FORBIDDEN: (
        "Rights that the operator lacks come back with its Helm chart (helm upgrade); "
        "a quota or an admission policy is for its owner to change"
    ),
    Reason.REQUEST_REFUSED: "The API server does not take this as it stands: change what it names",
    Reason.API_UNAVAILABLE: "It goes on when the API server, or the webhook that is named, answers again",
}

_ORDER: Final = (
    Reason.INVALID_SPEC,
    Reason.FORBIDDEN,
    Reason.REQUEST_REFUSED,
    Reason.INTERNAL_ERROR,
    Reason.RECONCILE_ERROR,
    Reason.API_UNAVAILABLE,
)
"""Which of several errors gives the reason: what somebody must do something about comes first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is told of a pass that has failed."""

    reason: Reason
    message: str
    words: tuple[str, ...] = ()
    """The refusals themselves, to find out whether they are told already."""


class StatusPatcher(Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, *, uid: str | None = None
    ) -> Object:
        """Merge into the status of an object."""
        ...


class Recorder(Protocol):
    """What is used of `kube.events.Recorder`."""

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Tell in an Event that something needs a look."""
        ...


@dataclass(slots=True)
class _Row:
    """Failures in a row of one object."""

    since: float
    told: Failure | None = None
    told_at: float = float("-inf")
    shown: bool = False
    """Whether its status has it."""
    handled: BaseException | None = None
    """What the pass itself has written into the status, until whoever ran the pass comes with it."""


class Failures:
    """Of the objects of one kind, those whose passes fail.

    Parameters
    ----------
    resource
        The kind.
    kube, recorder
        What is told is written with these.
    clock, now
        Seconds that are never set back, and the wall clock.
    """

    def __init__(
        self,
        resource: Resource,
        kube: StatusPatcher,
        recorder: Recorder,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._resource = resource
        self._kube = kube
        self._recorder = recorder
        self._clock = clock
        self._now = now
        self._rows: dict[str, _Row] = {}

    def note(self, obj: Object, error: BaseException, told: Iterable[str] = ()) -> Failure | None:
        """Note what a pass will end with, for a status that the pass writes by itself; tells it in an Event.

        Parameters
        ----------
        told
            What the status says anyway; what is in there is not told twice.

        Returns
        -------
        Failure or None
            What the status is to show; None if nothing is to be told, or not yet.
        """
        failure = self._noted(obj, error, tuple(told))
        row = self._rows[obj["metadata"]["uid"]]
        row.handled, row.shown = error, False
        return failure

    async def tell(self, obj: Object, error: BaseException) -> None:
        """Show on an object what a pass over it has ended with.

        Raises
        ------
        KubeError
            If it cannot be written.
        """
        metadata = obj["metadata"]
        known = self._rows.get(metadata["uid"])
        if known is not None and known.handled is error:
            known.handled = None
            return
        failure = self._noted(obj, error, ())
        row = self._rows[metadata["uid"]]
        if failure is None or row.shown:
            return
        patch = patch_of(self._resource, obj, failure, self._now())
        if patch:
            try:
                _ = await self._kube.patch_status(
                    self._resource, metadata["name"], patch, metadata.get("namespace"), uid=metadata["uid"]
                )
            except errors.NotFound:
                # Nobody is left to be told.
                self._rows.pop(metadata["uid"], None)
        row.shown = True

    def passed(self, uid: str) -> None:
        """Forget the failures of an object: a pass has ended well, or the object has gone."""
        self._rows.pop(uid, None)

    def _noted(self, obj: Object, error: BaseException, told: tuple[str, ...]) -> Failure | None:
        metadata, now = obj["metadata"], self._clock()
        row = self._rows.setdefault(metadata["uid"], _Row(now))
        where = f"{self._resource.kind} {metadata.get('namespace')}/{metadata['name']}"
        late = now - row.since >= PATIENCE
        failure = explained(error, where, late=late, told=told)
        if failure is not None and failure != row.told and now - row.told_at >= REWRITE:
            row.told, row.told_at, row.shown = failure, now, False
        if failure is not None and failure == row.told:
            self._recorder.warning(obj, str(failure.reason), failure.message)
        # Of what is shown nothing is taken back before a pass has ended well.
        return row.told


def explained(error: BaseException, where: str, *, late: bool = False, told: tuple[str, ...] = ()) -> Failure | None:
    """What to tell of an error; None if there is nothing to tell, or not yet.

    Parameters
    ----------
    where
        Kind, namespace and name of the object, as the log has it.
    late
        Whether what goes by itself has lasted for too long.
    told
        Texts in which an error may be told already.
    """
    found: dict[str, Reason] = {}
    words: dict[str, str] = {}
    for leaf in _leaves(error):
        if isinstance(leaf, errors.Fenced) or (_passes(leaf) and not late):
            continue
        raw = leaf.message if isinstance(leaf, errors.KubeError) else ""
        if raw and any(raw in text for text in told):
            continue
        reason, text = _one(leaf, where)
        found[text] = reason
        words[text] = raw[:LONGEST]
    if not found:
        return None
    texts = sorted(found, key=lambda text: (_ORDER.index(found[text]), text))
    reason = found[texts[0]]
    more = f"; and {len(texts) - MOST} more" if len(texts) > MOST else ""
    advice = _ADVICE.get(reason)
    message = "; ".join(texts[:MOST]) + more + (f". {advice}" if advice else "")
    return Failure(reason, message, tuple(words[text] for text in texts[:MOST] if words[text]))


def patch_of(resource: Resource, obj: Object, failure: Failure, now: datetime) -> dict[str, Any]:
    """The merge patch of the status that shows a failure; empty if the status has it already."""
    metadata = obj["metadata"]
    stored: Mapping[str, Any] = obj.get("status") or {}
    try:
        before = [Condition.model_validate(one) for one in stored.get("conditions") or ()]
    except ValidationError:
        before = []
    ready, degraded = str(ClusterCondition.READY), str(ClusterCondition.DEGRADED)
    cluster = resource is not NODESETS
    told: dict[str, Any] = {"reason": str(failure.reason), "message": failure.message}
    if cluster:
        told["observed_generation"] = metadata.get("generation")
    shown = [Condition(type=ready, status="False", **told), Condition(type=degraded, status="True", **told)]
    wanted = merge(before, [*(one for one in before if one.type not in {ready, degraded}), *shown], now)
    patch: dict[str, Any] = {}
    if [one.to_dict() for one in wanted] != [one.to_dict() for one in sorted(before, key=lambda one: one.type)]:
        patch["conditions"] = [one.to_dict() for one in wanted]
    if cluster and stored.get("isReady") is not False:
        patch["isReady"] = False
    # A NodeSet has room for the words; the column of a Cluster stands beside seven others.
    summary = _SUMMARY[failure.reason] if cluster else " ".join(failure.message.split())[:LONGEST_SUMMARY]
    if stored.get("summary") != summary:
        patch["summary"] = summary
    # Before a NodeSet is ours its generation is what another operator has left, and a takeover reads it.
    ours = cluster or labels.FINALIZER_NODESET_DRAIN in (metadata.get("finalizers") or ())
    if ours and stored.get("observedGeneration") != metadata.get("generation"):
        patch["observedGeneration"] = metadata.get("generation")
    return patch


def _passes(error: BaseException) -> bool:
    """Whether an error mostly goes by itself."""
    return bool(getattr(error, "expected", False)) or isinstance(error, errors.Unavailable | SlurmError)


def _one(error: BaseException, where: str) -> tuple[Reason, str]:
    match error:
        case SpecError():
            return Reason.INVALID_SPEC, _cut(str(error)) or type(error).__name__
        case errors.KubeError():
            return _refusal(error)
        case SlurmError():
            return Reason.RECONCILE_ERROR, _cut(f"Slurm: {error.message}")
        case TimeoutError():
            return Reason.RECONCILE_ERROR, "a pass did not end in time and was given up; it is tried again"
        case _:
            return Reason.INTERNAL_ERROR, (
                f"{type(error).__name__} in the operator, which is a mistake of the operator's; it tries again, and "
                f"its log has the details where it says {where}: trying again"
            )


def _refusal(error: errors.KubeError) -> tuple[Reason, str]:
    # What the API server says of a Secret that it refuses may have in it what the Secret has.
    secret = error.resource == "secrets" and isinstance(error, errors.Invalid | errors.BadRequest)
    text = _cut(f"{error.target}: {error.reason or error.status if secret else error.message}")
    match error:
        case errors.Forbidden():
            return Reason.FORBIDDEN, text
        case errors.Unavailable():
            return Reason.API_UNAVAILABLE, text
        case _ if error.expected:
            return Reason.RECONCILE_ERROR, text
        case _:
            return Reason.REQUEST_REFUSED, text


def _cut(text: str) -> str:
    text = redact(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
