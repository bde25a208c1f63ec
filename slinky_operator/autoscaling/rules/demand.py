"""How many nodes of each NodeSet jobs need, from one look at the jobs and nodes of a Cluster.

Nodes that are there, or will be since their pods start, count before new ones; new ones are taken from the NodeSet with
the lowest weight, then the lowest cost. Jobs are placed by priority, each as a whole, and on one NodeSet or several as
their partition allows. A node that has a job is needed, whatever the job, unless it is leaving already.

A job that could not run even if every NodeSet were at its maximum and empty is named, and no node is made for it. What
of this is right for nodes outside of autoscaled NodeSets is only that they are there: they run what they can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_operator.autoscaling.rules import needs
from slinky_operator.autoscaling.rules.needs import Ask, Need
from slinky_operator.autoscaling.rules.packing import Packing, Partition, Room, Shape, Supply
from slurm_client.models import Job, Node

MOST_JOBS: Final = 20_000
"""Pending records that one count looks at, those with the highest priority."""

MOST_NAMED: Final = 10
"""Jobs of one kind that are kept by name for a NodeSet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledSet:
    """A NodeSet with autoscaling, as the rules see it."""

    name: str
    replicas: int
    most: int
    """Its maxReplicas."""
    shape: Shape
    """Of its nodes."""
    partitions: frozenset[str] = frozenset()
    weight: int = 1
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A node that Slurm has."""

    node: Node
    owner: str = ""
    """Its NodeSet, if that has autoscaling."""
    leaving: bool = False
    """Whether the operator drains it because replicas are lower: it is none of them."""
    shape: Shape
    free: tuple[int, int, tuple[tuple[str, int], ...]]
    """CPUs, MiB and generic resources that no job has."""
    busy: bool = False
    """Whether it has a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that the rules look at, of one Cluster at one moment."""

    jobs: Sequence[Job]
    nodes: Sequence[Standing]
    sets: Sequence[ScaledSet]
    most_nodes: Mapping[str, int | None]
    """Partitions that start jobs, each with the most nodes that one job may have there."""
    now: datetime


@dataclass(slots=True)
class Names:
    """Some jobs by name, and how many there are."""

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Add one; the first few are shown."""
        self.count += 1
        if len(self.shown) < MOST_NAMED and name not in self.shown:
            self.shown.append(name)


@dataclass(slots=True)
class Wanted:
    """What jobs need of one NodeSet."""

    nodes: int = 0
    """Replicas that they need; not yet within its limits."""
    busy: int = 0
    """Nodes that have jobs."""
    counted: Names = field(default_factory=Names)
    """Pending jobs that are placed on it."""
    waiting: Names = field(default_factory=Names)
    """Those that would use it, and for which there is no room below the maximum."""
    impossible: Names = field(default_factory=Names)
    """Those that could not run at the maximum either."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many pending records in its partitions are not counted, by reason."""
    unseen: int = 0
    """Pending records that were not looked at."""


def count(view: View) -> dict[str, Wanted]:
    """The nodes that jobs need, by NodeSet."""
    found = {one.name: Wanted() for one in view.sets}
    served: dict[str, list[str]] = defaultdict(list)
    for one in view.sets:
        for partition in one.partitions & view.most_nodes.keys():
            served[partition].append(one.name)
    units, unseen = _units(view, served, found)
    standing = _Stock(view)
    packing = Packing(standing.partitions)
    empty: _Emptied | None = None
    for place, (names, unit, tasks) in enumerate(units):
        if packing.exhausted:
            unseen += len(units) - place
            break
        owners = {owner for need in unit for partition in need.partitions for owner in served.get(partition, ())}
        for _ in range(tasks):
            rooms = packing.place(unit)
            if rooms is not None:
                for owner in {room.owner for room in rooms if room.owner}:
                    found[owner].counted.add(names)
                continue
            empty = empty or _Emptied(view)
            fits = empty.fits(unit)
            for owner in owners if not fits else owners & empty.could_use(unit):
                (found[owner].waiting if fits else found[owner].impossible).add(names)
            break
    for one in view.sets:
        wanted = found[one.name]
        wanted.unseen = unseen
        wanted.busy, wanted.nodes = standing.needed(one)
    return found


def _units(
    view: View, served: Mapping[str, Sequence[str]], found: Mapping[str, Wanted]
) -> tuple[list[tuple[str, tuple[Need, ...], int]], int]:
    """Jobs to place, in order: name, the needs of their components, and how many times; and how many are not seen."""
    pending = [job for job in view.jobs if job.is_pending and not served.keys().isdisjoint(job.partition.split(","))]
    pending.sort(key=lambda job: (-job.priority if isinstance(job.priority, int) else 0, job.id))
    started = needs.arrays_started(view.jobs)
    single: list[tuple[str, tuple[Need, ...], int]] = []
    components: dict[int, list[Ask]] = defaultdict(list)
    broken: set[int] = set()
    for job in pending[:MOST_JOBS]:
        asked = needs.read(job, view.now, started)
        if isinstance(asked, needs.LeftOut):
            broken.add(job.het_job_id or 0)
            for owner in {owner for name in job.partition.split(",") for owner in served.get(name, ())}:
                found[owner].left_out[asked.why] += 1
        elif job.het_job_id:
            components[job.het_job_id].append(asked)
        else:
            single.append((asked.name, (asked.need,), asked.tasks))
    for number, asks in components.items():
        if number not in broken:
            single.append((str(number), tuple(one.need for one in asks), 1))
    return single, max(0, len(pending) - MOST_JOBS)


