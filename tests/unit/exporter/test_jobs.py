"""Jobs are counted as squeue --array lists them, with what they have or ask for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slurm_client.models import Job
from slurm_exporter.families import jobs
from slurm_exporter.families.jobs import JobTally
from slurm_exporter.samples.budget import OTHERS
from slurm_exporter.samples.family import Family, Labels
from tests.unit.exporter.builders import NOW, by_family, job

MIB = 1024 * 1024


def counted(*found: Job, users: int = 0, accounts: int = 0) -> dict[Family, dict[Labels, float]]:
    tally = JobTally(NOW, users, accounts)
    for each in found:
        tally.add(each)
    return by_family(tally.samples())


def test_each_task_of_an_array_is_a_job() -> None:
    samples = counted(
        job(1, array_job_id=1, array_tasks="0-99%5", cpus=2), job(2, "RUNNING", array_job_id=1, array_task_id=100)
    )
    assert samples[jobs.JOBS][("pending",)] == 100
    assert samples[jobs.JOBS_CPUS] == {("pending",): 200, ("running",): 1}
    assert samples[jobs.JOB_RECORDS] == {(): 2}


@pytest.mark.parametrize(
    ("text", "count"), [("3", 1), ("0-9:3", 4), ("1,3,5,...", 3), ("[1-4]", 4), ("1-4%2", 4), ("what?", 1), ("", 1)]
)
def test_tasks_that_wait_together(text: str, count: int) -> None:
    assert jobs.task_count(text) == count


def test_a_job_that_waits_for_two_partitions_counts_once_in_the_cluster() -> None:
    samples = counted(job(1, partition="a,b", cpus=4))
    assert samples[jobs.JOBS][("pending",)] == 1
    assert samples[jobs.PARTITION_JOBS]["a", "pending"] == samples[jobs.PARTITION_JOBS]["b", "pending"] == 1


def test_memory_and_gpus_are_those_that_it_has_or_asks_for() -> None:
    samples = counted(
        job(1, "RUNNING", tres_requested="cpu=1,mem=1G", tres_allocated="cpu=2,mem=4G,gres/gpu=3,gres/gpu:h100=2"),
        job(2, tres_requested="mem=1G,gres/gpu=8"),
    )
    assert samples[jobs.JOBS_MEMORY] == {("running",): 4096 * MIB, ("pending",): 1024 * MIB}
    assert samples[jobs.JOBS_GRES] == {
        ("running", "gpu", "h100"): 2,
        ("running", "gpu", ""): 1,
        ("pending", "gpu", ""): 8,
    }


def test_a_job_that_has_ended_holds_nothing() -> None:
    samples = counted(job(1, "COMPLETED", cpus=64, tres_allocated="mem=4G"), job(2, "COMPLETED+COMPLETING", cpus=2))
    assert samples[jobs.JOBS][("completed",)] == 2
    assert samples[jobs.JOBS_CPUS] == {("completed",): 2}
    assert samples[jobs.JOBS_FLAGGED] == {("completing",): 1}


def test_the_oldest_is_the_one_that_was_eligible_first_and_is_not_held() -> None:
    samples = counted(
        job(1, eligible_time=NOW - timedelta(hours=1), partition="a"),
        job(2, eligible_time=NOW - timedelta(hours=9), partition="a", hold=True, state_reason="JobHeldUser"),
        job(3, eligible_time=NOW + timedelta(hours=1), partition="b", state_reason="BeginTime"),
        # Slurm gives a job that waits for another no such time.
        job(4, eligible_time=None, submit_time=NOW - timedelta(days=3), partition="a", state_reason="Dependency"),
    )
    assert samples[jobs.OLDEST] == {(): 3600}
    assert samples[jobs.PARTITION_OLDEST] == {("a",): 3600, ("b",): 0}
    assert samples[jobs.JOBS_HELD] == {(): 1}


def test_an_empty_cluster_has_zeros() -> None:
    samples = counted()
    assert samples[jobs.JOBS][("running",)] == samples[jobs.JOBS][("pending",)] == 0
    assert samples[jobs.OLDEST] == {(): 0}


def test_users_and_accounts_have_no_samples_unless_asked_for() -> None:
    samples = counted(job(1, "RUNNING"))
    assert not samples[jobs.USER_JOBS]
    assert not samples[jobs.ACCOUNT_CPUS]


def test_only_the_users_with_most_cpus_have_samples_of_their_own() -> None:
    found = [job(number, "RUNNING", user=f"u{number}", cpus=number) for number in range(1, 6)]
    samples = counted(*found, users=2)
    assert samples[jobs.USER_CPUS] == {("u5", "running"): 5, ("u4", "running"): 4, (OTHERS, "running"): 6}
    assert samples[jobs.USER_JOBS][OTHERS, "running"] == 3


def test_reasons_that_are_too_many_share_a_sample() -> None:
    samples = counted(*(job(number, state_reason=f"Reason{number}") for number in range(jobs.REASONS + 3)))
    assert len(samples[jobs.JOBS_PENDING]) == jobs.REASONS + 1
    assert samples[jobs.JOBS_PENDING][(OTHERS,)] == 3
