"""Taints by which machine autoscalers say that a Kubernetes Node is going: as good as a cordon to whatever runs there.

They set no `spec.unschedulable`, and a pod that the scheduler binds in the moment of the taint comes all the same
(kubernetes-sigs/karpenter, issues 651 and 3185). Taints that only advise, such as Cluster Autoscaler's
`DeletionCandidateOfClusterAutoscaler`, come and go while a Node stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

LEAVING: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Keys of Cluster Autoscaler, of Karpenter 1.x, and of Karpenter before that."""

_BINDING: Final = ("NoSchedule", "NoExecute")


def leaving(node: Mapping[str, Any]) -> str:
    """The taint by which a Node, complete or pruned, is said to be going; empty if it has none."""
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint.get("key") in LEAVING and taint.get("effect") in _BINDING:
            return str(taint["key"])
    return ""
