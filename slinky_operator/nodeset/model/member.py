"""A pod of a NodeSet with what Slurm shows of its node: joined once, so that no rule has to look it up again.

The same join serves the snapshot, whose records may be seconds old, and an answer that has just come from Slurm, which
is what a delete is decided by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains, identity
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Job, Node


@dataclass(frozen=True, slots=True)
class Member:
    """One pod, and its node in Slurm."""

    pod: Pod
    record: Node | None = None
    """The record of its node; None where Slurm shows none, or shows nothing at all."""
    ownership: RecordOwnership | None = None
    """Whose that record is; None without one."""
    jobs: tuple[Job, ...] = ()
    """Jobs that hold its node; none as well where they were not asked for."""

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod.name

    @property
    def drained_for(self) -> frozenset[Cause]:
        """The causes named by a drain of ours on its node; none where we do not drain it."""
        return drains.causes_in(self.record) if self.record is not None else frozenset()


def join(pod: Pod, nodes: Mapping[str, Node | None], jobs: Mapping[str, tuple[Job, ...]], owner: str) -> Member:
    """Join a pod with its node's record and jobs.

    Parameters
    ----------
    pod
        The pod.
    nodes, jobs
        Records, and the jobs that hold nodes, by name of the node.
    owner
        Tag of the NodeSet.
    """
    record = nodes.get(pod.node_name)
    if record is None:
        return Member(pod, jobs=jobs.get(pod.node_name, ()))
    ownership = identity.bond(record, owner=owner, pod_uid=pod.uid, slurmd_started_at=pod.slurmd_started_at)
    return Member(pod, record, ownership, jobs.get(pod.node_name, ()))
