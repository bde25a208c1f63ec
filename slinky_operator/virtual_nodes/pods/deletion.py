"""Who has ordered that a pod be deleted: somebody, or nobody, because its Node was not there for a while. Pure.

Kubernetes says why it deletes a pod of its own accord in the condition DisruptionTarget; what people and controllers of
workloads delete has none, or that of an eviction, which `kubectl drain` asks for. The operator's finalizer keeps a pod
until this was read, also one that is deleted by force or while the operator is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_operator.kube.objects import Object

OUTAGES: Final[Mapping[str, str]] = {
    "DeletionByTaintManager": "since its Node was not ready, or had a taint",
    "DeletionByPodGC": "since its Node was gone",
}
"""Reasons that stand for no decision about the pod."""

PREEMPTION: Final = "PreemptionByScheduler"


def outage(pod: Object, *, is_preemption_meant: bool) -> str:
    """Why Kubernetes has deleted a pod that nobody asked to delete; empty if somebody did.

    Parameters
    ----------
    pod
        The pod.
    is_preemption_meant
        Whether the kube-scheduler may end jobs for pods of higher priority: `allocatable` is Partition.
    """
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") != "DisruptionTarget" or condition.get("status") != "True":
            continue
        reason = str(condition.get("reason") or "")
        if reason in OUTAGES:
            return OUTAGES[reason]
        if reason == PREEMPTION and not is_preemption_meant:
            return "by the kube-scheduler, to make room that Slurm gives, not Kubernetes"
    return ""


def is_deleting(pod: Object) -> bool:
    """Whether a pod is to go."""
    return bool(pod["metadata"].get("deletionTimestamp"))
