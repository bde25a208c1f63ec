"""The end of a NodeSet: when it is let go, and what is still done for one that others hold."""

from __future__ import annotations

import pytest

from slinky_api import labels
from tests.unit.nodeset.model import harness
from tests.unit.nodeset.model.objects import NAMESPACE, NODESET, Object
from tests.unit.nodeset.model.world import World

KEY = NAMESPACE, NODESET


async def empty(replicas: int = 0) -> tuple[World, harness.Run]:
    """A NodeSet of so many pods."""
    world = await harness.begin()
    run = harness.Run(world)
    world.do_scale(replicas)
    await run.settle()
    return world, run


def found(world: World) -> Object:
    assert world.nodeset is not None
    return world.nodeset


async def test_what_others_hold_is_let_go_once() -> None:
    world, run = await empty()
    found(world)["metadata"]["finalizers"].append("somebody/else")
    world.do_delete(0)
    run.see(len(world.log))

    await run.one_pass()
    run.see(len(world.log))
    assert found(world)["metadata"]["finalizers"] == ["somebody/else"]

    # The status is written once more, and then there is nothing to come again for.
    await run.one_pass()
    run.see(len(world.log))
    before = world.counter
    assert (await run.controller.reconcile(KEY)).requeue_after is None
    assert world.counter == before


@pytest.mark.parametrize("by", ["guard", "NodeSet"])
async def test_a_pod_without_our_labels_keeps_the_nodeset_that_it_would_go_with(by: str) -> None:
    world, run = await empty(1)
    (pod,) = world.pods.values()
    pod["metadata"]["labels"] = {}
    owners = pod["metadata"]["ownerReferences"]
    pod["metadata"]["ownerReferences"] = [one for one in owners if (one["kind"] == "ConfigMap") == (by == "guard")]
    world.tell("pods", "DELETED", pod)
    world.do_delete(0)
    run.see(len(world.log))

    result = await run.controller.reconcile(KEY)

    assert labels.FINALIZER_NODESET_DRAIN in found(world)["metadata"]["finalizers"]
    assert world.maps
    assert world.pods
    conditions = {one["type"]: one for one in found(world)["status"]["conditions"]}
    assert f"pod {pod['metadata']['name']} has lost its label" in conditions["Degraded"]["message"]
    assert result.requeue_after is not None
    assert result.requeue_after >= 1


async def test_the_record_of_a_pod_without_our_labels_is_neither_deleted_nor_asked_about_all_the_time() -> None:
    world, run = await empty(1)
    (pod,) = world.pods.values()
    name = pod["metadata"]["name"]
    pod["metadata"]["labels"] = {}
    # A cache of pods with our labels shows it no more.
    world.tell("pods", "DELETED", pod)
    run.see(len(world.log))

    result = await run.controller.reconcile(KEY)

    assert name in world.records
    assert result.requeue_after is not None
    assert result.requeue_after >= 1
    conditions = {one["type"]: one for one in found(world)["status"]["conditions"]}
    assert f"the record of node {name} is not touched" in conditions["Degraded"]["message"]
