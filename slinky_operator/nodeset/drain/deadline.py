"""When a drain has taken longer than it may, and what is then done about the jobs that hold it up.

The clock is Slurm's: a drain of ours begins when its reason is written, and Slurm keeps that time over restarts of the
operator and its own. By our own clock we only tell that it may be time to look; before anything is done Slurm is asked
for its time, too, since two machines' clocks may differ by more than the jobs were promised.

A drain for a cordon or a repair alone has no deadline; when the pod is to go all the same, the drain's reason is
written anew (`drains.to_drain`), and its time begins then. Drains of others have no deadline of ours.

Jobs that are ending already are left to end, except by `Force`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset import Drain, OnTimeout
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Job, Node

_ENDING: Final = frozenset({"COMPLETING", "STAGE_OUT"})
"""Flags of a job to which nothing more can be done than to wait."""


SLACK: Final = timedelta(seconds=1)
"""Slurm tells times in whole seconds: a drain may have begun up to a second later than its record says."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A node whose drain has taken too long, and what is to be done there."""

    pod: Pod
    since: datetime
    """When the drain began."""
    ends: tuple[Job, ...] = ()
    """Jobs to be cancelled, or to be requeued."""
    stuck: tuple[Job, ...] = ()
    """Jobs that Slurm cannot requeue: interactive ones, and those submitted with `--no-requeue`."""
    ending: bool = False
    """Whether other jobs are ending there."""
    force: bool = False
    """Whether the pod is to go with its jobs."""

    @property
    def acts(self) -> bool:
        """Whether there is anything to do."""
        return self.force or bool(self.ends)


def left(node: Node, causes: Collection[Cause], spec: Drain, now: datetime) -> float | None:
    """Seconds until the deadline, negative after it; None where there is none.

    Parameters
    ----------
    node
        The record.
    causes
        What we want it drained for.
    spec
        `spec.drain` of the NodeSet.
    now
        The time, Slurm's where something is done about it; knows its zone.
    """
    if spec.timeout is None or drains.TIMED.isdisjoint(causes) or drains.TIMED.isdisjoint(drains.causes_in(node)):
        return None
    if node.reason_changed_at is None:
        return None
    return (node.reason_changed_at + SLACK + spec.timeout - now).total_seconds()


def overdue(wanted: Iterable[tuple[Member, frozenset[Cause]]], spec: Drain, now: datetime) -> list[Overdue]:
    """The nodes whose deadline has passed and that still hold something.

    Parameters
    ----------
    wanted
        Pods with their nodes, and what these are to be drained for. Before something is done, Slurm must have been
        asked for them just now.
    spec
        `spec.drain` of the NodeSet.
    now
        The time, as with `left`.
    """
    found = []
    for member, causes in wanted:
        node = member.record
        if node is None or not drains.is_ours(node) or member.ownership is RecordOwnership.FOREIGN:
            continue
        over = left(node, causes, spec, now)
        if over is None or over > 0 or node.reason_changed_at is None or drains.is_drained(node, member.jobs):
            continue
        found.append(_what(member.pod, node.reason_changed_at, member.jobs, spec.on_timeout))
    return found


def _what(pod: Pod, since: datetime, held: Iterable[Job], on_timeout: OnTimeout) -> Overdue:
    standing = [job for job in held if not is_ending(job)]
    ending = any(is_ending(job) for job in held)
    match on_timeout:
        case OnTimeout.WAIT:
            return Overdue(pod, since, ending=ending)
        case OnTimeout.REQUEUE:
            able = tuple(job for job in standing if job.batch and job.requeue)
            stuck = tuple(job for job in standing if not (job.batch and job.requeue))
            return Overdue(pod, since, able, stuck, ending)
        case OnTimeout.CANCEL:
            return Overdue(pod, since, tuple(standing), (), ending)
        case OnTimeout.FORCE:
            return Overdue(pod, since, force=True, ending=ending)


def is_ending(job: Job) -> bool:
    """Whether a job that still holds its nodes is on its way out already."""
    return job.state.base in drains.JOB_OVER or not _ENDING.isdisjoint(job.state.flags)


def may_be_downed(found: Overdue) -> bool:
    """Whether marking the node DOWN puts every job on it back into the queue, and does nothing else.

    That is the way where Slurm's REST has no requeue (before v0.0.45). A job that is ending would lose what it still
    has to do.
    """
    return bool(found.ends) and not found.stuck and not found.ending
