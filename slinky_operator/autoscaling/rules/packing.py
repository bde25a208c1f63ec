"""Places whole jobs on nodes, first fit: on those that are there, then on those that may come.

A job is placed as a whole or not at all. What it takes of a node is gone for the next one. Room only shrinks, so where
a need has not fit once, an equal one is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Need
from slinky_operator.autoscaling.rules.rooms import Room, Rooms, Shape
from slinky_operator.autoscaling.rules.trial import Trial

MOST_FAILURES: Final = 8
"""Failures that are remembered of needs that differ in memory and CPUs only."""


@dataclass(slots=True)
class Supply:
    """Nodes that may still be made of one NodeSet."""

    owner: str
    shape: Shape
    left: int


@dataclass(slots=True)
class Partition:
    """The nodes of one partition: those that are there, in the order of trial, then those that may come."""

    rooms: list[Room] = field(default_factory=list)
    supplies: list[Supply] = field(default_factory=list)
    most_nodes: int | None = None
    """Of one job."""


class Packing:
    """Places jobs one after the other.

    Parameters
    ----------
    partitions
        By name. Rooms and supplies in several of them are the same objects.
    effort
        What all placements together may take. Once it is exhausted, nothing more is placed.
    constraints
        What the features of these nodes, and of those that may come, match; made of them if absent.
    """

    def __init__(
        self, partitions: Mapping[str, Partition], effort: Effort, constraints: Constraints | None = None
    ) -> None:
        self._partitions = partitions
        self._effort = effort
        if constraints is None:
            shapes = [room.shape for one in partitions.values() for room in one.rooms]
            shapes += [supply.shape for one in partitions.values() for supply in one.supplies]
            constraints = Constraints(shape.features for shape in shapes)
        self._constraints = constraints
        self._rooms = {
            name: Rooms(one.rooms, [constraints.bit(room.shape.features) for room in one.rooms], effort)
            for name, one in partitions.items()
        }
        self._of_owner: dict[str, list[Rooms]] = {}
        """Where new nodes of a NodeSet are."""
        for name, one in partitions.items():
            for owner in {supply.owner for supply in one.supplies}:
                self._of_owner.setdefault(owner, []).append(self._rooms[name])
        self._begin: dict[tuple[Need, str], int] = {}
        self._failures = _Failures()

    def place(self, needs: Sequence[Need]) -> list[Room] | None:
        """Place a job, or all components of one, or nothing.

        Returns
        -------
        list of Room or None
            The nodes that it would use; None if it does not fit.
        """
        undo: list[Callable[[], None]] = []
        used: list[Room] = []
        # A component that is undone frees room: what is remembered of failures holds for what is never undone.
        alone = len(needs) == 1
        for need in needs:
            found = next(
                (rooms for name in need.partitions if (rooms := self._in_partition(need, name, undo, alone=alone))),
                None,
            )
            if found is None:
                for back in reversed(undo):
                    back()
                return None
            used += found
        for room in used:
            room.planned = True
        return used

    def _in_partition(self, need: Need, name: str, undo: list[Callable[[], None]], *, alone: bool) -> list[Room] | None:
        self._effort.spend()
        partition = self._partitions.get(name)
        if partition is None or self._effort.exhausted or self._failures.include(need, name):
            return None
        if partition.most_nodes is not None and need.nodes > partition.most_nodes:
            return None
        rooms = self._rooms[name]
        if need.nodes > len(rooms) + sum(supply.left for supply in partition.supplies):
            return None
        most = min((one for one in (need.most_nodes, partition.most_nodes) if one is not None), default=None)
        job = Trial(need, most, self._constraints)
        first = self._take_standing(job, rooms, self._begin.get((need, name), 0))
        new = [] if job.done else self._take_new(job, partition)
        if not job.done:
            for supply, _ in new:
                supply.left += 1
            if alone and not self._effort.exhausted:
                self._failures.add(need, name, most)
            return None
        if alone:
            self._begin[need, name] = first
        added = [room for _, room in new]
        self._add(added)
        if not alone:
            undo.append(self._give_back(job, new, added))
        return job.commit()

    def _take_standing(self, job: Trial, rooms: Rooms, begin: int) -> int:
        """Look for nodes among those that are there, from a place on; returns that of the first that it can use."""
        first = len(rooms)
        place = rooms.first(begin, job.floor)
        while place is not None:
            if job.take(rooms[place]):
                first = min(first, place)
            place = None if job.done or job.is_full else rooms.first(place + 1, job.floor)
        return first

    def _take_new(self, job: Trial, partition: Partition) -> list[tuple[Supply, Room]]:
        """Look for nodes among those that may come; taken from what is left of their NodeSets."""
        new: list[tuple[Supply, Room]] = []
        for supply in partition.supplies:
            while supply.left > 0 and not job.done and not job.is_full and not self._effort.exhausted:
                self._effort.spend()
                room = Room.empty(supply.owner, supply.shape)
                if not job.take(room):
                    break
                supply.left -= 1
                new.append((supply, room))
        return new

    def _add(self, added: Iterable[Room]) -> None:
        """New nodes are there for the jobs that follow, in each partition that their NodeSet is in."""
        for room in added:
            bit = self._constraints.bit(room.shape.features)
            for rooms in self._of_owner[room.owner]:
                rooms.append(room, bit)

    def _give_back(self, job: Trial, new: Sequence[tuple[Supply, Room]], added: Sequence[Room]) -> Callable[[], None]:
        """How to undo a placement; only for the last that was committed."""

        def back() -> None:
            used = job.revert()
            for supply, _ in new:
                supply.left += 1
            for room in reversed(added):
                for rooms in self._of_owner[room.owner]:
                    rooms.pop()
            for rooms in self._rooms.values():
                self._effort.spend()
                for room in used:
                    rooms.raised(room)

        return back


class _Failures:
    """Needs that have not fit: as room only shrinks, neither do equal ones, nor ones that ask for more."""

    def __init__(self) -> None:
        self._equal: set[tuple[Need, str]] = set()
        self._least: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        """CPUs and memory of needs that differ in these only."""

    def add(self, need: Need, name: str, most_nodes: int | None) -> None:
        """Remember one. That one which asks for more fails too is certain unless its number of nodes has a limit."""
        self._equal.add((need, name))
        if most_nodes is not None and most_nodes > 1:
            return
        family, asked = _family(need, name), _amount(need)
        known = [one for one in self._least.get(family, ()) if not _is_less(asked, one)]
        self._least[family] = [*known, asked][:MOST_FAILURES]

    def include(self, need: Need, name: str) -> bool:
        """Whether a need is known not to fit."""
        if (need, name) in self._equal:
            return True
        asked = _amount(need)
        return any(_is_less(one, asked) for one in self._least.get(_family(need, name), ()))


def _family(need: Need, name: str) -> tuple[object, ...]:
    in_all, gres = need.gres_in_all, (need.gres_on_each, need.gres_for_task)
    nodes = need.nodes, need.most_nodes, need.step, need.cpus_on_each, need.most_on_each
    return name, nodes, bool(need.memory_on_each), in_all, gres, need.features, need.exclusive, need.excluded


def _amount(need: Need) -> tuple[int, int]:
    return need.cpus, need.memory_on_each or need.memory_for_cpu


def _is_less(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]
