"""Which Kubernetes Nodes of a Cluster other Clusters choose, too.

Users who may create Clusters could make many that choose what they like, and to compare one with thousands of Nodes
takes milliseconds. So a pass looks at a few, each in its turn, and remembers what it found of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from slinky_operator.bridge.clusters import chooses
from slinky_operator.kube.cache.store import Store, key_of
from slinky_operator.kube.objects import Object

A_PASS: Final = 4
"""Other Clusters that one pass looks at."""


class Sharing:
    """What was found of the other Clusters, the one that was looked at longest ago first."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, ...]] = {}

    async def look(self, hosts: Iterable[str], nodes: Store, others: Iterable[Object]) -> Mapping[str, tuple[str, ...]]:
        """Return names of these Kubernetes Nodes that others choose, too, by `<namespace>/<name>` of these Clusters.

        Parameters
        ----------
        hosts
            Names of the Nodes that the Cluster chooses.
        nodes
            The cache of Nodes.
        others
            Other Clusters that may have a bridge.
        """
        known, names = {"/".join(map(str, key_of(one))): one for one in others}, list(hosts)
        self._found = {key: found for key, found in self._found.items() if key in known}
        new = [key for key in known if key not in self._found]
        for key in (*new, *self._found)[:A_PASS]:
            shared = tuple(name for name in names if _is_chosen(known[key], nodes.get(None, name)))
            self._found.pop(key, None)
            self._found[key] = shared
            # Passes over other Clusters have their turn.
            await asyncio.sleep(0)
        return {key: found for key, found in sorted(self._found.items()) if found}


def _is_chosen(cluster: Object, node: Object | None) -> bool:
    return node is not None and chooses(cluster, node["metadata"].get("labels") or {})
