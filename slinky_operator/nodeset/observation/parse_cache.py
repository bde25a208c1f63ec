"""Parsed objects, kept until they change: parsing them takes longer than a whole plan.

A cache returns the same object until a new one has come, so its identity is enough. What is derived from a NodeSet's
spec is kept as long as the spec is equal: its status changes with most passes, the spec seldom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision import Content
from slinky_operator.nodeset.pod_spec import validation
from slinky_operator.slurm.nodes import node_features
from slinky_operator.slurm.nodes.node_features import Feature


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What a spec says about the pods to be created from it."""

    hash: str
    content: Content
    problems: tuple[str, ...]
    """Why none can be created: fields, with reasons."""
    features: tuple[Feature, ...] = ()
    """Features with which their nodes register, beside the name of the NodeSet."""


@dataclass(slots=True)
class _Followed:
    spec: NodeSetSpec
    cluster: Cluster | None
    wanted: PodDemand


class NodeSetParseCache:
    """NodeSets as last parsed."""

    def __init__(self) -> None:
        self._nodesets = ParseCache(NodeSet)
        self._followed: dict[str, _Followed] = {}

    async def prepare(self, obj: Object) -> None:
        """Parse a large NodeSet in a thread."""
        await self._nodesets.prepare(obj)

    def nodeset(self, obj: Object) -> NodeSet:
        """Parse a NodeSet.

        Raises
        ------
        InvalidObjectError
            It cannot be parsed.
        """
        return self._nodesets.read(obj)

    def wanted(self, nodeset: NodeSet, cluster: Cluster | None) -> PodDemand:
        """Return what the spec of a NodeSet says about its pods."""
        known = self._followed.get(nodeset.uid)
        if known is None or known.cluster is not cluster or known.spec != nodeset.spec:
            wanted = _wanted(nodeset, cluster)
            if cluster is None and known is not None and known.spec == nodeset.spec:
                # A Cluster that is gone, or cannot be parsed, asks for no other pods.
                wanted = replace(wanted, hash=known.wanted.hash, content=known.wanted.content)
            known = self._followed[nodeset.uid] = _Followed(nodeset.spec, cluster, wanted)
        return known.wanted

    def forget(self, uid: str) -> None:
        """Drop the cached data of a deleted NodeSet."""
        self._nodesets.forget(uid)
        self._followed.pop(uid, None)


def _wanted(nodeset: NodeSet, cluster: Cluster | None) -> PodDemand:
    problems = tuple(map(str, validation.check(nodeset, cluster))) if cluster is not None else ()
    content = revision.content(nodeset, cluster)
    return PodDemand(revision.hash_of(content), content, problems, node_features.of(nodeset))
