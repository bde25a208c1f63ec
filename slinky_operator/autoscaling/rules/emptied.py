"""Whether a job could ever run, and on the nodes of which NodeSets."""

from __future__ import annotations

from collections import Counter

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Need
from slinky_operator.autoscaling.rules.packing import Packing, Partition, Supply
from slinky_operator.autoscaling.rules.rooms import Room, Shape
from slinky_operator.autoscaling.rules.trial import Trial
from slinky_operator.autoscaling.rules.view import View


class Emptied:
    """The Cluster with every NodeSet at its maximum and no job: whether a job can ever run.

    Nodes that offer the same count as many of one kind, less those that a job excludes. What the components of a
    heterogeneous job exclude is not looked at: one that could not run for that alone is taken for one that waits.
    """

    def __init__(self, view: View, effort: Effort, constraints: Constraints) -> None:
        self._view = view
        self._effort = effort
        self._constraints = constraints
        self._fits: dict[tuple[Need, ...], bool] = {}
        self._could: dict[tuple[Need, ...], frozenset[str]] = {}
        self._kinds: dict[str, Counter[tuple[str, Shape]]] | None = None
        """By partition, how many nodes there may be of each kind."""
        self._others = {node.node.name: node for node in view.nodes if not node.owner}

    def fits(self, unit: tuple[Need, ...]) -> bool:
        """Whether it could run; not to be relied on once the effort is exhausted."""
        if unit not in self._fits:
            excluded = unit[0].excluded if len(unit) == 1 else frozenset()
            partitions = self._partitions({name for need in unit for name in need.partitions}, excluded)
            self._effort.spend(sum(len(one.supplies) for one in partitions.values()))
            self._fits[unit] = Packing(partitions, self._effort, self._constraints).place(unit) is not None
        return self._fits[unit]

    def could_use(self, unit: tuple[Need, ...]) -> frozenset[str]:
        """NodeSets of which a node would be of use to it."""
        if unit not in self._could:
            found = set()
            for one in self._view.sets:
                for need in unit:
                    self._effort.spend()
                    if not one.partitions.isdisjoint(need.partitions) and one.most:
                        trial = Trial(_one_node(need), None, self._constraints)
                        if trial.take(Room.empty(one.name, one.shape)) and trial.done:
                            found.add(one.name)
            self._could[unit] = frozenset(found)
        return self._could[unit]

    def _partitions(self, names: set[str], excluded: frozenset[str]) -> dict[str, Partition]:
        if self._kinds is None:
            self._kinds = self._all_kinds()
        gone: Counter[tuple[str, Shape]] = Counter()
        for one in excluded & self._others.keys():
            self._effort.spend()
            for name in names.intersection(self._others[one].node.partitions):
                gone[name, self._others[one].shape] += 1
        supplies: dict[tuple[str, Shape], Supply] = {}
        found = {}
        for name in names & self._view.most_nodes.keys():
            partition = found[name] = Partition(most_nodes=self._view.most_nodes[name])
            for (owner, shape), count in self._kinds.get(name, Counter()).items():
                # A NodeSet is one supply in all its partitions; other nodes may be in one partition and not in another.
                key = (owner or f"/{name}", shape)
                left = count if owner else count - gone[name, shape]
                partition.supplies.append(supplies.setdefault(key, Supply(key[0], shape, left)))
        return found

    def _all_kinds(self) -> dict[str, Counter[tuple[str, Shape]]]:
        kinds: dict[str, Counter[tuple[str, Shape]]] = {name: Counter() for name in self._view.most_nodes}
        for one in self._others.values():
            for name in one.node.partitions:
                if name in kinds:
                    kinds[name]["", one.shape] += 1
        for scaled in self._view.sets:
            for name in scaled.partitions & kinds.keys():
                kinds[name][scaled.name, scaled.shape] = max(scaled.most, scaled.replicas)
        return kinds


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
