"""Jobs without a time limit are not said to end in a year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slinky_operator.slurm import job_facts
from slurm_client.models.job import Job, JobState
from slurm_client.models.values import INFINITE

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_an_end_that_slurm_has_made_up_is_none() -> None:
    limited = Job(id=1, time_limit=HOUR, start_time=START, end_time=START + HOUR)
    longer = Job(id=2, time_limit=2 * HOUR, start_time=START, end_time=START + 2 * HOUR)
    unlimited = Job(id=3, time_limit=INFINITE, start_time=START, end_time=START + job_facts.YEAR)
    # The limit of its partition, which is none.
    of_partition = Job(id=4, start_time=START, end_time=START + job_facts.YEAR)
    assert [job_facts.has_limit(job) for job in (limited, longer, unlimited, of_partition)] == [
        True,
        True,
        False,
        False,
    ]
    assert job_facts.last([limited, longer]) == START + 2 * HOUR
    assert job_facts.last([limited, unlimited]) is job_facts.last([of_partition]) is job_facts.last([]) is None


def job(number: int, reason: str, state: str = "PENDING") -> Job:
    return Job(id=number, state=JobState.from_words((state,)), state_reason=reason)


def test_pending_jobs_are_counted_by_reason_the_most_frequent_first() -> None:
    jobs = [job(1, "Priority"), job(2, "Resources"), job(3, "Priority"), job(4, "", "RUNNING"), job(5, "")]
    found = [(one.reason, one.jobs) for one in job_facts.waiting_reasons(jobs)]
    assert found == [("Priority", 2), ("None", 1), ("Resources", 1)]


def test_reasons_that_name_users_take_no_room() -> None:
    jobs = [job(number, f"uid {number}\nnot in group {'x' * 4_000}") for number in range(3_000)]
    found = job_facts.waiting_reasons([*jobs, job(5_000, "Resources"), job(5_001, "Resources")])
    assert len(found) == job_facts.MOST + 1
    assert found[0].reason == "Resources"
    assert (found[-1].reason, found[-1].jobs) == (job_facts.OTHERS, 3_002 - 2 - 7)
    assert all(len(one.reason) <= job_facts.LONGEST and "\n" not in one.reason for one in found)
