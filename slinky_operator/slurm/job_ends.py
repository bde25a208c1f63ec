"""When a job ends by its time limit. Pure.

slurmctld shows an end for a job without a limit too: a year after its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from slurm_client.models import Job
from slurm_client.models.values import Infinite

YEAR: Final = timedelta(days=365)


def has_limit(job: Job) -> bool:
    """Whether Slurm ends the job at some time."""
    if isinstance(job.time_limit, Infinite):
        return False
    return job.end_time is None or job.start_time is None or job.end_time - job.start_time < YEAR


def last(jobs: Iterable[Job]) -> datetime | None:
    """When the last of some jobs ends by its limit; None if one has none, or none is known."""
    ends = [job.end_time if has_limit(job) else None for job in jobs]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None
