"""An observer that remembers what it found of others' pods finds what one finds that has just been made."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.status import RegisteredPods
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import identity
from tests.unit.nodeset import builders
from tests.unit.nodeset.observation.worlds import CREATED, OTHER, OWN, World

HOSTS = ("0", "1", "4", "a-4")
"""Kubernetes Nodes, with names that pods of the dice have."""


def found(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.foreign_pods,
        snapshot.names_of_other_nodesets,
        snapshot.stripped,
        {pod.name for pod in snapshot.pods},
        snapshot.slurm.nodes.keys(),
    )


def test_without_a_change_nobody_looks_again_for_pods_of_others() -> None:
    world = World()
    assert found(world.observe(world.kept))[:2] == ({}, {})
    looks = world.pods.looks
    assert looks > 0
    # A pod becomes ready, and a node busy.
    world.put("a-0", OWN)
    _ = world.observe(world.kept)
    assert world.pods.looks == looks


@pytest.mark.parametrize("uid", [OTHER, None])
def test_a_pod_of_another_with_a_name_of_ours_is_found_when_it_comes(uid: str | None) -> None:
    world = World()
    assert world.observe(world.kept).foreign_pods == {}
    world.put("a-3", uid)
    assert world.observe(world.kept).foreign_pods.keys() == {"a-3"}
    world.remove("a-3")
    assert world.observe(world.kept).foreign_pods == {}


def test_a_node_of_another_nodeset_is_found_when_its_name_becomes_one_of_ours() -> None:
    world = World()
    world.put("b-0", OTHER, node_name="a-9")
    assert world.observe(world.kept).names_of_other_nodesets == {}
    world.replicas = 10
    assert world.observe(world.kept).names_of_other_nodesets == {"a-9": "name-of-other-uid"}


async def test_many_new_pods_are_read_in_slices_and_as_they_are_in_the_end() -> None:
    pods = 3000
    world = World(pods=pods, replicas=pods)
    ready = asyncio.ensure_future(world.kept.read_ahead(world.nodeset))
    turns = 0
    while not ready.done():
        turns += 1
        # Meanwhile one comes, one goes, and one is bound.
        if turns == 2:
            world.put(f"a-{pods}", OWN)
            world.remove("a-1")
            world.put("a-2", OWN, host="host")
        await asyncio.sleep(0)
    assert turns > 3
    seen, fresh = world.observe(world.kept), world.observe(world.observer())
    assert seen.pods == fresh.pods
    assert {"a-2": "host"}.items() <= {pod.name: pod.host for pod in seen.pods}.items()
    assert f"a-{pods}" in {pod.name for pod in seen.pods}


async def test_many_pods_that_have_changed_are_read_in_slices() -> None:
    pods = 3000
    world = World(pods=pods, replicas=pods)
    await world.kept.read_ahead(world.nodeset)
    before = world.observe(world.kept).pods
    for number in range(pods):
        world.put(f"a-{number}", OWN, host="host")
    world.registered = RegisteredPods(ordinals=f"0-{pods}", created_until=CREATED)
    ready = asyncio.ensure_future(world.kept.read_ahead(world.nodeset))
    turns = 0
    while not ready.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 3
    read = world.kept._pods_read[OWN].pods
    assert len(read) == len(before) == pods
    assert all(pod.host == "host" and pod.registered for pod in read)
    assert world.observe(world.kept).pods is read
    assert read == world.observe(world.observer()).pods


async def test_a_few_pods_that_have_changed_are_read_at_once() -> None:
    world = World(pods=300, replicas=300)
    await world.kept.read_ahead(world.nodeset)
    # One goes and one comes, and all after them have another place in the cache.
    world.remove("a-0")
    world.put("a-300", OWN)
    before = world.kept._pods_read[OWN]
    await world.kept.read_ahead(world.nodeset)
    assert world.kept._pods_read[OWN] is before
    assert world.observe(world.kept).pods == world.observe(world.observer()).pods


def test_pods_that_the_status_names_have_registered() -> None:
    world = World(pods=4, replicas=4)
    world.registered = RegisteredPods(ordinals="0-1,3", created_until=CREATED)
    first = world.observe(world.kept).pods
    assert [(one.registered, one.unmarked) for one in first] == [
        (True, True),
        (True, True),
        (False, False),
        (True, True),
    ]
    world.put("a-3", OWN, host="host")
    world.registered = None
    again = world.observe(world.kept, registered=frozenset({"pod-a-3"})).pods
    # What has not changed is the same object; what has is known by what was written, which the cache lacks.
    assert all(one is other for one, other in zip(first[:3], again[:3], strict=True))
    assert (again[3].host, again[3].registered, again[3].unmarked) == ("host", True, True)


def change(world: World, dice: random.Random) -> None:
    """One of the things that happen to pods, nodes and the NodeSet."""
    name = f"{dice.choice('ab')}-{dice.randrange(6)}"
    what = dice.randrange(6)
    if what == 0:
        world.remove(name)
    elif what == 1:
        world.replicas = dice.randrange(7)
    elif what == 2:
        world.padding = dice.choice([0, 0, 2])
    elif what == 3:
        node = f"{dice.choice(['a', 'b', 'x'])}-{dice.randrange(8)}"
        if world.nodes.pop(node, None) is None:
            extra = dice.choice([identity.tag("ns", "a"), "of another", ""])
            world.nodes[node] = builders.node(name=node, extra=extra)
    else:
        host, node_name = dice.choice(["", "host"]), dice.choice(["", "", "a-4"])
        world.put(name, dice.choice([OWN, OTHER, None]), host=host, node_name=node_name)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_remembered_is_what_a_new_observer_finds(seed: int) -> None:
    dice, world = random.Random(seed), World()  # noqa: S311 a test's dice
    for _ in range(60):
        change(world, dice)
        assert found(world.observe(world.kept)) == found(world.observe(world.observer()))


def names_of_others(world: World) -> tuple[set[str], set[str]]:
    """Of pods that are not the NodeSet's, names of pods and of nodes that it could have, by going through all names."""
    nodeset, pods = world.nodeset, world.pods.items("ns")
    own = {pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get(labels.LABEL_NODESET_UID) == OWN}
    numbers = range(world.replicas + len(own))
    numbered = {f"{nodeset.name}-{number:0{max(world.padding, 1)}d}" for number in numbers}
    possible = {*world.observe(world.observer()).slurm.nodes, *(HOSTS if world.hosts is not None else numbered)}
    names = {f"a-{node}" for node in possible} if world.hosts is not None else possible
    others = [pod for pod in pods if pod["metadata"]["name"] not in own]
    named = {pod["spec"]["hostname"] for pod in others if labels.LABEL_NODESET_UID in pod["metadata"]["labels"]}
    return {pod["metadata"]["name"] for pod in others} & names, named & possible


@pytest.mark.parametrize("hosts", [(), HOSTS], ids=["numbered", "on hosts"])
@pytest.mark.parametrize("seed", range(20))
def test_the_names_of_others_are_those_that_one_of_ours_could_have(seed: int, hosts: tuple[str, ...]) -> None:
    dice, world = random.Random(seed), World(hosts=hosts)  # noqa: S311 a test's dice
    for _ in range(60):
        change(world, dice)
        seen = world.observe(world.kept)
        assert ({*seen.foreign_pods}, {*seen.names_of_other_nodesets}) == names_of_others(world)


def test_a_node_whose_slurmd_started_after_its_last_pod_had_ended_has_not_ended() -> None:
    world = World(pods=1)
    ended = datetime(2026, 11, 1, 12, tzinfo=UTC)
    for name, started in (("a-1", ended - timedelta(hours=1)), ("a-2", ended + timedelta(hours=1))):
        world.nodes[name] = replace(builders.node(name=name), slurmd_start_time=started)
    seen = world.observer().observe(world.nodeset, ended={"a-1": ended, "a-2": ended, "a-3": None})
    assert seen.ended == {"a-1", "a-3"}
