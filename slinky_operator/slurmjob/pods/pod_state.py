"""The state of a pod of a SlurmJob: whether it waits, why it has ended, and when it is replaced or looked after. Pure.

A log pod that ends too early is replaced, at once the first time and then after growing pauses: a user of its namespace
could end each of them. A log pod that does not start may lack its Secret, which nobody watches: the Secret is looked
for again after growing pauses. The kubelet keeps what it has read of a Secret, so a pod that runs does not need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs.copies import orders
from slinky_operator.pod_programs.joblogs.copies.orders import Report
from slinky_operator.reconcile import pod_trouble
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.pods.copy_pod import CONTAINER, items_of

PAUSES_S: Final = (0.0, 30.0, 120.0, 600.0)
"""Seconds between the end of a pod and the next one; the last for all further ones."""

LOOKS_S: Final = (20.0, 60.0, 300.0)
"""Seconds between looks for the Secret of a pod that does not start; the last for all further ones."""

LONGEST: Final = 300
"""Characters of Kubernetes' words."""

LOST: Final = timedelta(minutes=2)
"""After the time at which a deleted pod was to be gone: its node does not answer."""

_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


def has_ended(pod: Object) -> bool:
    """Whether no container of a pod will run again."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def end_message(pod: Object) -> str:
    """Say why a pod has ended, in Kubernetes' words."""
    status: dict[str, Any] = pod.get("status") or {}
    words = [str(status.get(field) or "") for field in ("reason", "message")]
    if not any(words):
        words = [_container_end(each) for each in status.get("containerStatuses") or ()]
    return cut(": ".join(filter(None, words)) or "Kubernetes does not say why", LONGEST)


def _container_end(container: Any) -> str:
    end = (container.get("state") or {}).get("terminated") or {}
    more = f", {end['reason']}" if end.get("reason") else ""
    return f"{container.get('name')} with exit code {end['exitCode']}{more}" if "exitCode" in end else ""


@dataclass(slots=True)
class PodEnds:
    """How often the pod of one SlurmJob has ended too early."""

    count: int = 0
    uid: str = ""
    """Of the last pod that has."""
    again: float = 0.0
    """When another one may be made."""

    def pause(self, pod: Object, now: float) -> float:
        """Seconds until a pod that has ended may be replaced; not positive if it may be now."""
        uid = str(pod["metadata"].get("uid"))
        if uid != self.uid:
            self.uid, self.again = uid, now + PAUSES_S[min(self.count, len(PAUSES_S) - 1)]
            self.count += 1
        return self.again - now


@dataclass(slots=True)
class PodStarts:
    """When it is looked again whether the pod of one SlurmJob has what it needs to start."""

    looks: int = 0
    at: float | None = None
    """Of the next look; None before the first."""

    def is_due(self, pod: Object | None, now: float) -> bool:
        """Whether Secret and pod are to be read now."""
        return self.at is not None and now >= self.at and _is_to_start(pod)

    def looked(self, now: float) -> None:
        """Secret and pod are read."""
        self.at = now + LOOKS_S[min(self.looks, len(LOOKS_S) - 1)]
        self.looks += 1

    def next_look(self, pod: Object | None, now: float) -> float | None:
        """Seconds until then; None for a pod that has started."""
        return max(self.at - now, 0.0) if self.at is not None and _is_to_start(pod) else None


def _is_to_start(pod: Object | None) -> bool:
    return pod is None or _is_pending(pod)


def _is_pending(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {None, "Pending"}


@dataclass(frozen=True, slots=True)
class CopiesEnded:
    """What became of the copies of a pod.

    Parameters
    ----------
    reports
        By name of the item; none of those of which the pod has said nothing.
    why
        Why it has said nothing.
    """

    reports: dict[str, Report]
    why: str = ""


def copies_ended(pod: Object) -> CopiesEnded | None:
    """Read the end of a pod; None if it has not ended."""
    status: dict[str, Any] = pod.get("status") or {}
    if not has_ended(pod):
        return None
    state = _state(status).get("terminated") or {}
    names = items_of(pod)
    found = orders.reports(str(state.get("message") or ""), len(names))
    if found is not None:
        return CopiesEnded(dict(zip(names, found, strict=True)))
    words = [
        str(status.get("reason") or state.get("reason") or "no message"),
        str(status.get("message") or ""),
    ]
    return CopiesEnded({}, cut(f"pod {pod['metadata']['name']} has ended: {': '.join(filter(None, words))}", LONGEST))


def lost(pod: Object, now: datetime) -> CopiesEnded | None:
    """Say that a pod is on a node which does not answer; None if it is not.

    Such a pod stays until its Node is deleted or comes back.
    """
    try:
        since = datetime.fromisoformat(str(pod["metadata"].get("deletionTimestamp")))
    except ValueError:
        return None
    if now - since < LOST:
        return None
    node = (pod.get("spec") or {}).get("nodeName") or "its node"
    return CopiesEnded({}, cut(f"pod {pod['metadata']['name']} was deleted, but {node} has not removed it", LONGEST))


def waiting_for(pod: Object, now: datetime) -> str | None:
    """Say what a pod waits for: empty if its volumes are just being mounted, None if it runs."""
    status: dict[str, Any] = pod.get("status") or {}
    if not _is_pending(pod):
        return None
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return cut(str(condition.get("message") or condition.get("reason") or "it is not scheduled"), LONGEST)
    waiting = _state(status).get("waiting") or {}
    reason = str(waiting.get("reason") or "")
    if reason in _STARTING:
        return cut(pod_trouble.words(pod, now), LONGEST)
    return cut(f"{reason}: {waiting.get('message') or ''}".rstrip(": "), LONGEST)


def _state(status: dict[str, Any]) -> dict[str, Any]:
    for statuse in status.get("containerStatuses") or ():
        if statuse.get("name") == CONTAINER:
            state: dict[str, Any] = statuse.get("state") or {}
            return state
    return {}
