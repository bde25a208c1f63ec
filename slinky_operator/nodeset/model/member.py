"""A pod of a NodeSet joined with its node in Slurm: joined once, so that no rule has to look it up again.

The same join serves the snapshot, whose records may be seconds old, and a fresh answer from Slurm, on which a delete is
decided.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime

from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains, identity
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Job, Node


@dataclass(frozen=True, slots=True)
class Member:
    """One pod, and its node in Slurm."""

    pod: Pod
    record: Node | None = None
    """The record of its node; None if Slurm shows none, or cannot be read."""
    ownership: RecordOwnership | None = None
    """Who owns that record; None without one."""
    jobs: tuple[Job, ...] = ()
    """Jobs that hold its node; empty also if jobs were not queried."""
    is_named: bool = False
    """Whether a job or a reservation names its node; False also if that was not queried."""
    is_idle: bool = False
    """Whether its slurmd has shown for minutes that no step runs; False also if it was not asked."""
    answers_since: datetime | None = None
    """Since when slurmctld answers; None if it was not asked for this."""

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod.name

    @property
    def drained_for(self) -> frozenset[Cause]:
        """The causes of the operator's drain of its node; none if the operator does not drain it."""
        return drains.causes_in(self.record) if self.record is not None else frozenset()


def join(
    pod: Pod,
    nodes: Mapping[str, Node | None],
    jobs: Mapping[str, tuple[Job, ...]],
    owner: str,
    named: Container[str] = (),
    idle: Container[str] = (),
) -> Member:
    """Join a pod with its node's record and jobs.

    Parameters
    ----------
    pod
        The pod.
    nodes, jobs
        Records, and the jobs that hold nodes, by node name.
    owner
        Tag of the NodeSet.
    named
        Names of nodes that a job or a reservation names.
    idle
        Uids of pods whose slurmds have shown for minutes that no step runs.
    """
    held, is_named, is_idle = jobs.get(pod.node_name, ()), pod.node_name in named, pod.uid in idle
    record = nodes.get(pod.node_name)
    if record is None:
        return Member(pod, jobs=held, is_named=is_named, is_idle=is_idle)
    ownership = identity.bond(record, owner=owner, pod_uid=pod.uid, slurmd_started_at=pod.slurmd_started_at)
    return Member(pod, record, ownership, held, is_named, is_idle)
