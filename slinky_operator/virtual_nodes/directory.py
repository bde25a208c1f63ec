"""Which virtual Nodes there are, from the cache of Nodes.

A Node whose Cluster does not exist any more, or has another uid, is found all the same: its pods have jobs.
"""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.resources import VIRTUAL_NODES
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.virtual_nodes.node_names import VirtualNode, virtual_node

CACHE: Final = CacheSpec(VIRTUAL_NODES, label_selector=labels.LABEL_VIRTUAL_NODE)
"""The cache of virtual Nodes, whole: they have no images. Every room that reads them asks for this one."""


class Directory:
    """The virtual Nodes of the cluster.

    Parameters
    ----------
    nodes
        The cache of the operator's Nodes.
    """

    def __init__(self, nodes: Store) -> None:
        self._nodes = nodes

    def find(self, name: str) -> VirtualNode | None:
        """The virtual Node of a name; None if there is none."""
        obj = self._nodes.get(None, name)
        return None if obj is None else virtual_node(obj)

    def of_cluster(self, cluster: Key) -> list[VirtualNode]:
        """The virtual Nodes of a Cluster, by name."""
        found = (virtual_node(obj) for obj in self._nodes)
        return sorted((one for one in found if one is not None and one.cluster == cluster), key=lambda one: one.name)
