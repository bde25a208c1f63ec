"""Which pods the PodDisruptionBudget is to keep from being evicted: all, unless proven drained.

An eviction asks nobody whether a node holds jobs; it only asks the budget. So a pod is labelled from its creation on.
The label goes when the node is drained for an end that leaves the pod where it is, a cordon, and Slurm has just said
that it is empty: then `kubectl drain` can go on. A pod that is to go anyway is deleted by us and needs no eviction.

The label is back, and the cache shows it on a living pod, before the node is given back to Slurm: no job can start on
a node whose pod might be evicted at that moment. Where an administrator undrains a node of ours by hand, the label
follows within a second or two.
"""

from __future__ import annotations

from collections.abc import Collection

from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod
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
        Its state. Where Slurm cannot be asked it is `Unknown`, and the pod is protected.
    causes
        What its node is to be drained for.
    """
    if not nodeset.spec.workload_disruption_protection:
        return False
    return not (isinstance(state, pod_state.Drained) and causes and drains.REMOVAL.isdisjoint(causes))


def may_undrain(nodeset: NodeSet, pod: Pod) -> bool:
    """Whether a node may be given back to Slurm: its pod cannot be evicted, or need not be kept from it."""
    return pod.protected or not nodeset.spec.workload_disruption_protection


def may_be_lifted(member: Member) -> bool:
    """Whether the protection of a pod may be lifted, by what Slurm has just said of its node."""
    node = member.record
    if node is None or member.ownership is RecordOwnership.FOREIGN:
        return False
    return drains.is_drained(node, member.jobs)
