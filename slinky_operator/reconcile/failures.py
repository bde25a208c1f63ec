"""How an object shows a failed pass: a condition and an Event, for every controller.

An error that is only in the log does not help the owner of the object. So the object shows the last error of a failed
pass: Ready is False, Degraded is True, with a reason, the original message, and what to do. The next successful pass
clears it by writing the conditions.

- Transient errors (a conflict, a rate limit, an unreachable API server or Slurm) are reported only after they have
  lasted for `PATIENCE`. A fenced write is never reported: another process may lead by now.
- Unexpected errors are bugs of the operator. Their messages stay in the log, since they may contain anything.
- The same failure is written once, and one that changes with each retry at most every `REWRITE`: each write of a status
  triggers the controller, which must not keep triggering itself.
- If this cannot be written, that is logged, and never replaces the failure itself.

Retries and logging are left to `runtime.controller`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from slinky_api import labels
from slinky_api.conditions import ClusterCondition, Reason, merge
from slinky_api.errors import SpecError
from slinky_api.v1alpha1.common import Condition
from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import OverBudgetError
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher, Warner
from slinky_operator.kube.resources import CLUSTERS, NODESETS, Resource
from slinky_operator.runtime import threads
from slinky_operator.runtime.logging import redact
from slinky_operator.runtime.printable import printable, printable_lines
from slurm_client.errors import SlurmError

PATIENCE: Final = 60.0
"""Seconds for which a transient error may last before it is reported."""

REWRITE: Final = 30.0
"""Minimum seconds between two different failures that one object shows."""

_SUMMARY: Final[Mapping[Reason, str]] = {
    Reason.FORBIDDEN: "operator lacks a right",
    Reason.REQUEST_REFUSED: "refused by the API server",
    Reason.API_UNAVAILABLE: "API server does not answer",
    Reason.RECONCILE_ERROR: "operator retries",
    Reason.INVALID_SPEC: "spec invalid",
    Reason.INTERNAL_ERROR: "error in the operator",
    Reason.OVER_BUDGET: "namespace over budget",
}
"""The status text of a Cluster whose passes fail."""

LONGEST: Final = 500
"""Maximum characters of one error."""

LONGEST_SUMMARY: Final = 120
"""Maximum characters of the status text; a Cluster's is one of `_SUMMARY`."""

MOST: Final = 3
"""Maximum number of errors reported at once; concurrent work can fail with several."""

_ADVICE: Final[Mapping[Reason, str]] = {
    Reason.FORBIDDEN: (
        "If the operator lacks rights, its Helm chart restores them (helm upgrade); "
        "a quota or an admission policy must be changed by its owner"
    ),
    Reason.REQUEST_REFUSED: "The API server rejects this: change the field that it names",
    Reason.API_UNAVAILABLE: "The operator continues when the API server, or the webhook named above, answers again",
}

_ORDER: Final = (
    Reason.INVALID_SPEC,
    Reason.OVER_BUDGET,
    Reason.FORBIDDEN,
    Reason.REQUEST_REFUSED,
    Reason.INTERNAL_ERROR,
    Reason.RECONCILE_ERROR,
    Reason.API_UNAVAILABLE,
)
"""Which of several errors determines the reason: those that need action come first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The report of a failed pass."""

    reason: Reason
    message: str
    words: tuple[str, ...] = ()
    """The original messages, to find out whether they are reported already."""


@dataclass(slots=True)
class _Row:
    """Consecutive failures of one object."""

    since: float
    told: Failure | None = None
    told_at: float = float("-inf")
    shown: bool = False
    """Whether the status shows it."""
    handled: BaseException | None = None
    """The error that the pass itself has written into the status, until `tell` is called with it."""


