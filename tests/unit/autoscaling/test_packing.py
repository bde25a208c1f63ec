"""Placing jobs: whole or not at all, never more than there is, never fewer nodes than a job needs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import NotReadable, matches
from slinky_operator.autoscaling.rules.needs import Need, amounts
from slinky_operator.autoscaling.rules.packing import Packing, Partition, Supply
from slinky_operator.autoscaling.rules.rooms import Room, Shape

SHAPE = Shape(4, 1024, frozenset({"cpu", "big"}), (("gpu", 2), ("gpu:a100", 2)))


def packing(rooms: int = 0, supply: int = 0, **values: Any) -> tuple[Packing, Supply]:
    source = Supply("cpu", SHAPE, supply)
    partition = Partition([Room.empty("cpu", SHAPE) for _ in range(rooms)], [source], **values)
    return Packing({"p": partition}, Effort(lambda: 0.0)), source


def need(**values: Any) -> Need:
    return Need(**{"partitions": ("p",), **values})


NEEDS = st.builds(
    need,
    nodes=st.integers(1, 4),
    cpus=st.integers(1, 20),
    step=st.integers(1, 4),
    memory_on_each=st.integers(0, 1200),
    gres_on_each=st.sampled_from([(), (("gpu", 1),), (("gpu:a100", 2),)]),
    exclusive=st.booleans(),
)


@given(st.lists(NEEDS, max_size=30), st.integers(0, 5), st.integers(0, 5))
def test_nothing_is_given_twice_and_never_above_the_maximum(needs: list[Need], rooms: int, most: int) -> None:
    place, supply = packing(rooms, most)
    used: dict[int, Room] = {}
    cpus = 0
    for one in needs:
        one = need(  # noqa: PLW2901 - what a job must have on each node is at least a task
            nodes=one.nodes,
            cpus=max(one.cpus, one.nodes * one.step),
            step=one.step,
            cpus_on_each=one.step,
            memory_on_each=one.memory_on_each,
            gres_on_each=one.gres_on_each,
            exclusive=one.exclusive,
        )
        left = supply.left
        found = place.place((one,))
        if found is None:
            assert supply.left == left
            continue
        cpus += one.cpus
        assert len({id(room) for room in found}) == len(found) >= one.nodes
        assert len(found) * SHAPE.cpus >= one.cpus
        used.update({id(room): room for room in found})
    assert 0 <= supply.left <= most
    assert len(used) <= rooms + most
    assert cpus <= sum(room.shape.cpus - room.cpus for room in used.values())
    for room in used.values():
        assert room.cpus >= 0
        assert room.memory >= 0
        assert all(count >= 0 for count in room.gres.values())


def test_components_of_one_job_are_placed_together_or_not_at_all() -> None:
    place, supply = packing(1, 2)
    assert place.place((need(nodes=2, cpus=8), need(nodes=2, cpus=8))) is None
    assert supply.left == 2
    assert place.place((need(nodes=2, cpus=8), need(cpus=4))) is not None
    assert supply.left == 0


def test_a_limit_of_nodes_is_kept() -> None:
    place, _ = packing(3)
    assert place.place((need(cpus=8, most_nodes=1),)) is None
    assert packing(3, most_nodes=1)[0].place((need(nodes=2, cpus=2),)) is None


def test_memory_for_each_cpu_and_resources_for_each_task_spread_a_job() -> None:
    place, _ = packing(8)
    assert len(place.place((need(cpus=4, memory_for_cpu=512),)) or ()) == 2
    assert len(place.place((need(cpus=4, gres_for_task=(("gpu", 1),)),)) or ()) == 2
    assert len(place.place((need(cpus=1, gres_in_all=(("gpu", 4),)),)) or ()) >= 2


def test_untyped_resources_use_up_typed_ones() -> None:
    place, _ = packing(1)
    assert place.place((need(gres_on_each=(("gpu", 2),)),))
    assert place.place((need(gres_on_each=(("gpu:a100", 1),)),)) is None


def test_excluded_and_shared_nodes() -> None:
    room = Room.empty("cpu", SHAPE, "cpu-0")
    place = Packing({"p": Partition([room])}, Effort(lambda: 0.0))
    assert place.place((need(excluded=frozenset({"cpu-0"})),)) is None
    assert place.place((need(),))
    assert place.place((need(exclusive=True),)) is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("cpu", True),
        ("cpu&big", True),
        ("cpu,other", False),
        ("other|big", True),
        ("(other|cpu)&big", True),
    ],
)
def test_features(text: str, holds: bool) -> None:
    assert matches(text, SHAPE.features) is holds


@pytest.mark.parametrize(
    "text", ["[rack1|rack2]", "cpu*2", "cpu&", "(cpu", "cpu)", "a" * 2000, "(" * 50 + "a" + ")" * 50]
)
def test_features_that_speak_of_several_nodes_are_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        matches(text, SHAPE.features)


def test_resources_are_read_in_each_notation() -> None:
    assert amounts("gres/gpu:a100:2,cpu=4") == (("gpu:a100", 2),)
    assert amounts("gres:gpu=3") == (("gpu", 3),)
    assert amounts("gres/gpu") == (("gpu", 1),)
    with pytest.raises(NotReadable):
        amounts("gres/gpu:a:b:c")
