"""Jobs without a time limit are not said to end in a year."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from slinky_api.v1alpha1.cluster.status import PartitionJobCounts
from slinky_operator.slurm.jobs import job_facts
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


def job(number: int, reason: str, state: str = "PENDING", partition: str = "") -> Job:
    return Job(id=number, state=JobState.from_words((state,)), state_reason=reason, partition=partition)


def counted(jobs: Iterable[Job]) -> job_facts.JobCounter:
    counter = job_facts.JobCounter()
    for each in jobs:
        counter.add(each)
    return counter


def test_pending_jobs_are_counted_by_reason_the_most_frequent_first() -> None:
    jobs = [job(1, "Priority"), job(2, "Resources"), job(3, "Priority"), job(4, "", "RUNNING"), job(5, "")]
    found = [(one.reason, one.jobs) for one in counted(jobs).waiting]
    assert found == [("Priority", 2), ("None", 1), ("Resources", 1)]


def test_reasons_that_name_users_take_no_room() -> None:
    jobs = [job(number, f"uid {number}\nnot in group {'x' * 4_000}") for number in range(3_000)]
    found = counted([*jobs, job(5_000, "Resources"), job(5_001, "Resources")]).waiting
    assert len(found) == job_facts.MOST + 1
    assert found[0].reason == "Resources"
    assert (found[-1].reason, found[-1].jobs) == (job_facts.OTHERS, 3_002 - 2 - 7)
    assert all(len(one.reason) <= job_facts.LONGEST and "\n" not in one.reason for one in found)


def test_a_job_counts_in_each_partition_that_it_waits_for() -> None:
    jobs = [
        job(1, "Priority", partition="a,b"),
        job(2, "Resources", partition="b"),
        job(3, "", "RUNNING", partition="b"),
        job(4, "", "COMPLETED", partition="b"),
    ]
    found = counted(jobs).partitions(whole=True)
    assert (found.of("a").running, found.of("a").pending) == (0, 1)
    assert (found.of("b").running, found.of("b").pending) == (1, 2)
    assert [one.reason for one in found.of("b").waiting] == ["Priority", "Resources"]
    assert found.of("c") == PartitionJobCounts(pending=0)
    assert counted(jobs).partitions(whole=False).of("c").pending is None


def test_what_is_counted_of_partitions_is_bounded() -> None:
    many = [job(number, f"uid {number}", partition=f"p{number % 5}") for number in range(2 * job_facts.MOST_DISTINCT)]
    found = counted(many).partitions(whole=True)
    assert sum(found.of(f"p{number}").pending or 0 for number in range(5)) == len(many)
    for one in found.counts.values():
        assert len(one.waiting) == job_facts.MOST_OF_PARTITION + 1
        assert sum(reason.jobs for reason in one.waiting) == one.pending
    names = ",".join(f"q{number}" for number in range(3 * job_facts.MOST_PARTITIONS))
    found = counted([job(1, "", partition=names), job(2, "", partition="x" * 300)]).partitions(whole=True)
    assert len(found.counts) == job_facts.MOST_PARTITIONS
