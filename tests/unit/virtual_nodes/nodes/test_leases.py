"""Leases of virtual Nodes: made, renewed, and by nobody who does not lead."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import LEASES, VIRTUAL_NODES
from slinky_operator.virtual_nodes.nodes.leases import NAMESPACE
from tests.unit.virtual_nodes.nodes.worlds import World, cluster


async def test_each_virtual_node_has_a_lease_that_goes_with_it_and_no_other_node() -> None:
    world = World(cluster())
    _ = await world.step()
    world.kube.put(VIRTUAL_NODES, {"metadata": {"name": "worker-1"}})
    assert await world.leases.renew()
    leases = {name: obj for (kind, where, name), obj in world.kube.objects.items() if kind == "leases"}
    assert sorted(leases) == ["slurm-site-debug", "slurm-site-gpu"]
    lease = leases["slurm-site-gpu"]
    assert lease["metadata"]["namespace"] == NAMESPACE
    uid = world.node("gpu")["metadata"]["uid"]
    assert [one["uid"] for one in lease["metadata"]["ownerReferences"]] == [uid]
    assert lease["spec"] == {
        "holderIdentity": "slurm-site-gpu",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-11-27T18:00:00.000000Z",
    }
    world.seconds = 10
    assert await world.leases.renew()
    renewed = world.kube.find(LEASES, "slurm-site-gpu", NAMESPACE)
    assert renewed is not None
    assert renewed["spec"]["renewTime"] == "2026-11-27T18:00:10.000000Z"
    assert renewed["metadata"]["uid"] == lease["metadata"]["uid"]
    assert world.renewed == [world.now().timestamp() - 10, world.now().timestamp()]


@pytest.mark.parametrize(("error", "went_well"), [(errors.Fenced, True), (errors.Unavailable, False)])
async def test_a_process_that_does_not_lead_waits_and_one_that_fails_tries_again_soon(
    error: type[errors.KubeError], went_well: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(cluster())
    _ = await world.step()

    async def failing(*_: Any, **__: Any) -> Object:
        raise error(Target("patch", "leases", NAMESPACE, "a"), "no", status=0)

    monkeypatch.setattr(world.kube, "merge_patch", failing)
    assert await world.leases.renew() is went_well
    assert world.renewed == []


async def test_a_new_node_has_its_lease_at_once() -> None:
    world = World(cluster())
    task = asyncio.create_task(world.leases.run())
    _ = await world.step()
    async with asyncio.timeout(120):
        while len([one for one in world.kube.objects if one[0] == "leases"]) < 2:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
    _ = task.cancel()
