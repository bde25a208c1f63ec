"""How many nodes of each NodeSet jobs need, from one look at the jobs and nodes of a Cluster.

Nodes that are there, or will be since their pods start, count before new ones; new ones are taken from the NodeSet with
the lowest weight, then the lowest cost. Jobs are placed by priority, each as a whole, and on one NodeSet or several as
their partition allows. A node that has a job is needed, whatever the job, unless it is leaving already.

A job that could not run even if every NodeSet were at its maximum and empty is named, and no node is made for it. What
of this is right for nodes outside of autoscaled NodeSets is only that they are there: they run what they can.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.emptied import Emptied
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.packing import Packing, Partition, Supply
from slinky_operator.autoscaling.rules.reading import Reading
from slinky_operator.autoscaling.rules.rooms import Room
from slinky_operator.autoscaling.rules.view import NodeDemand, ScaledSet, View


def count(view: View, effort: Effort) -> dict[str, NodeDemand]:
    """The nodes that jobs need, by NodeSet.

    Parameters
    ----------
    view
        What is counted.
    effort
        What it may cost. Jobs beyond that are in `NodeDemand.unseen` of the NodeSets that they might use.
    """
    found = {one.name: NodeDemand() for one in view.sets}
    shapes = [*(node.shape for node in view.nodes), *(one.shape for one in view.sets)]
    constraints = Constraints((shape.features for shape in shapes), effort)
    reading = Reading(view, found, constraints, effort)
    units = reading.units()
    _ = effort.begin("")
    stock = _Stock(view)
    packing = Packing(stock.partitions, effort, constraints)
    emptied = Emptied(view, effort, constraints)
    for unit in units:
        owners = reading.owners(unit.needs)
        for _ in range(unit.tasks):
            if not effort.begin(unit.user):
                break
            rooms = packing.place(unit.needs)
            if rooms is None:
                break
            for owner in {room.owner for room in rooms if room.owner}:
                found[owner].counted.add(unit.name)
        else:
            continue
        fits = not effort.exhausted and emptied.fits(unit.needs)
        could = owners & emptied.could_use(unit.needs) if fits else owners
        limit = effort.limit
        for owner in owners if limit else could:
            if limit:
                found[owner].overlook(unit.name, limit)
            else:
                (found[owner].waiting if fits else found[owner].impossible).add(unit.name)
    for one in view.sets:
        wanted = found[one.name]
        wanted.busy, wanted.nodes = stock.needed(one)
    return found


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


def _preference(one: ScaledSet) -> tuple[int, float, str]:
    return one.weight, one.cost, one.name
