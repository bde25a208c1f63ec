"""What a pending job wants is read alike from every data parser of both releases, and from the fake."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client.models import JobSpec

pytestmark = pytest.mark.smoke

if TYPE_CHECKING:
    from tests.integration.slurm_client.targets import Target


async def test_a_pending_job_says_what_it_wants(target: Target, version: str) -> None:
    spec = JobSpec(
        script="#!/bin/sh\nsleep 600\n",
        name="wishes",
        hold=True,
        nodes="1-2",
        tasks=1,
        time_limit=timedelta(minutes=5),
        working_directory="/tmp",
        standard_output="/tmp/%x-%j.out",
        other={
            "tres_per_task": "cpu=1",
            "minimum_cpus_per_node": 1,
            "temporary_disk_per_node": 1,
            "prefer": "all",
            "contiguous": True,
            "time_minimum": {"set": True, "infinite": False, "number": 3},
            "wait_for_switch": 60,
            "required_switches": {"set": True, "infinite": False, "number": 1},
            "container": "/tmp/bundle",
        },
    )
    async with target.client(version) as slurm:
        submitted = await slurm.submit_job(spec)
        try:
            job = await slurm.job(submitted.id)
        finally:
            await slurm.cancel_job(submitted.id)
    assert (job.node_count, job.max_nodes, job.max_cpus) == (1, 2, None)
    assert (job.minimum_cpus_per_node, job.minimum_tmp_disk_mib) == (1, 1)
    assert (job.tres_per_task, job.tres_per_node, job.tres_per_job, job.tres_per_socket) == ("cpu=1", "", "", "")
    assert (job.prefer, job.contiguous, job.segment_size) == ("all", True, None)
    assert (job.switches, job.switches_wait) == (1, timedelta(seconds=60))
    assert (job.time_limit, job.time_minimum) == (timedelta(minutes=5), timedelta(minutes=3))
    assert (job.container, job.submit_line) == ("/tmp/bundle", "")
    assert (job.accrue_time, job.priority_by_partition) == (None, ())
    path = f"/tmp/wishes-{job.id}.out"
    assert job.standard_output_expanded == path
    assert job.standard_output == ("/tmp/%x-%j.out" if version >= "v0.0.43" else path)
    assert job.standard_error_expanded in {"", path}


async def test_the_counters_of_both_schedulers_are_read(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        diag = await slurm.diag()
    exits = dict(diag.backfill_exit)
    assert {"end_job_queue", "bf_max_job_start", "bf_max_time", "state_changed"} <= set(exits)
    assert "end_job_queue" in dict(diag.schedule_exit)
    assert diag.backfill_depth_sum >= diag.backfill_depth_try_sum >= 0
    assert diag.backfill_queue_length_sum >= diag.backfill_queue_length_mean
    assert all(each.count and each.total_time_us >= (each.average_time_us or 0) for each in diag.rpcs_by_message)
    counted = [each.queued is not None and each.cycle_max is not None for each in diag.rpcs_by_message]
    assert counted == [version > "v0.0.40"] * len(counted)
    assert {each.name for each in diag.rpcs_by_user} >= {"root"}
