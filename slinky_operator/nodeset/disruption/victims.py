"""Which surplus pods are deleted first: those that cost least.

Pods that do not run first, then those whose node has not registered, then those whose node is empty and down or
drained, then idle ones, then by what would be lost (`Tier`). Among equals a node that no job and no reservation names
goes first: of one that is named the record stays in Slurm without a pod, and jobs that require it cannot start. An idle
node that stays takes the next job at once, however long it has been idle; a pod that stays and still has to start makes
that job wait. A node that the operator drains already keeps its place among the busy ones, so that a choice is not
changed by every job that starts; an idle node is preferred to it, since it can be deleted at once.

Scale-ins and updates (`rolling_update`) use `rank`; a scale-in while Slurm does not answer uses `choose_without_slurm`.
Repairs take the pods that have waited longest for their registration (`repairs.choose`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum

from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.slurm_nodes import drains
from slurm_client.models import Job


class Tier(IntEnum):
    """How much the deletion of a pod costs, the cheapest first."""

    NOT_RUNNING = 0
    UNREGISTERED = 1
    DOWN = 2
    DRAINED = 3
    IDLE = 4
    BUSY = 5


Rank = tuple[Tier, int, float, bool, int, int]
"""Tier; 0 if the operator drains it for a scale-in already, else 1; seconds of work lost; whether a job or reservation
names its node; the pod's deletion cost; the ordinal, negated."""


def seconds_lost(jobs: Iterable[Job], now: datetime) -> float:
    """Seconds that jobs have run on a node and that would be lost or run again."""
    return sum(max(0.0, (now - job.start_time).total_seconds()) for job in jobs if job.start_time is not None)


def rank(member: Member, now: datetime) -> Rank:
    """The pod with the lowest rank is deleted first."""
    pod, node, jobs = member.pod, member.record, member.jobs
    ordinal = _ordinal(member)
    if node is None:
        # A pod that Slurm does not know loses no work; but one that runs may register at any moment.
        tier = Tier.NOT_RUNNING if pod.slurmd is Slurmd.NEVER else Tier.UNREGISTERED
        return tier, 0, 0.0, False, pod.deletion_cost, -ordinal
    if not jobs and not drains.is_busy(node):
        tier = Tier.DOWN if node.is_down else Tier.DRAINED if node.is_drain else Tier.IDLE
        return tier, 0, 0.0, member.is_named, pod.deletion_cost, -ordinal
    ours = 0 if drains.Cause.SCALE_IN in drains.causes_in(node) else 1
    lost = seconds_lost(jobs, now) + sum(1 for job in jobs if not job.requeue)
    return Tier.BUSY, ours, lost, member.is_named, pod.deletion_cost, -ordinal


def choose(members: Sequence[Member], count: int, now: datetime) -> tuple[Member, ...]:
    """The `count` pods that are deleted first, in order.

    Parameters
    ----------
    members
        The pods to choose from, with the jobs on their nodes.
    now
        The time; timezone-aware.
    """
    if count <= 0:
        return ()
    return tuple(sorted(members, key=lambda member: rank(member, now))[:count])


def choose_without_slurm(members: Sequence[Member], count: int) -> tuple[Member, ...]:
    """The same while Slurm does not answer: of pods that certainly hold no job, those with the highest ordinals."""
    return tuple(sorted(members, key=lambda member: -_ordinal(member))[:count])


def _ordinal(member: Member) -> int:
    return member.pod.ordinal if member.pod.ordinal is not None else -1
