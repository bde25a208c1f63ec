"""External jobs: no script, and nothing that only serves one; what is no such job is refused before it is sent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slurm_client import JobSpec, SlurmClient, errors, wire
from slurm_client.testing import FakeSlurmrestd

SPEC = JobSpec(name="p", tasks=3, cpus_per_task=2, memory_per_cpu_mib=100, flags=["EXTERNAL_JOB"], extra="mark")


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd() as server:
        server.world.add_partition("all")
        yield server


@pytest.fixture
async def slurm(fake: FakeSlurmrestd) -> AsyncIterator[SlurmClient]:
    async with SlurmClient(fake.url, "token") as client:
        yield client


async def add(slurm: SlurmClient, name: str, cpus: int, gpus: int = 0) -> None:
    devices = f' Gres=gpu:{gpus} GresConf="name=gpu,count={gpus}"' if gpus else ""
    await slurm.create_node(f"NodeName={name} CPUs={cpus} RealMemory=4000 State=EXTERNAL Feature=k8s{devices}")


async def test_nothing_is_sent_that_serves_a_script(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    submitted = await slurm.submit_job(SPEC)
    (sent,) = fake.calls("post_job_submit")
    assert sent.body == {
        "job": {
            "name": "p",
            "tasks": 3,
            "cpus_per_task": 2,
            "memory_per_cpu": {"set": True, "infinite": False, "number": 100},
            "flags": ["EXTERNAL_JOB"],
            "extra": "mark",
        }
    }
    job = await slurm.job(submitted.id)
    assert (job.state.base, job.flags, job.batch) == ("PENDING", frozenset({"EXTERNAL_JOB"}), False)
    shown = await slurm.submission_request(SPEC)
    assert "script" not in shown.body


@pytest.mark.parametrize("field", ["script", "array"])
async def test_a_script_or_an_array_is_refused(fake: FakeSlurmrestd, slurm: SlurmClient, field: str) -> None:
    wrong = replace(SPEC, script="0-1") if field == "script" else replace(SPEC, array="0-1")
    with pytest.raises(errors.InvalidArgument, match=f"submit_job: {field} is set") as caught:
        _ = await slurm.submit_job(wrong)
    assert caught.value.field == field
    with pytest.raises(errors.InvalidArgument, match=re.escape(f"submit_het_job: specs[1].{field} is set")):
        _ = await slurm.submit_het_job([SPEC, wrong])
    assert fake.calls("post_job_submit") == []


async def test_components_are_external_all_or_none(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    with pytest.raises(errors.InvalidArgument, match=re.escape("specs[1].flags has no EXTERNAL_JOB")):
        _ = await slurm.submit_het_job([SPEC, JobSpec()])
    with pytest.raises(errors.InvalidArgument, match=re.escape("specs[0].flags has no EXTERNAL_JOB")):
        _ = await slurm.submit_het_job([JobSpec(script="#!/bin/sh\n"), SPEC])
    assert fake.calls("post_job_submit") == []


@pytest.mark.parametrize("release", ["24.11.5", "26.05.5"])
async def test_a_parser_that_does_not_know_it_is_not_asked(release: str) -> None:
    async with (
        FakeSlurmrestd(release=release) as fake,
        SlurmClient(fake.url, "token", api_version="v0.0.42") as slurm,
    ):
        with pytest.raises(errors.NotSupported, match=r"v0\.0\.42 has no EXTERNAL_JOB") as caught:
            _ = await slurm.submit_job(SPEC)
        assert caught.value.available_in == wire.PARSERS[wire.PARSERS.index("v0.0.43") :]
        with pytest.raises(errors.NotSupported):
            _ = await slurm.submit_het_job([SPEC, SPEC])
        assert fake.calls("post_job_submit") == []


async def test_it_runs_without_steps_until_it_is_cancelled(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    await add(slurm, "k-1", 4)
    await add(slurm, "k-0", 8)
    first = (await slurm.submit_job(SPEC)).id
    job = await slurm.job(first)
    assert (str(job.state), job.nodes, job.cpus) == ("RUNNING", ("k-1", "k-0"), 6)
    assert job.details.resources is not None
    assert [(one.name, one.cpus, one.memory_mib) for one in job.details.resources.nodes] == [
        ("k-1", 4, 400),
        ("k-0", 2, 200),
    ]
    assert [(one.node, one.core_bitmap, one.memory_mib) for one in await slurm.job_resources(first)] == [
        ("k-1", "0xf", 400),
        ("k-0", "0x3", 200),
    ]
    fake.clock.advance(7 * 86400)
    assert (await slurm.job(first)).is_running
    await slurm.cancel_job(first)
    job = await slurm.job(first)
    assert (str(job.state), job.exit_code and job.exit_code.signal) == ("CANCELLED", None)
    assert [str(node.state) for node in await slurm.nodes() if node.alloc_cpus] == []
    assert await slurm.job_resources(first) == ()


async def test_devices_are_given_task_by_task(slurm: SlurmClient) -> None:
    await add(slurm, "k-0", 8, gpus=2)
    await add(slurm, "k-1", 8, gpus=4)
    job_id = (await slurm.submit_job(replace(SPEC, tres_per_task="gres/gpu=1", cpus_per_task=1))).id
    assert (await slurm.job(job_id)).gres_detail == ("gpu:2(IDX:0-1)", "gpu:1(IDX:0)")
    found = await slurm.job_resources(job_id)
    assert [[(one.name, one.count, one.index) for one in node.gres] for node in found] == [
        [("gpu", 2, "0-1")],
        [("gpu", 1, "0")],
    ]


async def test_batch_jobs_get_no_external_node_and_external_ones_any(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    await add(slurm, "k-0", 8)
    with pytest.raises(errors.InvalidRequest):
        _ = await slurm.submit_job(JobSpec(script="#!/bin/sh\n"))
    fake.add_node("w-0", cpus=8)
    batch = (await slurm.submit_job(JobSpec(script="#!/bin/sh\n"))).id
    assert (await slurm.job(batch)).nodes == ("w-0",)
    external = [(await slurm.submit_job(replace(SPEC, tasks=1, cpus_per_task=7))).id for _ in range(2)]
    assert [(await slurm.job(one)).nodes for one in external] == [("k-0",), ("w-0",)]


async def test_it_is_not_requeued_and_nobody_answers_a_signal(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    await add(slurm, "k-0", 8)
    job_id = (await slurm.submit_job(SPEC)).id
    with pytest.raises(errors.SlurmError, match="2039"):
        await slurm.requeue_job(job_id)
    await slurm.cancel_job(job_id, signal="USR1")
    assert (await slurm.job(job_id)).is_running
    assert "NOT_RESPONDING" in (await slurm.node("k-0")).state
    await slurm.down_nodes(["k-0"], "gone")
    assert (await slurm.job(job_id)).state.base == "NODE_FAIL"


async def test_the_exit_code_of_its_work_goes_into_accounting(slurm: SlurmClient) -> None:
    await add(slurm, "k-0", 8)
    job_id = (await slurm.submit_job(SPEC)).id
    await slurm.cancel_job(job_id)
    assert await slurm.db.update_job(job_id, derived_exit_code=3, comment="pod a") == (job_id,)
    record = await slurm.db.job(job_id)
    assert record.derived_exit_code is not None
    assert (record.derived_exit_code.return_code, record.derived_exit_code.signal) == (3, None)
    assert record.comment == "pod a"
    for wrong in (-1, 256):
        with pytest.raises(errors.InvalidArgument, match="an exit code is 0 to 255"):
            _ = await slurm.db.update_job(job_id, derived_exit_code=wrong)


async def test_components_start_together_and_end_with_the_first(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    await add(slurm, "k-0", 4, gpus=1)
    await add(slurm, "k-1", 4)
    driver = replace(SPEC, tasks=1, tres_per_task="gres/gpu=1")
    blocked = (await slurm.submit_job(replace(SPEC, tasks=1, cpus_per_task=4, required_nodes=["k-1"]))).id
    full = (await slurm.submit_job(replace(SPEC, tasks=1, cpus_per_task=4))).id
    whole = (await slurm.submit_het_job([driver, SPEC])).id
    parts = await slurm.job_parts(whole)
    assert [(part.het_job_id, part.het_job_offset, str(part.state)) for part in parts] == [
        (whole, 0, "PENDING"),
        (whole, 1, "PENDING"),
    ]
    # Room for one component alone changes nothing.
    await slurm.cancel_job(full)
    parts = await slurm.job_parts(whole)
    assert [(str(part.state), part.nodes) for part in parts] == [("PENDING", ()), ("PENDING", ())]
    assert fake.world.nodes["k-0"].alloc_cpus == 0
    await slurm.cancel_job(blocked)
    # No two components share a node.
    assert {str(part.state) for part in await slurm.job_parts(whole)} == {"PENDING"}
    await add(slurm, "k-2", 4)
    fake.world.schedule()
    parts = await slurm.job_parts(whole)
    assert [(str(part.state), part.nodes) for part in parts] == [("RUNNING", ("k-0",)), ("RUNNING", ("k-1", "k-2"))]
    await slurm.cancel_job(whole)
    assert {str(part.state) for part in await slurm.job_parts(whole)} == {"CANCELLED"}


async def test_a_component_that_is_refused_leaves_nothing_behind(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    with pytest.raises(errors.SlurmError):
        _ = await slurm.submit_het_job([SPEC, replace(SPEC, partition="nosuch")])
    assert list(fake.world.jobs) == []


async def test_the_request_of_components_is_shown(slurm: SlurmClient, fake: FakeSlurmrestd) -> None:
    shown = await slurm.submission_request([SPEC, replace(SPEC, tasks=1)])
    assert shown.body.startswith('{"jobs":[')
    assert fake.calls("post_job_submit") == []
