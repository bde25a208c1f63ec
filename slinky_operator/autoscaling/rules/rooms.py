"""Nodes of one partition in their order of trial, and the first of them that may have room for something.

A tree over the nodes has, for each part of them, the most that one of them has free: a part in which nobody has enough
is not looked into. What the tree has is never less than what there is, since placing jobs only takes; a node found to
have less is corrected then. Whether a job really fits on a node that was found is the business of `packing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.needs import Amounts

MOST_KINDS: Final = 8
"""Generic resources that a tree knows; nodes without enough of another are looked at one by one."""

PARTS: Final = 4
"""Parts of the tree that are looked at in one step."""


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
class Floor:
    """What a node must have free at least, for a job to use it."""

    cpus: int
    memory: int
    kinds: int
    """Kinds of nodes by their features, as `Constraints` has them."""
    untouched: bool = False
    gres: Amounts = ()


@dataclass(slots=True)
class _Most:
    """The most that one node of each part has free. The nodes themselves are the second half of each list."""

    cpus: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    untouched: list[bool] = field(default_factory=list)
    gres: dict[str, list[int]] = field(default_factory=dict)


class Rooms:
    """The nodes of a partition.

    Parameters
    ----------
    rooms
        In their order of trial.
    bits
        The kind of each node by its features.
    effort
        What is spent while nodes are looked for.
    """

    def __init__(self, rooms: Iterable[Room], bits: Sequence[int], effort: Effort) -> None:
        self._rooms = list(rooms)
        self._bits = list(bits)
        self._effort = effort
        self._places = {id(room): place for place, room in enumerate(self._rooms)}
        self._half, self._most = 1, _Most()
        self._build()

    def __len__(self) -> int:
        return len(self._rooms)

    def __getitem__(self, place: int) -> Room:
        return self._rooms[place]

    def append(self, room: Room, bit: int) -> None:
        """Add a node, to be tried last."""
        place = len(self._rooms)
        self._places[id(room)] = place
        self._rooms.append(room)
        self._bits.append(bit)
        if place >= self._half:
            self._build()
        else:
            self._set(place, room, bit)

    def pop(self) -> None:
        """Remove the last one."""
        room = self._rooms.pop()
        _ = self._bits.pop(), self._places.pop(id(room))
        self._clear(len(self._rooms))

    def raised(self, room: Room) -> None:
        """Take note that a node has got something back, if it is one of these."""
        place = self._places.get(id(room))
        if place is not None:
            self._set(place, room, self._bits[place])

    def first(self, begin: int, floor: Floor) -> int | None:
        """Find the first node from a place on that has so much free.

        Returns
        -------
        int or None
            Its place; None if there is none, or no effort is left.
        """
        if begin >= len(self._rooms):
            return None
        wanted = self._wanted(floor.gres)
        most, half, looks = self._most, self._half, 0
        part = begin + half
        while part:
            looks += 1
            if looks >= PARTS:
                looks = 0
                self._effort.spend()
                if self._effort.exhausted:
                    return None
            if (
                most.cpus[part] >= floor.cpus
                and most.memory[part] >= floor.memory
                and most.kinds[part] & floor.kinds
                and (most.untouched[part] or not floor.untouched)
                and all(amounts[part] >= count for amounts, count in wanted)
            ):
                if part < half:
                    part *= 2
                    continue
                if self._is_right(part - half):
                    self._effort.spend()
                    return part - half
                # Jobs have taken of it since: look at it again.
                continue
            while part & 1:
                part >>= 1
            part = part + 1 if part else 0
        self._effort.spend()
        return None

    def _wanted(self, gres: Amounts) -> list[tuple[list[int], int]]:
        found = []
        for key, count in gres:
            if key not in self._most.gres and len(self._most.gres) < MOST_KINDS:
                self._effort.spend(len(self._rooms) // PARTS)
                self._most.gres[key] = self._tree([room.gres.get(key, 0) for room in self._rooms])
            if key in self._most.gres:
                found.append((self._most.gres[key], count))
        return found

    def _is_right(self, place: int) -> bool:
        """Whether the tree has what a node has; corrected if not."""
        room, most, part = self._rooms[place], self._most, place + self._half
        if (
            most.cpus[part] == room.cpus
            and most.memory[part] == room.memory
            and most.untouched[part] == room.untouched
            and all(amounts[part] == room.gres.get(key, 0) for key, amounts in most.gres.items())
        ):
            return True
        self._set(place, room, self._bits[place])
        return False

    def _build(self) -> None:
        rooms, known = self._rooms, self._most.gres
        self._half = 1 << max(0, len(rooms) - 1).bit_length()
        self._effort.spend(len(rooms) // PARTS)
        self._most = _Most(
            self._tree([room.cpus for room in rooms]),
            self._tree([room.memory for room in rooms]),
            self._kinds(self._bits),
            [one > 0 for one in self._tree([int(room.untouched) for room in rooms])],
            {key: self._tree([room.gres.get(key, 0) for room in rooms]) for key in known},
        )

    def _tree(self, values: Sequence[int]) -> list[int]:
        tree = [-1] * (2 * self._half)
        tree[self._half : self._half + len(values)] = values
        for part in range(self._half - 1, 0, -1):
            tree[part] = max(tree[2 * part], tree[2 * part + 1])
        return tree

    def _kinds(self, bits: Sequence[int]) -> list[int]:
        tree = [0] * (2 * self._half)
        tree[self._half : self._half + len(bits)] = bits
        for part in range(self._half - 1, 0, -1):
            tree[part] = tree[2 * part] | tree[2 * part + 1]
        return tree

    def _clear(self, place: int) -> None:
        self._set(place, Room("", Shape(-1, -1), -1, -1, {}, untouched=False), 0, missing=-1)

    def _set(self, place: int, room: Room, bit: int, *, missing: int = 0) -> None:
        self._effort.spend()
        most, part = self._most, place + self._half
        most.cpus[part], most.memory[part] = room.cpus, room.memory
        most.kinds[part], most.untouched[part] = bit, room.untouched
        for key, amounts in most.gres.items():
            amounts[part] = room.gres.get(key, missing)
        part //= 2
        while part:
            left, right = 2 * part, 2 * part + 1
            most.cpus[part] = max(most.cpus[left], most.cpus[right])
            most.memory[part] = max(most.memory[left], most.memory[right])
            most.kinds[part] = most.kinds[left] | most.kinds[right]
            most.untouched[part] = most.untouched[left] or most.untouched[right]
            for amounts in most.gres.values():
                amounts[part] = max(amounts[left], amounts[right])
            part //= 2
