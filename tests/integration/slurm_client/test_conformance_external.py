"""External jobs on external nodes: submitted, given CPUs and devices, and cancelled; real clusters and the fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import JobSpec
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from slurm_client import SlurmClient
    from tests.integration.slurm_client.targets import Target

SPEC = JobSpec(
    name="pods", tasks=3, cpus_per_task=2, constraints="k8s", flags=["EXTERNAL_JOB"], tres_per_task="gres/gpu=1"
)


async def create(target: Target, names: list[str]) -> None:
    async with target.client(None) as slurm:
        for name, devices in zip(names, (2, 1), strict=True):
            files = ",".join(f"file=gpu-{number}" for number in range(devices))
            await slurm.create_node(
                f"NodeName={name} NodeAddr=127.0.0.1 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 CPUs=4 "
                f"RealMemory=1000 State=EXTERNAL Feature=k8s Gres=gpu:{devices} "
                f'GresConf="name=gpu,count={devices},{files}"'
            )


async def is_running(slurm: SlurmClient, job_id: int) -> bool:
    return str((await slurm.job(job_id)).state) == "RUNNING"


async def test_an_external_job_runs_on_external_nodes_until_it_is_cancelled(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.43":
            with pytest.raises(errors.NotSupported, match="EXTERNAL_JOB"):
                await slurm.submit_job(SPEC)
            return
        names = [target.name(), target.name()]
        await create(target, names)
        submitted = await slurm.submit_job(SPEC)
        await until(lambda: is_running(slurm, submitted.id))
        job = await slurm.job(submitted.id)
        assert (job.nodes, job.batch, "EXTERNAL_JOB" in job.flags) == (tuple(names), False, True)
        assert job.details.resources is not None
        assert [(one.name, one.cpus) for one in job.details.resources.nodes] == [(names[0], 4), (names[1], 2)]
        assert job.gres_detail == ("gpu:2(IDX:0-1)", "gpu:1(IDX:0)")
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.job_resources(submitted.id)
        else:
            found = await slurm.job_resources(submitted.id)
            assert [(one.node, int(one.core_bitmap, 16).bit_count()) for one in found] == [(names[0], 4), (names[1], 2)]
            assert [[(each.name, each.count, each.index) for each in one.gres] for one in found] == [
                [("gpu", 2, "0-1")],
                [("gpu", 1, "0")],
            ]
        async with target.client(None) as newest:
            with pytest.raises(errors.SlurmError) as refused:
                await newest.requeue_job(submitted.id)
            assert refused.value.number == 2039
        await slurm.cancel_job(submitted.id)
        job = await slurm.job(submitted.id)
        assert (str(job.state), job.exit_code and job.exit_code.signal) == ("CANCELLED", None)
        for name in names:
            await target_delete(target, name)


async def target_delete(target: Target, name: str) -> None:
    async with target.client(None) as slurm:
        await slurm.delete_node(name)


async def test_what_has_a_script_or_no_flag_is_refused_by_slurm_itself(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        if version < "v0.0.43":
            return
        path = f"/slurm/{version}/job/submit"
        body = {"script": "#!/bin/sh\n", "job": {"flags": ["EXTERNAL_JOB"], "environment": ["A=b"]}}
        with pytest.raises(errors.SlurmError) as refused:
            await slurm.request("POST", path, body=body)
        assert refused.value.number == 2189
        with pytest.raises(errors.SlurmError) as refused:
            await slurm.request("POST", path, body={"job": {"name": "p"}})
        assert refused.value.number == 9000
