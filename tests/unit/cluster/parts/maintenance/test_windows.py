"""Which reservations Slurm is to have."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from slinky_operator.cluster.parts.maintenance.windows import mark, wanted
from slinky_operator.slurm.nodes.drain_reasons import PREFIX
from tests.unit.cluster.parts.maintenance.worlds import NIGHT, NODES, node, show, world
from tests.unit.cluster.world import World

DAY = timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def reserved(one: World) -> dict[str, set[str]]:
    """Nodes of each wanted reservation, by the middle of its name."""
    snapshot = one.snapshot()
    end = f"-{mark(snapshot.cluster)}"
    found = wanted(snapshot, one.wall)
    assert all(each.name.startswith("slurm-operator-") and each.name.endswith(end) for each in found)
    return {each.name.removeprefix("slurm-operator-").removesuffix(end): set(each.nodes) for each in found}


def test_a_window_is_reserved_from_its_announcement_to_its_end() -> None:
    once = {"name": "once", "start": "2026-12-10T02:00:00Z", "duration": "1h", "announceBefore": "48h"}
    for now, count in (
        ("2026-12-08T01:59:59Z", 0),
        ("2026-12-08T02:00:00Z", 1),
        ("2026-12-10T02:59:59Z", 1),
        ("2026-12-10T03:00:00Z", 0),
    ):
        assert len(reserved(world(once, now=at(now)))) == count, now


def test_the_next_period_is_reserved_while_one_is_on() -> None:
    everything = {one.name for one in NODES}
    assert reserved(world(NIGHT, now=at("2026-11-28T05:59:00Z"))) == {
        "night-20261128T020000Z": everything,
        "night-20261129T020000Z": everything,
    }
    soon: dict[str, Any] = {**NIGHT, "announceBefore": "1h"}
    assert reserved(world(soon, now=at("2026-11-28T05:59:00Z"))) == {"night-20261128T020000Z": everything}


def test_only_nodes_of_the_named_nodesets_are_in_it() -> None:
    assert set(reserved(world({**NIGHT, "nodeSets": ["a"]})).values().__iter__().__next__()) == {"a-0", "a-1"}
    assert reserved(world({**NIGHT, "nodeSets": ["c"]})) == {}


def test_nodes_that_join_are_in_it_and_those_that_slurm_hides_are_not() -> None:
    one = world({**NIGHT, "nodeSets": ["a"]})
    show(one, (*NODES, node("a-2", "a"), node("a-3", "a", "FUTURE")))
    assert reserved(one)["night-20261129T020000Z"] == {"a-0", "a-1", "a-2"}


def test_without_a_node_nothing_is_reserved() -> None:
    assert reserved(world(NIGHT, nodes=())) == {}


def test_a_node_that_the_operator_has_drained_can_leave_once_the_window_is_on() -> None:
    own, other = f"{PREFIX}update (here/a)", "broken fan"
    nodes = (node("a-0", "a", "IDLE+DRAIN", own), node("a-1", "a", "IDLE+DRAIN", other), node("b-0", "b"))
    before = world(NIGHT, nodes=nodes)
    assert reserved(before)["night-20261129T020000Z"] == {"a-0", "a-1", "b-0"}
    during = world(NIGHT, nodes=nodes, now=at("2026-11-28T03:00:00Z"))
    assert reserved(during)["night-20261128T020000Z"] == {"a-1", "b-0"}


def test_a_window_that_overlaps_itself_is_not_reserved_and_others_are() -> None:
    found = reserved(world({**NIGHT, "duration": "25h"}, {**NIGHT, "name": "good"}))
    assert {name.partition("-")[0] for name in found} == {"good"}


def updated(generation: int | None = 1, **counts: int) -> dict[str, Any]:
    every = dict.fromkeys(("desired", "replicas", "updatedReplicas", "readyReplicas"), 2)
    return {"observedGeneration": generation, **every, **counts}


def test_a_window_is_released_early_once_no_update_is_left() -> None:
    early = {**NIGHT, "nodeSets": ["a"], "holdUpdates": True, "releaseEarly": True, "announceBefore": "1h"}
    one = world(early, now=at("2026-11-28T03:00:00Z"))
    one.node_sets["a"]["metadata"]["generation"] = 1
    for status, released in (
        (updated(), True),
        (updated(updatedReplicas=1), False),
        (updated(readyReplicas=1), False),
        (updated(replicas=3), False),
        (updated(generation=None), False),
    ):
        one.node_sets["a"]["status"] = status
        assert (reserved(one) == {}) is released, status
    one.node_sets["a"]["status"] = updated()
    # Before it begins an update may still come.
    one.wall = at("2026-11-28T01:30:00Z")
    assert reserved(one) != {}


def test_one_that_was_released_takes_its_nodes_again_for_an_update_only() -> None:
    early = {**NIGHT, "nodeSets": ["a"], "holdUpdates": True, "releaseEarly": True, "announceBefore": "1h"}
    one = world(early, now=at("2026-11-28T03:00:00Z"))
    one.node_sets["a"]["metadata"]["generation"] = 1
    one.node_sets["a"]["status"] = updated()
    one.settle()
    assert one.raw["status"]["maintenance"]["windows"][0]["released"]
    for status, released in (
        (updated(readyReplicas=1), True),
        (updated(replicas=1, updatedReplicas=1), True),
        (updated(updatedReplicas=1), False),
        (updated(generation=None), False),
    ):
        one.node_sets["a"]["status"] = status
        assert (reserved(one) == {}) is released, status
    # In the next period nothing was released yet.
    one.node_sets["a"]["status"] = updated(readyReplicas=1)
    one.wall = at("2026-11-29T03:00:00Z")
    assert reserved(one) != {}


def test_another_cluster_has_other_names() -> None:
    first, second, again = world(NIGHT), world(NIGHT), world(NIGHT)
    second.raw = {**second.raw, "metadata": {**second.raw["metadata"], "name": "another"}}
    # Created again, it finds the reservations that it had.
    again.raw = {**again.raw, "metadata": {**again.raw["metadata"], "uid": "another"}}
    marks = [mark(one.snapshot().cluster) for one in (first, second, again)]
    assert marks[0] not in marks[1]
    assert marks[2] == marks[0]
