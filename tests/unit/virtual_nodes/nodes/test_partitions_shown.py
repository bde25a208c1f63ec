"""Partitions in the status of a Cluster: what each has, what waits for it, and how often that is written."""

from __future__ import annotations

import asyncio

from slinky_operator.virtual_nodes.nodes.controller import PARTITIONS_EVERY_S
from slinky_operator.virtual_nodes.nodes.model.partition_status import MOST
from slinky_operator.virtual_nodes.nodes.partition_poll import EVERY_S, JOBS_EVERY_S
from tests.unit.virtual_nodes.nodes.worlds import KEY, World, cluster, job, partition, slurm_node

NONE = {"running": 0, "pending": 0, "waiting": []}


def written(world: World) -> int:
    """How often partitions were written."""
    return sum("partitions" in one for one in world.kube.statuses)


async def test_partitions_are_shown_with_what_they_have_and_what_waits() -> None:
    world = World(cluster())
    world.slurm.all = [partition("debug", "DRAIN"), partition("GPU")]
    world.slurm.jobs = [
        job(1, "debug", state="RUNNING"),
        job(2, "debug", "Priority"),
        job(3, "debug,GPU", "Resources"),
        job(4, "GPU", "Resources"),
        job(5, "GPU", state="COMPLETED"),
    ]
    _ = await world.step()
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    assert world.partitions == [
        {
            "name": "GPU",
            "state": "UP",
            "nodes": 1,
            "cpus": 32,
            "gpus": 4,
            "jobs": {"running": 0, "pending": 2, "waiting": [{"reason": "Resources", "jobs": 2}]},
        },
        {
            "name": "debug",
            "state": "DRAIN",
            "nodes": 2,
            "cpus": 40,
            "gpus": 4,
            "jobs": {
                "running": 1,
                "pending": 2,
                "waiting": [{"reason": "Priority", "jobs": 1}, {"reason": "Resources", "jobs": 1}],
            },
        },
    ]


async def test_they_are_written_when_something_has_changed_and_then_every_five_seconds_at_most() -> None:
    world = World(cluster(partitions=["debug"]))
    _ = await world.step()
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    assert world.partitions[0]["jobs"] == NONE
    for _ in range(5):
        _ = await world.step(seconds=60)
    assert written(world) == 1
    for second in range(20):
        world.slurm.nodes = {**world.slurm.nodes, f"n-{second}": slurm_node(f"n-{second}", "debug")}
        _ = await world.step(seconds=1)
    # A write in the first second, and each five seconds after it.
    assert written(world) == 1 + 4
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    assert world.partitions[0]["nodes"] == 22


async def test_jobs_are_listed_only_where_nobody_else_does() -> None:
    world = World(cluster(partitions=["debug"]))
    _ = await world.step()
    assert world.slurm.jobs_asked == 1
    for _ in range(10):
        world.slurm.list_jobs()
        _ = await world.step(seconds=EVERY_S)
    assert world.slurm.jobs_asked == 1
    world.slurm.jobs = [job(1, "debug", state="RUNNING")]
    for _ in range(4):
        _ = await world.step(seconds=JOBS_EVERY_S / 3)
    assert world.slurm.jobs_asked == 2
    assert world.partitions[0]["jobs"] == {**NONE, "running": 1}


async def test_a_list_of_jobs_that_hangs_does_not_delay_partitions() -> None:
    world = World(cluster(partitions=["debug"]))
    world.slurm.jobs_hang = True
    task = asyncio.create_task(world.poll.run())
    try:
        world.poll.subscribe(lambda _: None)
        for asked in range(1, 4):
            while world.slurm.asked < asked:
                _ = await world.reconciler.reconcile(KEY)
                await asyncio.sleep(0)
            world.seconds += 61
    finally:
        _ = task.cancel()
        await asyncio.wait({task})
    assert (world.slurm.asked, world.slurm.jobs_asked) == (3, 1)


async def test_what_is_pending_is_not_made_up_where_only_running_jobs_are_read() -> None:
    world = World(cluster(partitions=["debug", "GPU"]))
    world.slurm.lists_all = False
    world.slurm.jobs = [job(1, "debug", state="RUNNING")]
    _ = await world.step()
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    assert [one["jobs"] for one in world.partitions] == [
        {"running": 0, "waiting": []},
        {"running": 1, "waiting": []},
    ]


async def test_an_operator_that_has_just_started_keeps_what_is_shown() -> None:
    world = World(cluster(partitions=["debug"]))
    world.slurm.jobs = [job(1, "debug", "Priority")]
    _ = await world.step()
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    before = world.partitions
    assert before[0]["jobs"]["pending"] == 1
    world.slurm.partition_jobs = None
    world.slurm.jobs_hang = True
    world.slurm.away()
    _ = await world.step(seconds=60)
    world.slurm.back()
    _ = await world.step(seconds=60)
    assert world.partitions == before


async def test_they_go_with_the_wish_for_virtual_nodes() -> None:
    world = World(cluster())
    _ = await world.step()
    assert world.partitions
    other = cluster("other", created="2025-01-01T00:00:00Z")
    world.kube.put(world.reconciler.resource, other)
    _ = await world.step(seconds=60)
    assert world.shown()["reason"] == "HostTaken"
    assert not world.partitions


async def test_no_more_partitions_are_shown_than_the_status_has_room_for() -> None:
    world = World(cluster())
    world.slurm.all = [partition(f"p-{number:03}") for number in range(2 * MOST)] + [partition("x" * 300)]
    _ = await world.step()
    assert [one["name"] for one in world.partitions] == [f"p-{number:03}" for number in range(MOST)]
