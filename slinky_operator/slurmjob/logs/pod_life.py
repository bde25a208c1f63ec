"""Pods with output that do not start, or end before they should: evicted, by a node that shuts down, or by somebody.

A pod that has ended too early is replaced, at once the first time and then after growing pauses: a user of its
namespace could end each of them. A pod that does not start may lack its Secret, which nobody watches: it is looked for
again after growing pauses. The kubelet keeps what it has read of a Secret, so a pod that runs does not need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut

PAUSES_S: Final = (0.0, 30.0, 120.0, 600.0)
"""Seconds between the end of a pod and the next one; the last for all further ones."""

LOOKS_S: Final = (20.0, 60.0, 300.0)
"""Seconds between looks for the Secret of a pod that does not start; the last for all further ones."""

LONGEST: Final = 300
"""Characters of Kubernetes' words."""


def has_ended(pod: Object) -> bool:
    """Whether no container of a pod will run again."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def why(pod: Object) -> str:
    """Say why a pod has ended, in Kubernetes' words."""
    status: dict[str, Any] = pod.get("status") or {}
    words = [str(status.get(field) or "") for field in ("reason", "message")]
    if not any(words):
        words = [_said(one) for one in status.get("containerStatuses") or ()]
    return cut(": ".join(filter(None, words)) or "Kubernetes does not say why", LONGEST)


def _said(container: Any) -> str:
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
        return self.at is not None and now >= self.at and _waits(pod)

    def looked(self, now: float) -> None:
        """Secret and pod are read."""
        self.at = now + LOOKS_S[min(self.looks, len(LOOKS_S) - 1)]
        self.looks += 1

    def next_look(self, pod: Object | None, now: float) -> float | None:
        """Seconds until then; None for a pod that has started."""
        return max(self.at - now, 0.0) if self.at is not None and _waits(pod) else None


def _waits(pod: Object | None) -> bool:
    return pod is None or (pod.get("status") or {}).get("phase") in {None, "Pending"}
