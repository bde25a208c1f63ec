"""The end of a NodeSet: when it is released, and what is still done while other finalizers keep it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Store
from slinky_operator.nodeset.execute import finalizer
from tests.unit.nodeset.simulation import harness, settling
from tests.unit.nodeset.simulation.objects import CLUSTER, NAMESPACE, NODESET, Object
from tests.unit.nodeset.simulation.world import World

KEY = NAMESPACE, NODESET


class Theirs:
    """An API server with one pod of another operator."""

    def __init__(self, pod: Object) -> None:
        self.pod = pod

    async def each(self, *given: Any, **named: Any) -> AsyncIterator[Object]:
        yield self.pod

    async def create(self, resource: Any, body: Object) -> Object:
        return {"metadata": {"uid": "guard"}}

    async def merge_patch(self, resource: Any, name: str, patch: Object, *given: Any, **named: Any) -> Object:
        metadata = {**self.pod["metadata"], "resourceVersion": "7", "labels": patch["metadata"]["labels"]}
        return {**self.pod, "metadata": metadata}


async def test_nothing_is_counted_before_the_cache_has_shown_what_was_taken_over() -> None:
    owner = {"kind": "NodeSet", "name": "a", "uid": "set", "controller": True}
    metadata = {"name": "a-x", "namespace": "ns", "uid": "u", "resourceVersion": "6", "ownerReferences": [owner]}
    kube = Theirs({"metadata": metadata, "spec": {}})
    store = Store()
    expectations = Expectations(store)
    context: Any = SimpleNamespace(
        kube=kube,
        nodeset=NodeSet.parse(
            {"metadata": {"name": "a", "namespace": "ns", "uid": "set"}, "spec": {"clusterName": "c"}}
        ),
        cluster=Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "c"}, "spec": {}}),
        guards={},
        expectations=expectations,
        say=lambda *words: None,
    )

    await finalizer.take_over(context)

    # A cache of pods with our labels has never shown it.
    assert not expectations.satisfied("set")
    shown = await kube.merge_patch(None, "a-x", {"metadata": {"labels": {}}})
    expectations.observe(None, shown)
    assert expectations.satisfied("set")


async def empty(replicas: int = 0) -> tuple[World, harness.Run]:
    """A NodeSet of so many pods."""
    world = await settling.begin()
    run = harness.Run(world)
    world.do_scale(replicas)
    await settling.settle(run)
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
    assert f"pod {name} has lost its labels" in conditions["Degraded"]["message"]
    assert conditions["Degraded"]["reason"] == "LabelsLost"


def strip(world: World, run: harness.Run, *lost: str) -> str:
    """Take labels off the only pod, which the operator's cache then shows no more; gives its name."""
    (pod,) = world.pods.values()
    for label in lost:
        del pod["metadata"]["labels"][label]
    world.tell("pods", "DELETED", pod)
    run.see(len(world.log))
    return str(pod["metadata"]["name"])


def degraded(world: World) -> Object:
    conditions: list[Object] = found(world)["status"]["conditions"]
    return next(one for one in conditions if one["type"] == "Degraded")


@pytest.mark.parametrize("drained", [False, True])
async def test_a_pod_without_the_name_of_its_cluster_is_told_with_that_label_alone(drained: bool) -> None:
    world, run = await empty(1)
    name = strip(world, run, labels.LABEL_CLUSTER_NAME)
    if drained:
        world.do_admin_drains(0)
        world.do_poll(0)

    result = await run.controller.reconcile(KEY)

    assert name in world.records
    assert result.requeue_after is not None
    assert result.requeue_after >= 1
    told = degraded(world)
    assert told["reason"] == "LabelsLost"
    assert told["message"].startswith(f"pod {name} has lost its label {labels.LABEL_CLUSTER_NAME}, by which")
    assert told["message"].endswith(f" --overwrite {labels.LABEL_CLUSTER_NAME}={CLUSTER}")


async def test_the_command_gives_back_all_labels_by_which_the_caches_find_a_pod() -> None:
    world, run = await empty(1)
    (pod,) = world.pods.values()
    before = dict(pod["metadata"]["labels"])
    strip(world, run, *before)

    await run.controller.reconcile(KEY)

    given = dict(word.split("=") for word in degraded(world)["message"].partition(" --overwrite ")[2].split())
    assert given.items() <= before.items()
    assert {
        labels.LABEL_CLUSTER_NAME,
        labels.LABEL_DAEMON,
        labels.LABEL_NODESET_NAME,
        labels.LABEL_NODESET_UID,
        labels.LABEL_REVISION,
    } <= given.keys()


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ((labels.LABEL_CLUSTER_NAME,), f"has lost its label {labels.LABEL_CLUSTER_NAME}"),
        ((labels.LABEL_NODESET_UID,), f"has lost its label {labels.LABEL_NODESET_UID}"),
        ((), "is there already, and the operator's cache has yet to show it"),
    ],
)
async def test_a_pod_that_is_there_and_not_in_the_cache_is_not_created_again_and_again(
    lost: tuple[str, ...], told: str
) -> None:
    world, run = await empty(1)
    name = strip(world, run, *lost)
    # Without a record nothing tells that the node answers, so its pod is not looked up.
    world.do_slurm_forgets(0)
    world.do_time(0)
    world.do_poll(0)

    result = await run.controller.reconcile(KEY)

    assert result.requeue_after is not None
    assert result.requeue_after >= 1
    assert f"pod {name} {told}" in degraded(world)["message"]


async def test_a_nodeset_says_why_the_pod_that_it_waits_for_is_not_drained() -> None:
    world, run = await empty(1)
    name = strip(world, run, labels.LABEL_CLUSTER_NAME)
    world.do_slurm_forgets(0)
    world.do_poll(0)
    world.do_delete(0)
    run.see(len(world.log))

    await run.controller.reconcile(KEY)

    assert labels.FINALIZER_NODESET_DRAIN in found(world)["metadata"]["finalizers"]
    assert f"pod {name} has lost its label {labels.LABEL_CLUSTER_NAME}" in degraded(world)["message"]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
async def test_a_pod_gets_back_the_revision_that_pods_had_before_the_update(
    cached: bool, known: bool, deleted: bool
) -> None:
    world, run = await empty(1)
    (pod,) = world.pods.values()
    before = pod["metadata"]["labels"][labels.LABEL_REVISION]
    lost = [labels.LABEL_NODESET_UID, labels.LABEL_REVISION]
    if cached:
        for label in lost:
            del pod["metadata"]["labels"][label]
        world.tell("pods", "MODIFIED", pod)
    else:
        strip(world, run, *lost)
    if not known:
        world.do_slurm_forgets(0)
        world.do_poll(0)
    world.do_edit(0)
    if deleted:
        world.do_delete(0)
    run.see(len(world.log))

    await run.controller.reconcile(KEY)

    assert f" {labels.LABEL_REVISION}={before}" in degraded(world)["message"]
