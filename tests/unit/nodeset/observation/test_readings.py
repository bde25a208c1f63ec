"""What is kept of a look at the caches is what another look, that has kept nothing, finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.observation.readings import NodeReading, PodReading, chosen
from slinky_operator.nodeset.slurm_nodes import identity
from slurm_client.models import Node
from tests.unit.nodeset.builders import NOW, node
from tests.unit.nodeset.observation.worlds import OTHER, OWN, World

OWNER = identity.tag("ns", "a")


def read(world: World, before: PodReading | None = None) -> PodReading:
    return (before or PodReading()).again(world.pods.find("nodeset", OWN), "a", NOW)


def test_a_pod_that_has_changed_is_read_again_and_no_other() -> None:
    world = World(pods=5)
    before = read(world)
    assert read(world, before) is before
    world.put("a-3", OWN, host="machine")
    now = read(world, before)
    assert [old is new for old, new in zip(before.pods, now.pods, strict=True)] == [True, True, True, False, True]
    assert now.pods[3].host == "machine"
    assert now.node_names is before.node_names
    assert now.pods == read(world).pods


def test_it_is_kept_when_a_start_was_first_seen() -> None:
    world = World(pods=1)

    def seen_at(before: PodReading, minutes: int) -> PodReading:
        return before.again(world.pods.find("nodeset", OWN), "a", NOW + timedelta(minutes=minutes))

    def minute(reading: PodReading) -> float:
        seen = reading.pods[0].seen_at
        assert seen is not None
        return (seen - NOW) / timedelta(minutes=1)

    reading = seen_at(PodReading(), 1)
    assert minute(reading) == 1
    steps: list[tuple[dict[str, Any], int]] = [
        ({"host": "machine"}, 2),
        ({"host": "machine", "node_name": "x"}, 2),
        ({"host": "machine", "started": NOW}, 4),
        ({"host": "machine", "started": NOW, "node_name": "x"}, 4),
        # It has ended, and starts again.
        ({"host": "machine"}, 4),
        ({"host": "machine", "started": NOW + timedelta(minutes=1)}, 7),
    ]
    for number, (values, expected) in enumerate(steps, 2):
        world.put("a-0", OWN, **values)
        reading = seen_at(reading, number)
        assert minute(reading) == expected, (number, values)


@pytest.mark.parametrize("name", ["a-1", "a-9"])
def test_another_pod_in_its_place_has_its_own_place_and_name(name: str) -> None:
    world = World(pods=3)
    before = read(world)
    world.remove("a-1")
    world.put(name, OWN, node_name="another")
    now = read(world, before)
    assert now.pods == read(world).pods
    assert now.node_names == {"a-0", "a-2", "another"}


def test_pods_that_come_and_go_in_any_order() -> None:
    luck, world = Random(7), World(pods=4)  # noqa: S311 - to be repeated
    before = read(world)
    for _ in range(300):
        name = f"a-{luck.randrange(12)}"
        match luck.randrange(3):
            case 0:
                world.remove(name)
            case 1:
                world.put(name, luck.choice([OWN, OTHER, None]), node_name=luck.choice(["", "x", "y"]))
            case _:
                world.put(name, OWN, host=luck.choice(["", "machine"]))
        before = read(world, before)
        fresh = read(world)
        assert (before.pods, before.node_names) == (fresh.pods, fresh.node_names)


def reading(nodes: dict[str, str]) -> NodeReading:
    return chosen(
        "a", OWNER, frozenset({"given"}), None, {name: node(name=name, extra=of) for name, of in nodes.items()}
    )


def test_records_that_have_not_changed_stay_the_same() -> None:
    before = reading({"a-0": OWNER, "b-0": "ns/b", "given": "", "a-7": ""})
    assert before.own.keys() == {"a-0", "given", "a-7"}
    assert before.again(before.all) is before
    assert before.again(dict(before.all)).own is before.own
    other = {**before.all, "b-0": node("MIXED", name="b-0", extra="ns/b")}
    assert before.again(other).own is before.own
    changed = {**before.all, "a-0": node("MIXED", name="a-0", extra=OWNER)}
    now = before.again(changed)
    assert now.own == {**before.own, "a-0": changed["a-0"]}
    assert before.own["a-0"] is before.all["a-0"]


def test_what_is_chosen_again_is_what_is_chosen_at_once() -> None:
    luck = Random(3)  # noqa: S311 - to be repeated
    names, nodes = frozenset[str](), dict[str, Node]()
    before = chosen("a", OWNER, names, None, nodes)
    for _ in range(300):
        name = luck.choice(["a-0", "a-1", "b-0", "b-1", "given"])
        match luck.randrange(3):
            case 0:
                nodes = {one: record for one, record in nodes.items() if one != name}
            case 1:
                nodes = {**nodes, name: node(name=name, extra=luck.choice([OWNER, "ns/b"]))}
            case _:
                names = names ^ {name}
        before = (before if before.node_names == names else before.renamed(names)).again(nodes)
        fresh = chosen("a", OWNER, names, None, nodes)
        assert (list(before.own.items()), before.node_names) == (list(fresh.own.items()), fresh.node_names)


def test_records_that_change_hands_come_and_go() -> None:
    before = reading({"a-0": OWNER, "b-0": "ns/b"})
    taken = before.again({**before.all, "b-0": node(name="b-0", extra=OWNER)})
    assert taken.own.keys() == {"a-0", "b-0"}
    assert taken.again(before.all).own.keys() == {"a-0"}
    assert before.again({}).own == {}
    assert before.again({**before.all, "a-1": node(name="a-1")}).own.keys() == {"a-0", "a-1"}


def test_on_hosts_their_names_count() -> None:
    hosts = {"h": KubernetesNode("h", node_name="w-0")}
    nodes = {"w-0": node(name="w-0", extra=""), "a-0": node(name="a-0", extra="")}
    found = chosen("a", OWNER, frozenset(), hosts, nodes)
    assert found.own.keys() == {"w-0"}
    assert found.again({**nodes, "w-0": replace(nodes["w-0"], reason="x")}).own["w-0"].reason == "x"
