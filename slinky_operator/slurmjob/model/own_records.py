"""Of the jobs with the mark and the user of a SlurmJob, the one that was submitted for it. Pure.

Users may change the mark of their own jobs. A user who is granted to two namespaces can so give a job of one the mark
of a SlurmJob in the other. It is neither shown there nor cancelled with that SlurmJob: its number is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from slurm_client.models import Job

TOLERANCE: Final = timedelta(seconds=5)
"""By which the clocks of operator and slurmctld may differ; an earlier job is chosen only if there is no other."""


def of(found: Sequence[Job], job_id: int | None, started: datetime | None) -> tuple[Job, ...]:
    """The records of one job, with all its tasks.

    Parameters
    ----------
    found
        Those with mark and user.
    job_id
        Number of the job; None while it is not known.
    started
        When its submission was begun.
    """
    if job_id is not None:
        ours = {_number(job) for job in found if job_id in {job.id, job.array_job_id, job.het_job_id}}
    else:
        # The first since then: who gives a job this mark has seen it in another before, or had it ready too early.
        ours = {min((_is_early(job, started), _number(job)) for job in found)[1]} if found else set()
    return tuple(job for job in found if _number(job) in ours)


def _number(job: Job) -> int:
    return job.array_job_id or job.het_job_id or job.id


def _is_early(job: Job, started: datetime | None) -> bool:
    return started is not None and job.submit_time is not None and job.submit_time < started - TOLERANCE
