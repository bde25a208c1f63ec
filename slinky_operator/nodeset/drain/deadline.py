"""When a drain has exceeded its timeout, and what is then done about the jobs that delay it.

The clock is Slurm's: a drain of the operator begins when its reason is written, and Slurm keeps that time over restarts
of the operator and its own. The operator's clock only decides when to check; before anything is done Slurm is asked for
its time, too, since two machines' clocks may differ by more than the jobs were promised.

A drain for a cordon or a repair alone has no deadline; if the pod is later removed, the drain's reason is written again
(`drains.to_drain`), and its time begins then. Drains by others have no deadline.

Jobs that are ending already are left to end, except with `Force`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.spec import Drain, OnTimeout
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Job, Node

_ENDING: Final = frozenset({"COMPLETING", "STAGE_OUT"})
"""Flags of a job that can only be waited for."""


SLACK: Final = timedelta(seconds=1)
"""Slurm's times are in whole seconds: a drain may have begun up to a second later than its record shows."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A node whose drain has exceeded its timeout, and what to do there."""

    pod: Pod
    since: datetime
    """When the drain began."""
    ends: tuple[Job, ...] = ()
    """Jobs to cancel or to requeue."""
    stuck: tuple[Job, ...] = ()
    """Jobs that Slurm cannot requeue: interactive ones, and those submitted with `--no-requeue`."""
    ending: bool = False
    """Whether other jobs are ending there."""
    force: bool = False
    """Whether the pod is deleted with its jobs."""

    @property
    def acts(self) -> bool:
        """Whether there is anything to do."""
        return self.force or bool(self.ends)


def left(node: Node, causes: Collection[Cause], spec: Drain, now: datetime) -> float | None:
    """Seconds until the deadline, negative after it; None if there is none.

    Parameters
    ----------
    node
        The record.
    causes
        The causes for which it is to be drained.
    spec
        `spec.drain` of the NodeSet.
    now
        The time, Slurm's if an action depends on it; timezone-aware.
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
        Pods with their nodes, and the causes of their drains. Before an action, the nodes must come from a fresh answer
        of Slurm.
    spec
        `spec.drain` of the NodeSet.
    now
        The time, as in `left`.
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
    """Whether a job that still holds its nodes is ending already."""
    return job.state.base in drains.JOB_OVER or not _ENDING.isdisjoint(job.state.flags)


def may_be_downed(found: Overdue) -> bool:
    """Whether marking the node DOWN requeues every job on it, and does nothing else.

    This is used if Slurm's REST API has no requeue (before v0.0.45). A job that is ending would lose what it still has
    to do.
    """
    return bool(found.ends) and not found.stuck and not found.ending
