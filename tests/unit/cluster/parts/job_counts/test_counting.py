"""Jobs are counted once each."""

from __future__ import annotations

from slinky_operator.cluster.parts.job_counts.question import count_jobs
from slurm_client.models import JobStateEntry
from slurm_client.models.job import JobState


def job(*words: str) -> JobStateEntry:
    return JobStateEntry(id="1", state=JobState.from_words(words))


def test_jobs_that_have_ended_are_not_counted() -> None:
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
    found = count_jobs(
        [job("RUNNING"), job("PENDING"), job("COMPLETED", "COMPLETING"), job("NEWSTATE"), *map(job, ended)]
    )
    assert (found.running, found.pending, found.completing, found.other, found.total) == (1, 1, 1, 1, 4)
