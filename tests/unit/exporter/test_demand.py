"""Only jobs that more nodes would help count as demand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slurm_exporter.families import demand
from slurm_exporter.families.jobs import JobTally
from tests.unit.exporter.builders import NOW, by_family, job


@pytest.mark.parametrize(
    "values",
    [
        {"state_reason": "JobHeldUser", "hold": True},
        {"state_reason": "Dependency"},
        {"state_reason": "BeginTime", "eligible_time": NOW + timedelta(minutes=1)},
        {"state_reason": "None", "eligible_time": NOW + timedelta(minutes=1)},
        {"state_reason": "QOSMaxJobsPerUserLimit"},
        {"state_reason": "AssocGrpCpuLimit"},
        {"state_reason": "Licenses"},
        {"state_reason": "SomethingNew"},
    ],
)
def test_a_job_that_waits_for_something_else_wants_no_nodes(values: dict[str, Any]) -> None:
    tally = JobTally(NOW)
    tally.add(job(1, node_count=3, **values))
    assert by_family(tally.samples())[demand.WANTED] == {("all",): 0}


def test_nodes_are_wanted_by_partition_with_the_largest_and_the_smallest_job() -> None:
    tally = JobTally(NOW)
    for number, nodes in enumerate((3, 1, 5)):
        tally.add(job(number, node_count=nodes, cpus=2 * nodes, state_reason="Priority"))
    samples = by_family(tally.samples())
    assert samples[demand.WANTED] == {("all",): 9}
    assert samples[demand.WANTED_CPUS] == {("all",): 18}
    assert samples[demand.LARGEST_JOB] == {("all",): 5}
    assert samples[demand.SMALLEST_JOB] == {("all",): 1}


def test_an_array_wants_nodes_for_the_tasks_that_may_still_start() -> None:
    tally = JobTally(NOW)
    tally.add(job(10, array_job_id=10, array_tasks="2-99%5", array_max_tasks=5))
    for number in (11, 12):
        tally.add(job(number, "RUNNING", array_job_id=10, array_task_id=number))
    samples = by_family(tally.samples())
    assert samples[demand.WANTED] == {("all",): 3}


def test_an_array_at_its_limit_wants_none() -> None:
    tally = JobTally(NOW)
    tally.add(job(11, "RUNNING", array_job_id=10, array_task_id=1))
    tally.add(job(10, array_job_id=10, array_tasks="2-99%1", array_max_tasks=1))
    assert by_family(tally.samples())[demand.LARGEST_JOB] == {("all",): 0}