class _Stock:
    """The nodes of a Cluster and those that may come, by partition."""

    def __init__(self, view: View) -> None:
        self._rooms: dict[str, list[Room]] = defaultdict(list)
        self._supplies: dict[str, Supply] = {}
        self._offered: dict[str, int] = {}
        self._present: Counter[str] = Counter()
        self._busy: Counter[str] = Counter()
        self.partitions: dict[str, Partition] = {
            name: Partition(most_nodes=most) for name, most in view.most_nodes.items()
        }
        # Nodes with jobs first, so that idle ones stay idle.
        for one in sorted(view.nodes, key=lambda one: (one.node.weight, not one.busy, one.node.name)):
            if one.owner and not one.leaving:
                self._present[one.owner] += 1
                self._busy[one.owner] += one.busy
            if one.leaving or not one.node.is_usable:
                continue
            cpus, memory, gres = one.free
            room = Room(one.owner, one.shape, cpus, memory, dict(gres), one.node.name, not one.busy, has_jobs=one.busy)
            if one.owner:
                self._rooms[one.owner].append(room)
            for name in one.node.partitions:
                if name in self.partitions:
                    self.partitions[name].rooms.append(room)
        for scaled in sorted(view.sets, key=_preference):
            starting = [
                Room.empty(scaled.name, scaled.shape)
                for _ in range(max(0, scaled.replicas - self._present[scaled.name]))
            ]
            self._rooms[scaled.name] += starting
            left = max(0, scaled.most - max(scaled.replicas, self._present[scaled.name]))
            supply = self._supplies[scaled.name] = Supply(scaled.name, scaled.shape, left)
            self._offered[scaled.name] = left
            for name in scaled.partitions & self.partitions.keys():
                self.partitions[name].rooms += starting
                self.partitions[name].supplies.append(supply)

    def needed(self, one: ScaledSet) -> tuple[int, int]:
        """Nodes of a NodeSet that have jobs, and replicas that are needed for these and the jobs placed."""
        new = self._offered[one.name] - self._supplies[one.name].left
        busy = self._busy[one.name]
        if new:
            # All that there is was too little, be it that nodes are out of service.
            return busy, max(one.replicas, self._present[one.name]) + new
        idle = sum(1 for room in self._rooms[one.name] if room.planned and not room.has_jobs)
        return busy, busy + idle


class _Emptied:
    """The Cluster with every NodeSet at its maximum and no job: whether a job can ever run."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[tuple[Need, ...], bool] = {}

    def fits(self, unit: tuple[Need, ...]) -> bool:
        """Whether it could run."""
        if unit not in self._known:
            self._known[unit] = Packing(self._partitions()).place(unit) is not None
        return self._known[unit]

    def could_use(self, unit: tuple[Need, ...]) -> set[str]:
        """NodeSets of which a node would be of use to it."""
        found = set()
        for one in self._view.sets:
            room = Partition([], [Supply(one.name, one.shape, one.most)])
            for need in unit:
                small = _one_node(need)
                names = one.partitions & set(need.partitions)
                if names and Packing(dict.fromkeys(names, room)).place((small,)) is not None:
                    found.add(one.name)
        return found

    def _partitions(self) -> dict[str, Partition]:
        partitions = {name: Partition(most_nodes=most) for name, most in self._view.most_nodes.items()}
        for one in self._view.nodes:
            if not one.owner:
                room = Room.empty("", one.shape, one.node.name)
                for name in one.node.partitions:
                    if name in partitions:
                        partitions[name].rooms.append(room)
        for scaled in self._view.sets:
            supply = Supply(scaled.name, scaled.shape, max(scaled.most, scaled.replicas))
            for name in scaled.partitions & partitions.keys():
                partitions[name].supplies.append(supply)
        return partitions


def _one_node(need: Need) -> Need:
    """What it needs of each node at least."""
    return Need(
        partitions=need.partitions,
        cpus=need.cpus_on_each,
        step=need.step,
        cpus_on_each=need.cpus_on_each,
        memory_on_each=need.memory_on_each,
        memory_for_cpu=need.memory_for_cpu,
        gres_on_each=need.gres_on_each,
        gres_for_task=need.gres_for_task,
        features=need.features,
    )


def _preference(one: ScaledSet) -> tuple[int, float, str]:
    return one.weight, one.cost, one.name
