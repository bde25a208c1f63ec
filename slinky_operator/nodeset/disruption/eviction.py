"""Which pods the PodDisruptionBudget protects from eviction: all, unless proven drained.

An eviction does not check whether a node holds jobs; it only checks the budget. So a pod is labelled from its creation.
The label is removed when the node is drained for a cordon, which leaves the pod in place, and a fresh answer from Slurm
shows that it is empty: then `kubectl drain` can continue. A pod to be removed is deleted by the operator and needs no
eviction.

The label is set again, and the cache shows it on a living pod, before the node is undrained: no job can start on a node
whose pod might be evicted at that moment. If an administrator undrains a node in the operator's drain, the label
follows within a second or two.
"""

from __future__ import annotations

from collections.abc import Collection

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership


def is_wanted(nodeset: NodeSet, state: pod_state.State, causes: Collection[Cause]) -> bool:
    """Whether a living pod is to be in the budget.

    Parameters
    ----------
    nodeset
        Its NodeSet.
    state
        Its state. If Slurm cannot be asked it is `Unknown`, and the pod is protected.
    causes
        The causes for which its node is to be drained.
    """
    if not nodeset.spec.workload_disruption_protection:
        return False
    return not (isinstance(state, pod_state.Drained) and causes and drains.REMOVAL.isdisjoint(causes))


def may_undrain(nodeset: NodeSet, pod: Pod) -> bool:
    """Whether a node may be undrained: its pod cannot be evicted, or needs no protection."""
    return pod.protected or not nodeset.spec.workload_disruption_protection


def may_be_lifted(member: Member) -> bool:
    """Whether the protection of a pod may be removed, given a fresh answer from Slurm about its node."""
    node = member.record
    if node is None or member.ownership is RecordOwnership.FOREIGN:
        return False
    return drains.is_drained(node, member.jobs)
