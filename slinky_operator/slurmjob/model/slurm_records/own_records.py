"""Of the jobs with the mark and the user of a SlurmJob, the one that was submitted for it. Pure.

Users may change the mark of their own jobs. A user who is granted to two namespaces can so give a job of one the mark
of a SlurmJob in the other. It is neither shown there nor cancelled with that SlurmJob: its number is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from slurm_client.models import Job

TOLERANCE: Final = timedelta(seconds=5)
"""By which the clocks of operator and slurmctld may differ; an earlier job is chosen only if there is no other."""


def of(
    found: Sequence[Job], job_id: int | None, started: datetime | None, others: Collection[int] = ()
) -> tuple[Job, ...]:
    """The records of one job, with all its tasks.

    Parameters
    ----------
    found
        Those with mark and user.
    job_id
        Number of the job; None while it is not known.
    started
        When its submission was begun.
    others
        Numbers of the jobs of other SlurmJobs: none is taken while the number of this one is not known.
    """
    if job_id is not None:
        ours = {number_of(job) for job in found if job_id in {job.id, job.array_job_id, job.het_job_id}}
    else:
        # The first since then: who gives a job this mark has seen it in another before, or had it ready too early.
        free = [job for job in found if number_of(job) not in others]
        ours = {min((is_early(job, started), number_of(job)) for job in free)[1]} if free else set()
    return tuple(job for job in found if number_of(job) in ours)


def number_of(job: Job) -> int:
    """The number of the job that a record is of, or of a part of."""
    return job.array_job_id or job.het_job_id or job.id


def is_early(job: Job, started: datetime | None) -> bool:
    """Whether a job was submitted before a time, by more than clocks differ."""
    return started is not None and job.submit_time is not None and job.submit_time < started - TOLERANCE
