"""What triggers the controller of Node labels: a Node whose labels or resources change, the ConfigMap, and Slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODES, PODS
from slinky_operator.node_labels.model import found_on
from slinky_operator.node_labels.slurm_nodes import SlurmNodes
from slinky_operator.reconcile.triggers import Triggers, is_same, own_key


class NodeLabelsTriggers:
    """Handlers: each returns the keys of Nodes.

    Parameters
    ----------
    nodes
        The cache of Nodes.
    subscribe
        Registers a function that is called after each change of the ConfigMap.
    records
        The nodes of Slurm; None if no labels are made from them.
    """

    def __init__(
        self, nodes: Store, subscribe: Callable[[Callable[[], None]], None], records: SlurmNodes | None = None
    ) -> None:
        self._nodes = nodes
        self._subscribe = subscribe
        self._records = records

    def table(self) -> Triggers:
        """All handlers, by their source."""
        records = self._records
        if records is None:
            return Triggers(
                objects={NODES: self.node},
                others=(self.config_map,),
            )
        return Triggers(
            objects={NODES: self.node, PODS: records.pod},
            contact=records.contact,
            node=records.node,
            others=(self.config_map,),
        )

    def node(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Nodes: a kubelet that starts again may have removed resources; heartbeats do not matter."""
        return () if is_same(old, new, _of_interest) else own_key(old, new)

    def config_map(self, add: Callable[[Key], None]) -> None:
        """Let a change of the ConfigMap trigger all Nodes: those that it does not name any longer too."""

        def all_nodes() -> None:
            for key in self._nodes.keys():  # noqa: SIM118 - a store is no mapping: it iterates over objects
                add(key)

        self._subscribe(all_nodes)


def _of_interest(obj: Object) -> object:
    return obj["metadata"].get("uid"), found_on(obj)
