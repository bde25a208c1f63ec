"""Decoders of jobs, steps, clusters and slurmdbd: of random objects, and of what slurmrestd wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import wire
from slurm_client.decode.database import clusters, history, read, service
from slurm_client.decode.names import Nameless
from slurm_client.models import INFINITE, StepUsage
from tests.unit.slurm_client.database.slurmdbd import Run, Slurmdbd, client
from tests.unit.slurm_client.strategies import objects, values

names = st.text(min_size=1, max_size=8)


def keys(model: str) -> frozenset[str]:
    """Return the keys of an object in any parser."""
    return frozenset().union(*(wire.fields(version, model) for version in wire.PARSERS))


@given(values)
def test_no_value_makes_a_reader_raise(value: Any) -> None:
    read.tres(value)
    read.span(value)


@given(objects(keys("Job") | keys("Step"), job_id=st.integers(0, 2**32), steps=st.lists(objects(keys("Step")))))
def test_any_job_with_an_id_is_read(raw: dict[str, Any]) -> None:
    job = history.job(raw)
    assert job.id == raw["job_id"]
    assert len(job.steps) == len(raw["steps"])
    hash(job)


@given(objects(keys("ClusterRec"), name=names), objects(keys("Instance"), node_name=names), objects(keys("StatsRec")))
def test_any_other_object_with_a_name_is_read(
    cluster: dict[str, Any], instance: dict[str, Any], statistics: dict[str, Any]
) -> None:
    hash(clusters.cluster(cluster))
    hash(clusters.instance(instance))
    hash(service.diag(statistics))
    service.ping(statistics)


def test_what_has_no_name_is_not_passed_over() -> None:
    for decode in (history.job, clusters.cluster, clusters.instance, clusters.tracked_resource):
        with pytest.raises(Nameless):
            decode({})


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def test_a_job_and_its_steps_are_read() -> None:
    unset = {"set": False, "infinite": False, "number": 0}
    job = history.job(
        {
            "job_id": 3,
            "cluster": "test",
            "array": {"job_id": 0, "limits": {"max": {"running": {"tasks": 0}}}, "task_id": unset, "task": ""},
            "het": {"job_id": 0, "job_offset": unset},
            "nodes": "None assigned",
            "time": {
                "elapsed": 65,
                "submission": 1_795_365_745,
                "end": 0,
                "limit": {"set": False, "infinite": True, "number": 0},
                "planned": number(4),
                "total": {"seconds": 1, "microseconds": 28_099},
            },
            "required": {"CPUs": 1, "memory_per_cpu": unset, "memory_per_node": number(256)},
            "state": {"current": ["PENDING", "REQUEUED"], "reason": "Priority"},
            "exit_code": {"status": ["SIGNALED"], "return_code": unset, "signal": {"id": number(9), "name": "KILL"}},
            "tres": {"requested": [{"type": "mem", "name": "", "id": 2, "count": 256}, {"type": "cpu"}, None]},
            "wckey": {"wckey": "*a", "flags": ["ASSIGNED_DEFAULT"]},
            "steps": [
                {
                    "step": {"id": "3.0", "name": "true"},
                    "state": ["COMPLETED"],
                    "time": {"start": number(1_795_365_748), "end": unset},
                    "nodes": {"count": 1, "range": "w-0", "list": ["w-0"]},
                    "tres": {
                        "requested": {
                            "average": [{"type": "mem", "count": 10}],
                            "total": [{"type": "mem", "count": 20}, {"type": "cpu", "count": 5}],
                            "max": [{"type": "mem", "count": 15, "node": "w-0", "task": 1}],
                        }
                    },
                }
            ],
        }
    )
    assert (job.array_job_id, job.array_task_id, job.het_job_id, job.het_job_offset) == (None, None, None, None)
    assert (job.node_list, job.end_time, job.is_finished, job.time_limit) == ("", None, False, INFINITE)
    assert (job.elapsed, job.planned) == (timedelta(seconds=65), timedelta(seconds=4))
    assert job.total_time == timedelta(seconds=1, microseconds=28_099)
    assert (job.memory_per_cpu_mib, job.memory_per_node_mib, job.tres_requested.memory_mib) == (None, 256, 256)
    assert job.state.base == "PENDING"
    assert job.exit_code is not None
    assert (job.exit_code.return_code, job.exit_code.signal, job.exit_code.signal_name) == (None, 9, "KILL")
    (step,) = job.steps
    assert (step.id, step.name, step.node_list, step.end_time) == ("3.0", "true", "w-0", None)
    assert step.start_time == datetime.fromtimestamp(1_795_365_748, UTC)
    assert step.read == (
        StepUsage("mem", average=10, total=20, max=15, max_node="w-0", max_task=1),
        StepUsage("cpu", total=5),
    )
    assert step.max_memory_bytes == 15


async def test_others_have_their_turn_while_a_job_with_many_steps_is_read() -> None:
    steps = [{"step": {"id": f"3.{number}"}, "state": ["COMPLETED"]} for number in range(100)]
    turns = list(history.job_in_slices({"job_id": 3, "steps": steps}))
    assert len(turns) == 6
    run = Run(3, 1_800_000_000, 1_800_000_000, 1_800_000_001, more={"steps": steps})
    async with client(Slurmdbd([run])) as slurm:
        since = datetime.fromtimestamp(1_800_000_000, UTC)
        (job,) = await slurm.db.jobs(since, since + timedelta(seconds=9))
    assert [each.id for each in job.steps] == [f"3.{number}" for number in range(100)]
