"""How many jobs Slurm has, by state, for the status of a Cluster. Pure.

Each job is counted once, so that the numbers add up to the total.
"""

from __future__ import annotations

from collections.abc import Iterable

from slinky_api.v1alpha1.cluster.status import JobCounts
from slurm_client.models import JobStateEntry


def count_jobs(jobs: Iterable[JobStateEntry]) -> JobCounts:
    """Count jobs that have not ended, each in one state; one that is ending counts as completing."""
    counts = dict.fromkeys(("total", "running", "pending", "suspended", "completing", "other"), 0)
    for job in jobs:
        if job.state.is_finished:
            # Slurm keeps the records of ended jobs for a while (MinJobAge).
            continue
        counts["total"] += 1
        base = "completing" if "COMPLETING" in job.state.flags else job.state.base.lower()
        counts[base if base in counts and base != "total" else "other"] += 1
    return JobCounts.model_validate(counts)
