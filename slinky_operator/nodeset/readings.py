"""What is read from objects once, and used until they change: reading them takes longer than a whole plan.

A cache gives the very same object until a new one has come, so that its identity tells. What follows from a NodeSet's
spec is kept as long as the spec is equal: its status changes with most passes, the spec seldom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import NodeSet, NodeSetSpec
from slinky_operator.kube.store import Key
from slinky_operator.nodeset import revision, template
from slinky_operator.nodeset.revision import Content

Source = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a spec says of the pods to be made from it."""

    hash: str
    content: Content
    problems: tuple[str, ...]
    """Why none can be: fields, with reasons."""


@dataclass(slots=True)
class _NodeSet:
    source: Source
    read: NodeSet
    spec: NodeSetSpec | None = None
    """That of `wanted`."""
    cluster: Cluster | None = None
    wanted: Wanted | None = None


class Readings:
    """NodeSets and Clusters as they were read last."""

    def __init__(self) -> None:
        self._nodesets: dict[str, _NodeSet] = {}
        self._clusters: dict[Key, tuple[Source, Cluster | None]] = {}

    def nodeset(self, obj: Source) -> NodeSet:
        """Read a NodeSet.

        Raises
        ------
        InvalidObjectError
            It is none that can be read.
        """
        uid = obj["metadata"]["uid"]
        known = self._nodesets.get(uid)
        if known is None:
            known = self._nodesets[uid] = _NodeSet(obj, NodeSet.parse(obj))
        elif known.source is not obj:
            known.read = NodeSet.parse(obj)
            known.source = obj
        return known.read

    def cluster(self, key: Key, obj: Source | None) -> Cluster | None:
        """Read a Cluster; None if there is none, or none that can be read."""
        if obj is None:
            self._clusters.pop(key, None)
            return None
        known = self._clusters.get(key)
        if known is None or known[0] is not obj:
            try:
                known = obj, Cluster.parse(obj)
            except InvalidObjectError:
                known = obj, None
            self._clusters[key] = known
        return known[1]

    def wanted(self, nodeset: NodeSet, cluster: Cluster | None) -> Wanted:
        """Tell what the spec of a NodeSet says of its pods."""
        known = self._nodesets.get(nodeset.uid)
        if known is None:
            return _wanted(nodeset, cluster)
        if known.wanted is None or known.cluster is not cluster or known.spec != nodeset.spec:
            known.wanted = _wanted(nodeset, cluster)
        known.spec, known.cluster = nodeset.spec, cluster
        return known.wanted

    def forget(self, uid: str) -> None:
        """Drop what is kept of a NodeSet that is gone."""
        self._nodesets.pop(uid, None)


def _wanted(nodeset: NodeSet, cluster: Cluster | None) -> Wanted:
    problems = tuple(map(str, template.check(nodeset, cluster))) if cluster is not None else ()
    return Wanted(revision.of(nodeset), revision.content(nodeset), problems)