class Failures:
    """Failed passes of the objects of one kind.

    Parameters
    ----------
    resource
        The kind.
    kube, recorder
        Write status and Events.
    clock, now
        A monotonic clock in seconds, and the wall clock.
    """

    def __init__(
        self,
        resource: Resource,
        kube: StatusPatcher,
        recorder: Warner,
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
        """Record the error of a pass that writes the status itself, and emit the Event.

        Parameters
        ----------
        obj
            The object.
        error
            The error with which the pass will end.
        told
            Texts of the status; an error that they contain is not reported twice.

        Returns
        -------
        Failure or None
            What the status should show; None if there is nothing to report, or not yet.
        """
        failure = self._noted(obj, error, tuple(told))
        row = self._rows[obj["metadata"]["uid"]]
        row.handled, row.shown = error, False
        return failure

    async def tell(self, obj: Object, error: BaseException) -> None:
        """Show the error of a failed pass on its object.

        Raises
        ------
        KubeError
            If the status cannot be written.
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
                # The object is gone.
                self._rows.pop(metadata["uid"], None)
        row.shown = True

    def passed(self, uid: str) -> None:
        """Forget the failures of an object: a pass has succeeded, or the object is gone."""
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
        # What is shown stays until a pass succeeds.
        return row.told


def explained(error: BaseException, where: str, *, late: bool = False, told: tuple[str, ...] = ()) -> Failure | None:
    """Explain an error; None if there is nothing to report, or not yet.

    Parameters
    ----------
    error
        The error of the pass.
    where
        Kind, namespace and name of the object, as in the log.
    late
        Whether transient errors have lasted too long.
    told
        Texts that may contain the error already.

    Returns
    -------
    Failure or None
        The report.
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
        before = [Condition.model_validate(condition) for condition in stored.get("conditions") or ()]
    except ValidationError:
        before = []
    ready, degraded = str(ClusterCondition.READY), str(ClusterCondition.DEGRADED)
    cluster, nodeset = resource is CLUSTERS, resource is NODESETS
    told: dict[str, Any] = {"reason": str(failure.reason), "message": printable_lines(failure.message)}
    if cluster:
        told["observed_generation"] = metadata.get("generation")
    shown = [Condition(type=ready, status="False", **told), Condition(type=degraded, status="True", **told)]
    wanted = merge(before, [*(one for one in before if one.type not in {ready, degraded}), *shown], now)
    patch: dict[str, Any] = {}
    if [one.to_dict() for one in wanted] != [one.to_dict() for one in sorted(before, key=lambda one: one.type)]:
        patch["conditions"] = [one.to_dict() for one in wanted]
    if cluster and stored.get("isReady") is not False:
        patch["isReady"] = False
    # Other kinds have room for the message; a Cluster's column is one of eight.
    summary = _SUMMARY[failure.reason] if cluster else printable(" ".join(failure.message.split()))[:LONGEST_SUMMARY]
    if stored.get("summary") != summary:
        patch["summary"] = summary
    # Before the operator takes over a NodeSet, the generation is another operator's, and the takeover reads it.
    ours = not nodeset or labels.FINALIZER_NODESET_DRAIN in (metadata.get("finalizers") or ())
    if ours and stored.get("observedGeneration") != metadata.get("generation"):
        patch["observedGeneration"] = metadata.get("generation")
    return patch


def _passes(error: BaseException) -> bool:
    """Whether an error is usually transient."""
    return bool(getattr(error, "expected", False)) or isinstance(error, errors.Unavailable | SlurmError)


def _one(error: BaseException, where: str) -> tuple[Reason, str]:  # noqa: PLR0911 - one for each kind
    match error:
        case SpecError():
            return Reason.INVALID_SPEC, _cut(str(error)) or type(error).__name__
        case OverBudgetError():
            return Reason.OVER_BUDGET, _cut(str(error))
        case errors.KubeError():
            return _refusal(error)
        case SlurmError():
            return Reason.RECONCILE_ERROR, _cut(f"Slurm: {error.message}")
        case threads.Busy():
            return Reason.RECONCILE_ERROR, _cut(f"{error}; the operator retries")
        case TimeoutError():
            return Reason.RECONCILE_ERROR, "reconciliation timed out and was cancelled; it is retried"
        case _:
            return Reason.INTERNAL_ERROR, (
                f"{type(error).__name__} in the operator, which is a bug; the operator retries, and its log has the "
                f"details in the line with {where}: trying again"
            )


def _refusal(error: errors.KubeError) -> tuple[Reason, str]:
    # When the API server rejects a Secret, its message may contain the Secret's data.
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
