"""What a pod that copies says, while it waits and when it has ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_operator.joblogs.copies import orders
from slinky_operator.joblogs.copies.orders import Report
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile import pod_trouble
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.files.bodies import CONTAINER, items_of

LONGEST: Final = 300
"""Characters of Kubernetes' words."""

LOST: Final = timedelta(minutes=2)
"""After the time at which a deleted pod was to be gone: its node does not answer."""

_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class Ended:
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


def ended(pod: Object) -> Ended | None:
    """Read the end of a pod; None if it has not ended."""
    status: dict[str, Any] = pod.get("status") or {}
    if status.get("phase") not in {"Succeeded", "Failed"}:
        return None
    state = _state(status).get("terminated") or {}
    names = items_of(pod)
    found = orders.reports(str(state.get("message") or ""), len(names))
    if found is not None:
        return Ended(dict(zip(names, found, strict=True)))
    words = [
        str(status.get("reason") or state.get("reason") or "it has said nothing"),
        str(status.get("message") or ""),
    ]
    return Ended({}, cut(f"pod {pod['metadata']['name']} has ended: {': '.join(filter(None, words))}", LONGEST))


def lost(pod: Object, now: datetime) -> Ended | None:
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
    return Ended({}, cut(f"pod {pod['metadata']['name']} was deleted, and {node} does not end it", LONGEST))


def waits(pod: Object, now: datetime) -> str | None:
    """Say what a pod waits for: empty if its volumes are just being mounted, None if it runs."""
    status: dict[str, Any] = pod.get("status") or {}
    if status.get("phase") not in {None, "Pending"}:
        return None
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return cut(str(one.get("message") or one.get("reason") or "it is not scheduled"), LONGEST)
    waiting = _state(status).get("waiting") or {}
    reason = str(waiting.get("reason") or "")
    if reason in _STARTING:
        return cut(pod_trouble.words(pod, now), LONGEST)
    return cut(f"{reason}: {waiting.get('message') or ''}".rstrip(": "), LONGEST)


def _state(status: dict[str, Any]) -> dict[str, Any]:
    for one in status.get("containerStatuses") or ():
        if one.get("name") == CONTAINER:
            state: dict[str, Any] = one.get("state") or {}
            return state
    return {}
