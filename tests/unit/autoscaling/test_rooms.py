"""The tree over the nodes of a partition finds what looking at one node after the other finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Need
from slinky_operator.autoscaling.rules.packing import Packing, Partition
from slinky_operator.autoscaling.rules.rooms import Floor, Room, Rooms, Shape
from slinky_operator.autoscaling.rules.trial import Trial

SHAPE = Shape(8, 100, gres=(("gpu", 4),))
ROOMS = st.lists(
    st.builds(
        lambda cpus, memory, gpus, untouched: Room("", SHAPE, cpus, memory, {"gpu": gpus}, untouched=untouched),
        st.integers(0, 8),
        st.integers(0, 100),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=20,
)
FLOORS = st.builds(
    lambda cpus, memory, gpus, untouched: Floor(cpus, memory, 1, untouched, (("gpu", gpus),) if gpus else ()),
    st.integers(1, 8),
    st.integers(0, 100),
    st.integers(0, 4),
    st.booleans(),
)
CHANGES = st.lists(st.tuples(st.sampled_from(["less", "more", "new", "gone"]), st.integers(0, 30), FLOORS), max_size=40)


def fits(room: Room, floor: Floor) -> bool:
    return (
        room.cpus >= floor.cpus
        and room.memory >= floor.memory
        and (room.untouched or not floor.untouched)
        and all(room.gres[key] >= count for key, count in floor.gres)
    )


@given(ROOMS, CHANGES)
def test_the_first_that_has_room_is_found_whatever_has_changed(rooms: list[Room], changes: list[Any]) -> None:
    tree = Rooms(rooms, [1] * len(rooms), Effort(lambda: 0.0))
    there = list(rooms)
    for change, place, floor in changes:
        if change == "new":
            there.append(Room.empty("", SHAPE))
            tree.append(there[-1], 1)
        elif there and change == "gone":
            _ = there.pop()
            tree.pop()
        elif there:
            room = there[place % len(there)]
            if change == "less":
                room.cpus, room.memory, room.untouched = room.cpus // 2, room.memory // 2, False
                room.gres = {"gpu": room.gres["gpu"] // 2}
            else:
                room.cpus, room.memory, room.gres, room.untouched = 8, 100, {"gpu": 4}, True
                tree.raised(room)
        begin = place % (len(there) + 1)
        wanted = next((one for one in range(begin, len(there)) if fits(there[one], floor)), None)
        assert tree.first(begin, floor) == wanted


NEEDS = st.builds(
    lambda cpus, most, memory, for_cpu, gpus: Need(
        partitions=("p",),
        cpus=cpus,
        most_nodes=most,
        memory_on_each=memory,
        memory_for_cpu=for_cpu,
        gres_on_each=(("gpu", gpus),) if gpus else (),
    ),
    st.integers(1, 20),
    st.sampled_from([None, 1, 2]),
    st.integers(0, 100),
    st.integers(0, 30),
    st.integers(0, 2),
)


@given(st.lists(NEEDS, max_size=30), st.integers(0, 6))
def test_jobs_are_placed_where_the_first_fit_is(needs: list[Need], count: int) -> None:
    placed = [Room.empty("", SHAPE) for _ in range(count)]
    packing = Packing({"p": Partition(placed)}, Effort(lambda: 0.0))
    rooms = [Room.empty("", SHAPE) for _ in range(count)]
    constraints = Constraints([SHAPE.features])
    for need in needs:
        trial = Trial(need, need.most_nodes, constraints)
        for room in rooms:
            if not trial.done:
                _ = trial.take(room)
        assert (packing.place((need,)) is not None) == trial.done
        if trial.done:
            _ = trial.commit()
    assert [(room.cpus, room.memory) for room in placed] == [(room.cpus, room.memory) for room in rooms]
