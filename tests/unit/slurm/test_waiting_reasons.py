"""Why jobs wait is counted, and what users can write into a reason is bounded."""

from __future__ import annotations

from slinky_operator.slurm import waiting_reasons
from slurm_client.models.job import Job, JobState


def job(number: int, reason: str, state: str = "PENDING") -> Job:
    return Job(id=number, state=JobState.from_words((state,)), state_reason=reason)


def test_pending_jobs_are_counted_by_reason_the_most_frequent_first() -> None:
    jobs = [job(1, "Priority"), job(2, "Resources"), job(3, "Priority"), job(4, "", "RUNNING"), job(5, "")]
    found = [(one.reason, one.jobs) for one in waiting_reasons.of(jobs)]
    assert found == [("Priority", 2), ("None", 1), ("Resources", 1)]


def test_reasons_that_name_users_take_no_room() -> None:
    jobs = [job(number, f"uid {number}\nnot in group {'x' * 4_000}") for number in range(3_000)]
    found = waiting_reasons.of([*jobs, job(5_000, "Resources"), job(5_001, "Resources")])
    assert len(found) == waiting_reasons.MOST + 1
    assert found[0].reason == "Resources"
    assert (found[-1].reason, found[-1].jobs) == (waiting_reasons.OTHERS, 3_002 - 2 - 7)
    assert all(len(one.reason) <= waiting_reasons.LONGEST and "\n" not in one.reason for one in found)
