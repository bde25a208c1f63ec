"""Places whole jobs on nodes, first fit: on those that are there, then on those that may come.

A job is placed as a whole or not at all. What it takes of a node is gone for the next one. Room only shrinks, so where
a need has not fit once, an equal one is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.autoscaling.rules.features import matches
from slinky_operator.autoscaling.rules.needs import Amounts, Need


@dataclass(frozen=True, slots=True)
class Shape:
    """What an empty node offers."""

    cpus: int
    memory: int
    """MiB."""
    features: frozenset[str] = frozenset()
    gres: Amounts = ()
    """Each kind, and each type of it: two ``gpu:a100`` are ``gpu`` 2 and ``gpu:a100`` 2."""
    threads: int = 1
    """CPUs of a core: Slurm gives whole cores."""


@dataclass(slots=True, eq=False)
class Room:
    """What is left of one node."""

    owner: str
    """Its NodeSet; empty for a node of no autoscaled one."""
    shape: Shape
    cpus: int
    memory: int
    gres: dict[str, int]
    name: str = ""
    """Of its record; empty for a node that is not there yet."""
    untouched: bool = True
    """Whether no job is on it."""
    planned: bool = False
    """Whether a pending job is placed on it."""
    has_jobs: bool = False
    """Whether a job that is no longer pending is on it."""

    @classmethod
    def empty(cls, owner: str, shape: Shape, name: str = "") -> Room:
        """A node without jobs."""
        return cls(owner, shape, shape.cpus, shape.memory, dict(shape.gres), name)


@dataclass(frozen=True, slots=True)
class _Taken:
    room: Room
    cpus: int
    memory: int
    gres: Mapping[str, int]


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


STEPS: Final = 1_000_000
"""Looks at nodes that one count may take: about two seconds."""


class Packing:
    """Places jobs one after the other.

    Parameters
    ----------
    partitions
        By name. Rooms and supplies in several of them are the same objects.
    steps
        Looks at nodes that all placements together may take.
    """

    def __init__(self, partitions: Mapping[str, Partition], steps: int = STEPS) -> None:
        self._partitions = partitions
        self._left = steps
        self._begin: dict[tuple[Need, str], int] = {}
        self._failed: dict[tuple[Need, str], None] = {}

    @property
    def exhausted(self) -> bool:
        """Whether the steps are used up: nothing more is placed."""
        return self._left <= 0

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
        partition = self._partitions.get(name)
        if partition is None or (need, name) in self._failed or self.exhausted:
            return None
        if partition.most_nodes is not None and need.nodes > partition.most_nodes:
            return None
        most = min((one for one in (need.most_nodes, partition.most_nodes) if one is not None), default=None)
        job = _Job(need, most)
        first = self._take_standing(job, partition, self._begin.get((need, name), 0))
        new = [] if job.done else self._take_new(job, partition)
        if not job.done:
            for supply, _ in new:
                supply.left += 1
            if alone and not self.exhausted:
                self._failed[need, name] = None
            return None
        if alone:
            self._begin[need, name] = first
        added = [room for _, room in new]
        self._add(added, name)
        undo.append(_give_back(job, new, lambda: self._remove(added)))
        return job.commit()

    def _take_standing(self, job: _Job, partition: Partition, begin: int) -> int:
        """Look for nodes among those that are there, from an index on; returns that of the first that it can use."""
        first = len(partition.rooms)
        for index in range(begin, len(partition.rooms)):
            if job.done or self.exhausted:
                break
            self._left -= 1
            if job.take(partition.rooms[index]):
                first = min(first, index)
        return first

    def _take_new(self, job: _Job, partition: Partition) -> list[tuple[Supply, Room]]:
        """Look for nodes among those that may come; taken from what is left of their NodeSets."""
        new: list[tuple[Supply, Room]] = []
        for supply in partition.supplies:
            while supply.left > 0 and not job.done and not self.exhausted:
                self._left -= 1
                room = Room.empty(supply.owner, supply.shape)
                if not job.take(room):
                    break
                supply.left -= 1
                new.append((supply, room))
        return new

    def _add(self, rooms: Iterable[Room], name: str) -> None:
        """New nodes are there for the jobs that follow, in each partition that their NodeSet is in."""
        for room in rooms:
            for other, partition in self._partitions.items():
                if other == name or any(supply.owner == room.owner for supply in partition.supplies):
                    partition.rooms.append(room)

    def _remove(self, rooms: Sequence[Room]) -> None:
        gone = {id(room) for room in rooms}
        for partition in self._partitions.values():
            partition.rooms[:] = [room for room in partition.rooms if id(room) not in gone]


def _give_back(job: _Job, new: Sequence[tuple[Supply, Room]], remove: Callable[[], None]) -> Callable[[], None]:
    def back() -> None:
        job.revert()
        for supply, _ in new:
            supply.left += 1
        remove()

    return back


class _Job:
    """One job while its nodes are looked for."""

    def __init__(self, need: Need, most_nodes: int | None) -> None:
        self._need = need
        self._most = most_nodes
        self._cpus = need.cpus
        self._gres = dict(need.gres_in_all)
        self._taken: list[_Taken] = []
        self._before: list[tuple[bool, bool, int, int, dict[str, int]]] = []

    @property
    def done(self) -> bool:
        """Whether it has all it needs."""
        return len(self._taken) >= self._need.nodes and self._cpus <= 0 and not any(self._gres.values())

    def take(self, room: Room) -> bool:
        """Take what it can use of a node; False if it cannot use it."""
        need = self._need
        if (self._most is not None and len(self._taken) >= self._most) or not self._may_have(room):
            return False
        cpus = self._cpus_on(room)
        gres = self._gres_on(room, cpus) if cpus >= need.cpus_on_each else None
        memory = need.memory_on_each or need.memory_for_cpu * cpus
        if gres is None or memory > room.memory or self._is_too_little(cpus, gres):
            return False
        for key in self._gres:
            self._gres[key] = max(0, self._gres[key] - gres.get(key, 0))
        self._cpus -= cpus
        self._taken.append(_Taken(room, _whole_cores(cpus, room.shape), memory, gres))
        return True

    def _may_have(self, room: Room) -> bool:
        """Whether a node is one that it accepts, whatever is left of it."""
        need = self._need
        if (room.name and room.name in need.excluded) or (need.exclusive and not room.untouched):
            return False
        return room.cpus >= need.cpus_on_each and matches(need.features, room.shape.features)

    def _is_too_little(self, cpus: int, gres: Mapping[str, int]) -> bool:
        """Whether nodes like this would not be enough, as many as it may have: others may offer more."""
        if self._most is None:
            return False
        nodes = self._most - len(self._taken)
        return cpus * nodes < self._cpus or any(count > gres.get(key, 0) * nodes for key, count in self._gres.items())

    def _cpus_on(self, room: Room) -> int:
        """CPUs that it would use of a node, so that enough are left for the other nodes that it must have."""
        need = self._need
        others = max(0, need.nodes - len(self._taken) - 1)
        wanted = max(need.cpus_on_each, self._cpus - others * need.cpus_on_each)
        most = min(room.cpus, wanted, need.most_on_each or wanted)
        if need.memory_for_cpu and not need.memory_on_each:
            most = min(most, room.memory // need.memory_for_cpu)
        for key, count in need.gres_for_task:
            most = min(most, room.gres.get(key, 0) // count * need.step if count else most)
        whole = most // need.step * need.step
        if whole >= need.cpus_on_each:
            return whole
        return need.cpus_on_each if most >= need.cpus_on_each else 0

    def _gres_on(self, room: Room, cpus: int) -> dict[str, int] | None:
        """Generic resources that it would use of a node; None if there are not enough."""
        wanted: dict[str, int] = dict(self._need.gres_on_each)
        for key, count in self._need.gres_for_task:
            wanted[key] = wanted.get(key, 0) + count * max(1, cpus // self._need.step)
        for key, count in self._gres.items():
            here = min(count, max(0, room.gres.get(key, 0) - wanted.get(key, 0)))
            if not here and count and len(self._taken) + 1 > self._need.nodes:
                return None
            wanted[key] = wanted.get(key, 0) + here
        return wanted if all(room.gres.get(key, 0) >= count for key, count in wanted.items()) else None

    def commit(self) -> list[Room]:
        """Take it all; returns the nodes."""
        for one in self._taken:
            room = one.room
            self._before.append((room.untouched, room.planned, room.cpus, room.memory, dict(room.gres)))
            room.untouched = False
            room.cpus -= room.cpus if self._need.exclusive else min(room.cpus, one.cpus)
            room.memory -= one.memory
            for key, count in one.gres.items():
                _use(room.gres, key, count)
        return [one.room for one in self._taken]

    def revert(self) -> None:
        """Give it all back; only for the last that was committed."""
        for one, before in zip(self._taken, self._before, strict=True):
            room = one.room
            room.untouched, room.planned, room.cpus, room.memory, room.gres = before


def _use(gres: dict[str, int], key: str, count: int) -> None:
    """Take some of a kind or of a type: one of a type is one of its kind, and no type has more than its kind."""
    gres[key] = gres.get(key, 0) - count
    kind = key.partition(":")[0]
    if kind != key and kind in gres:
        gres[kind] -= count
    if kind in gres:
        left = gres[kind]
        gres.update({other: min(value, left) for other, value in gres.items() if other.startswith(f"{kind}:")})


def _whole_cores(cpus: int, shape: Shape) -> int:
    threads = max(1, shape.threads)
    return min(shape.cpus, -(-cpus // threads) * threads)
