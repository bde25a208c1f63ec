"""Why the jobs of a Cluster wait, counted from lists of all jobs that are read for something else. Pure.

Slurm's words are mostly one word of a short list (`Resources`, `Priority`), but some name a user, a group or a
reservation: they are cut, and only the most frequent are kept by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from slinky_api.v1alpha1.cluster.status import WaitingReason
from slurm_client.models import Job

MOST: Final = 8
"""Reasons that are named; the others are counted together."""

LONGEST: Final = 80
"""Characters of a reason."""

OTHERS: Final = "other reasons"


def of(jobs: Iterable[Job]) -> tuple[WaitingReason, ...]:
    """Count pending jobs by Slurm's reason, the most frequent first; tasks that wait together are one."""
    found: Counter[str] = Counter()
    for job in jobs:
        if job.is_pending:
            found[job.state_reason[:LONGEST]] += 1
    named = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    reasons = [WaitingReason(reason=" ".join(word.split()) or "None", jobs=jobs) for word, jobs in named[:MOST]]
    rest = sum(jobs for _, jobs in named[MOST:])
    return (*reasons, *([WaitingReason(reason=OTHERS, jobs=rest)] if rest else []))
