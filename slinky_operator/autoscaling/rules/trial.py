"""One job while nodes are looked for: what it takes of each, and what it still lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Need
from slinky_operator.autoscaling.rules.rooms import Floor, Room, Shape


@dataclass(frozen=True, slots=True)
class _Taken:
    room: Room
    cpus: int
    memory: int
    gres: Mapping[str, int]


class Trial:
    """One job while its nodes are looked for."""

    def __init__(self, need: Need, most_nodes: int | None, constraints: Constraints) -> None:
        self._need = need
        self._most = most_nodes
        self._constraints = constraints
        self._kinds = constraints.kinds(need.features)
        self.floor = _floor(need, self._kinds, alone=most_nodes == 1)
        """What a node must have for this job to use it."""
        self._cpus = need.cpus
        self._gres = dict(need.gres_in_all)
        self._taken: list[_Taken] = []
        self._before: list[tuple[bool, bool, int, int, dict[str, int]]] = []

    @property
    def done(self) -> bool:
        """Whether it has all it needs."""
        return len(self._taken) >= self._need.nodes and self._cpus <= 0 and not any(self._gres.values())

    @property
    def is_full(self) -> bool:
        """Whether it may have no more nodes."""
        return self._most is not None and len(self._taken) >= self._most

    def take(self, room: Room) -> bool:
        """Take what it can use of a node; False if it cannot use it."""
        need = self._need
        if self.is_full or not self._may_have(room):
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
        return room.cpus >= need.cpus_on_each and bool(self._constraints.bit(room.shape.features) & self._kinds)

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

    def revert(self) -> list[Room]:
        """Give it all back; only for the last that was committed. Returns the nodes."""
        for one, before in zip(self._taken, self._before, strict=True):
            room = one.room
            room.untouched, room.planned, room.cpus, room.memory, room.gres = before
        return [one.room for one in self._taken]


def _floor(need: Need, kinds: int, *, alone: bool) -> Floor:
    """What a job needs of each node at least; all of it of one that it must have alone."""
    cpus = need.cpus if alone else need.cpus_on_each
    gres = dict(need.gres_on_each)
    for key, count in need.gres_for_task:
        gres[key] = gres.get(key, 0) + count * max(1, cpus // need.step)
    for key, count in need.gres_in_all if alone else ():
        gres[key] = gres.get(key, 0) + count
    memory = need.memory_on_each or need.memory_for_cpu * cpus
    return Floor(cpus, memory, kinds, need.exclusive, tuple(gres.items()))


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
