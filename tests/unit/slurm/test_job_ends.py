"""Jobs without a time limit are not said to end in a year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slinky_operator.slurm import job_ends
from slurm_client.models.job import Job
from slurm_client.models.values import INFINITE

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_an_end_that_slurm_has_made_up_is_none() -> None:
    limited = Job(id=1, time_limit=HOUR, start_time=START, end_time=START + HOUR)
    longer = Job(id=2, time_limit=2 * HOUR, start_time=START, end_time=START + 2 * HOUR)
    unlimited = Job(id=3, time_limit=INFINITE, start_time=START, end_time=START + job_ends.YEAR)
    # The limit of its partition, which is none.
    of_partition = Job(id=4, start_time=START, end_time=START + job_ends.YEAR)
    assert [job_ends.has_limit(job) for job in (limited, longer, unlimited, of_partition)] == [True, True, False, False]
    assert job_ends.last([limited, longer]) == START + 2 * HOUR
    assert job_ends.last([limited, unlimited]) is job_ends.last([of_partition]) is job_ends.last([]) is None
