"""What lists of jobs show: when jobs end by their time limits, and why others wait. Pure.

slurmctld shows an end for a job without a limit too: a year after its start.

Reasons for waiting are mostly one word of a short list (`Resources`, `Priority`), but some name a user, a group or a
reservation: they are cut, and only the most frequent are kept by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.cluster.status import WaitingReason
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


MOST: Final = 8
"""Reasons that are named; the others are counted together."""

LONGEST: Final = 80
"""Characters of a reason."""

OTHERS: Final = "other reasons"


def waiting_reasons(jobs: Iterable[Job]) -> tuple[WaitingReason, ...]:
    """Count pending jobs by Slurm's reason, the most frequent first; tasks that wait together are one."""
    found: Counter[str] = Counter()
    for job in jobs:
        if job.is_pending:
            found[job.state_reason[:LONGEST]] += 1
    named = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    reasons = [WaitingReason(reason=" ".join(word.split()) or "None", jobs=jobs) for word, jobs in named[:MOST]]
    rest = sum(jobs for _, jobs in named[MOST:])
    return (*reasons, *([WaitingReason(reason=OTHERS, jobs=rest)] if rest else []))
