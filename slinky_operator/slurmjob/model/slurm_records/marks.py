"""The mark of a job: the SlurmJob and the attempt that it was submitted for, in the job's ``extra``.

slurmctld shows ``extra`` in each record of a job, with all data parsers; users may change it of their own jobs only.
So a mark is worth nothing without the user whose job it is.

A user who is granted to two namespaces can give a job of one the mark of a SlurmJob in the other. Such a job is neither
shown there nor cancelled with that SlurmJob: of the jobs with a mark, `own_records` returns the one with its number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slurm_client.models import Job

_PREFIX: Final = labels.SLURMJOB_PREFIX + "uid="
_MARK: Final = re.compile(re.escape(_PREFIX) + r"([0-9a-zA-Z-]{1,64})\.([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose job it is."""

    uid: str
    """Of the SlurmJob."""
    attempt: int
    """Which submission, from 0 on."""

    @property
    def text(self) -> str:
        """As it is in the job."""
        return f"{_PREFIX}{self.uid}.{self.attempt}"


def read(extra: str) -> Mark | None:
    """Read the mark of a job; None if it has none of ours."""
    found = _MARK.fullmatch(extra)
    return Mark(found[1], int(found[2])) if found else None


TOLERANCE: Final = timedelta(seconds=5)
"""By which the clocks of operator and slurmctld may differ; an earlier job is chosen only if there is no other."""


def own_records(
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


def is_newer(submitted: datetime | None, other: Object) -> bool:
    """Whether a job was certainly submitted after that of another SlurmJob, by the status of that."""
    try:
        noted = datetime.fromisoformat(str((other.get("status") or {}).get("submitTime")))
    except ValueError:
        return False
    return submitted is not None and noted.tzinfo is not None and submitted - noted > TOLERANCE
