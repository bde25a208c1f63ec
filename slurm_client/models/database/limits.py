"""
Limits of associations and of QOS, and where slurmdbd's objects have them.

Each field says by its metadata where in an object the limit stands and how it is written, so that decoder and encoder
agree: ``at`` is the place in an association or QOS, ``new`` the key with which a new association gets it. The names are
those of ``sacctmgr``, spelled out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from slurm_client.models.values import Infinite
from slurm_client.notation.tres import Tres

__all__ = ["AssociationLimits", "QosLimits"]

Count = int | Infinite | None
"""A number; INFINITE for no limit, which also takes a limit away; ``None`` leaves it as it is."""

Length = timedelta | Infinite | None
"""A length of time, by the minute."""

Resources = Tres | None
"""Counts of resources, all of them: Slurm takes away the limits of those that are not in the list."""


def _count(at: str, new: str = "") -> dict[str, str]:
    return {"at": at, "kind": "count", "new": new}


def _minutes(at: str, new: str = "") -> dict[str, str]:
    return {"at": at, "kind": "minutes", "new": new}


def _tres(at: str, new: str = "") -> dict[str, str]:
    return {"at": at, "kind": "tres", "new": new}


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociationLimits:
    """
    Limits of an association.

    Parameters
    ----------
    max_jobs, max_jobs_accrue, max_submit_jobs
        Jobs that run, that gain priority while they wait, and that are there at all, of this association.
    max_wall_per_job
        Wall time of each job.
    max_tres_per_job, max_tres_per_node, max_tres_minutes_per_job
        Resources of each job, of each job on a node, and their product with its minutes.
    max_tres_run_minutes
        Resources times minutes left of all jobs that run, of this association.
    group_jobs, group_jobs_accrue, group_submit_jobs, group_wall
        The same, of this association and all below it together.
    group_tres, group_tres_minutes, group_tres_run_minutes
        Resources of all running jobs of this association and those below it, used so far, and still to be used.
    min_priority_threshold
        Priority that a job needs to reserve resources.
    """

    max_jobs: Count = field(default=None, metadata=_count("max.jobs.active", "maxjobs"))
    max_jobs_accrue: Count = field(default=None, metadata=_count("max.jobs.accruing", "maxjobsaccrue"))
    max_submit_jobs: Count = field(default=None, metadata=_count("max.jobs.total", "maxsubmitjobs"))
    max_wall_per_job: Length = field(
        default=None, metadata=_minutes("max.jobs.per.wall_clock", "maxwalldurationperjob")
    )
    max_tres_per_job: Resources = field(default=None, metadata=_tres("max.tres.per.job", "maxtresperjob"))
    max_tres_per_node: Resources = field(default=None, metadata=_tres("max.tres.per.node", "maxtrespernode"))
    max_tres_minutes_per_job: Resources = field(
        default=None, metadata=_tres("max.tres.minutes.per.job", "maxtresminsperjob")
    )
    max_tres_run_minutes: Resources = field(default=None, metadata=_tres("max.tres.minutes.total", "maxtresrunmins"))
    group_jobs: Count = field(default=None, metadata=_count("max.jobs.per.count", "grpjobs"))
    group_jobs_accrue: Count = field(default=None, metadata=_count("max.jobs.per.accruing", "grpjobsaccrue"))
    group_submit_jobs: Count = field(default=None, metadata=_count("max.jobs.per.submitted", "grpsubmitjobs"))
    group_wall: Length = field(default=None, metadata=_minutes("max.per.account.wall_clock", "grpwall"))
    group_tres: Resources = field(default=None, metadata=_tres("max.tres.total", "grptres"))
    group_tres_minutes: Resources = field(default=None, metadata=_tres("max.tres.group.minutes", "grptresmins"))
    group_tres_run_minutes: Resources = field(default=None, metadata=_tres("max.tres.group.active", "grptresrunmins"))
    min_priority_threshold: Count = field(default=None, metadata=_count("min.priority_threshold", "minpriothresh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QosLimits:
    """
    Limits of a QOS.

    Parameters
    ----------
    max_jobs_per_user, max_jobs_per_account, max_submit_jobs_per_user, max_submit_jobs_per_account
        Jobs that run, and that are there at all.
    max_jobs_accrue_per_user, max_jobs_accrue_per_account
        Jobs that gain priority while they wait.
    max_wall_per_job
        Wall time of each job.
    max_tres_per_job, max_tres_per_node, max_tres_per_user, max_tres_per_account
        Resources of each job, of each job on a node, and of all running jobs of a user or an account.
    max_tres_minutes_per_job
        Resources of a job times its minutes.
    max_tres_run_minutes_per_user, max_tres_run_minutes_per_account
        Resources times minutes left of running jobs.
    min_tres_per_job
        Resources that a job must want at least.
    group_jobs, group_jobs_accrue, group_wall, group_tres, group_tres_minutes, group_tres_run_minutes
        Of all jobs of the QOS together: running, waiting, their wall time, their resources, these times minutes
        (v0.0.42 and newer), and times minutes left.
    min_priority_threshold
        Priority that a job needs to reserve resources.
    """

    max_jobs_per_user: Count = field(default=None, metadata=_count("limits.max.jobs.active_jobs.per.user"))
    max_jobs_per_account: Count = field(default=None, metadata=_count("limits.max.jobs.active_jobs.per.account"))
    max_submit_jobs_per_user: Count = field(default=None, metadata=_count("limits.max.jobs.per.user"))
    max_submit_jobs_per_account: Count = field(default=None, metadata=_count("limits.max.jobs.per.account"))
    max_jobs_accrue_per_user: Count = field(default=None, metadata=_count("limits.max.accruing.per.user"))
    max_jobs_accrue_per_account: Count = field(default=None, metadata=_count("limits.max.accruing.per.account"))
    max_wall_per_job: Length = field(default=None, metadata=_minutes("limits.max.wall_clock.per.job"))
    max_tres_per_job: Resources = field(default=None, metadata=_tres("limits.max.tres.per.job"))
    max_tres_per_node: Resources = field(default=None, metadata=_tres("limits.max.tres.per.node"))
    max_tres_per_user: Resources = field(default=None, metadata=_tres("limits.max.tres.per.user"))
    max_tres_per_account: Resources = field(default=None, metadata=_tres("limits.max.tres.per.account"))
    max_tres_minutes_per_job: Resources = field(default=None, metadata=_tres("limits.max.tres.minutes.per.job"))
    max_tres_run_minutes_per_user: Resources = field(default=None, metadata=_tres("limits.max.tres.minutes.per.user"))
    max_tres_run_minutes_per_account: Resources = field(
        default=None, metadata=_tres("limits.max.tres.minutes.per.account")
    )
    min_tres_per_job: Resources = field(default=None, metadata=_tres("limits.min.tres.per.job"))
    group_jobs: Count = field(default=None, metadata=_count("limits.max.active_jobs.count"))
    group_jobs_accrue: Count = field(default=None, metadata=_count("limits.max.active_jobs.accruing"))
    group_wall: Length = field(default=None, metadata=_minutes("limits.max.wall_clock.per.qos"))
    group_tres: Resources = field(default=None, metadata=_tres("limits.max.tres.total"))
    group_tres_minutes: Resources = field(default=None, metadata=_tres("limits.max.tres.minutes.total"))
    group_tres_run_minutes: Resources = field(default=None, metadata=_tres("limits.max.tres.minutes.per.qos"))
    min_priority_threshold: Count = field(default=None, metadata=_count("limits.min.priority_threshold"))
