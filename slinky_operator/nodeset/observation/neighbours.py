"""Pods and nodes of others with names that a pod or a node of a NodeSet could have.

Such a name cannot be used, and a report says whose it is. To look for them takes most of an observation, and seldom
finds any: a look that has found none is remembered until something that it depends on has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts, KubernetesNode
from slinky_operator.nodeset.model.pods import guard, lost_labels, pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.reconcile.cached.indexes import NODE_INDEX
from slinky_operator.slurm.pods import pod_ownership
from slurm_client.models import Node

_CouldBe = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """What has such a name."""

    foreign_pods: Mapping[str, str]
    """Names of pods that belong to others, and what to say of each."""
    names_of_other_nodesets: Mapping[str, str]
    """Names of nodes of other NodeSets, and these NodeSets."""


@dataclass(frozen=True, slots=True)
class _Alone:
    """A look that has found nothing."""

    asked: tuple[Hashable, ...]
    """What else the names follow from; the pods of the NodeSet follow from the layout of their cache."""
    nodes: Mapping[str, Node]
    hosts: Mapping[str, KubernetesNode] | None


class Neighbours:
    """Looks for them.

    Parameters
    ----------
    pods
        The cache of slurmd pods, with `NODE_INDEX`.
    hosts
        The Kubernetes Nodes; None if they are not watched.
    """

    def __init__(self, pods: Store, hosts: Hosts | None) -> None:
        self._pods = pods
        self._hosts = hosts
        self._alone: dict[str, _Alone] = {}
        """Looks that have found nothing, by uids of NodeSets."""

    def of(self, nodeset: NodeSet, cluster: Cluster | None, own: Collection[Pod], nodes: Mapping[str, Node]) -> Found:
        """Find them.

        Parameters
        ----------
        nodeset, cluster
            The NodeSet, and its Cluster if it exists.
        own
            The pods of the NodeSet.
        nodes
            The records in Slurm that concern it, by name.
        """
        # Only pods that are one for each of them are named after them.
        on_hosts = self._hosts is not None and nodeset.mode is not ScalingMode.STATEFUL_SET
        hosts = self._hosts.picture() if self._hosts is not None and on_hosts else None
        asked = (
            self._pods.layout,
            nodeset.namespace,
            nodeset.name,
            nodeset.mode,
            nodeset.spec.replicas,
            nodeset.spec.ordinal_padding,
            (cluster.namespace, cluster.name) if cluster is not None else None,
        )
        known = self._alone.get(nodeset.uid)
        if (
            known is not None
            and asked == known.asked
            and hosts is known.hosts
            and (nodes is known.nodes or nodes.keys() == known.nodes.keys())
        ):
            return Found({}, {})
        found = self._look(nodeset, cluster, own, nodes)
        if found.foreign_pods or found.names_of_other_nodesets:
            self._alone.pop(nodeset.uid, None)
        else:
            self._alone[nodeset.uid] = _Alone(asked, nodes, hosts)
        return found

    def forget(self, uid: str) -> None:
        """Drop what is remembered of a deleted NodeSet."""
        self._alone.pop(uid, None)

    def stripped(self, nodeset: NodeSet, foreign_pods: Iterable[str], revision: str) -> dict[str, str]:
        """Of pods with names that a pod of a NodeSet could have, those that are its own and have lost a label.

        Returns
        -------
        dict
            What to do about each, by the name of its node.
        """
        found = {}
        for name in foreign_pods:
            obj = self._pods.get(nodeset.namespace, name)
            text = lost_labels.words(nodeset, obj, revision) if obj is not None else None
            if obj is not None and text is not None:
                found[pod_ownership.node_name(obj)] = text
        return found

    def _look(self, nodeset: NodeSet, cluster: Cluster | None, own: Collection[Pod], names: Collection[str]) -> Found:
        others = self._others(nodeset, cluster, own, names)
        if not others:
            return Found({}, {})
        could_be_node, could_be_pod = self._namers(nodeset, len(own), names)
        foreign_pods, names_of_other_nodesets = {}, {}
        for obj in others:
            name, given = obj["metadata"]["name"], obj["metadata"].get("labels") or {}
            if could_be_pod(name):
                foreign_pods[name] = guard.stranger(nodeset, obj)
            of_nodeset = given.get(labels.LABEL_NODESET_UID)
            is_in_slurm = cluster is not None and given.get(labels.LABEL_CLUSTER_NAME) == cluster.name
            if is_in_slurm and of_nodeset not in {None, nodeset.uid} and could_be_node(pod_ownership.node_name(obj)):
                names_of_other_nodesets[pod_ownership.node_name(obj)] = given.get(labels.LABEL_NODESET_NAME) or ""
        return Found(foreign_pods, names_of_other_nodesets)

    def _others(
        self, nodeset: NodeSet, cluster: Cluster | None, own: Collection[Pod], names: Collection[str]
    ) -> Sequence[Object]:
        """Pods of others, all those at least that have such a name.

        A NodeSet has thousands of names beside few pods of others, or few names beside thousands of these: what is
        gone through are the fewer.
        """
        own_names = {item.name for item in own}
        if len(self._pods) - len(own) <= (nodeset.spec.replicas or 0) + len(own) + len(names):
            return self._pods.others(nodeset.namespace, own_names)
        nodes = self._nodes(nodeset, len(own), names)
        by_name = (self._pods.get(nodeset.namespace, pod_names.pod_name(nodeset, node)) for node in nodes)
        found = [obj for obj in by_name if obj is not None]
        if cluster is not None:
            prefix, keys = f"{cluster.namespace}/{cluster.name}/", {item.node_name: item.name for item in own}
            for node in nodes:
                key = nodeset.namespace, keys.get(node, "")
                # Nearly all names are those of the NodeSet's own pods, or nobody's.
                if self._pods.lists_others(NODE_INDEX, prefix + node, key):
                    found += self._pods.find(NODE_INDEX, prefix + node)
        return [obj for obj in found if obj["metadata"]["name"] not in own_names]

    def _nodes(self, nodeset: NodeSet, count: int, names: Collection[str]) -> set[str]:
        """All names that a node of the NodeSet could have."""
        if nodeset.mode is ScalingMode.STATEFUL_SET:
            padding, numbers = nodeset.spec.ordinal_padding, range((nodeset.spec.replicas or 0) + count)
            return {*names, *(pod_names.numbered(nodeset.name, number, padding) for number in numbers)}
        hosts = self._hosts.picture().values() if self._hosts is not None else ()
        return {*names, *(host.node_name for host in hosts)}

    def _namers(self, nodeset: NodeSet, count: int, names: Collection[str]) -> tuple[_CouldBe, _CouldBe]:
        """Whether a node of the NodeSet could have a name, and whether a pod could.

        It has `count` pods, and `names` are those of records in Slurm that concern it.
        """
        if nodeset.mode is ScalingMode.STATEFUL_SET:
            padding, most = nodeset.spec.ordinal_padding, (nodeset.spec.replicas or 0) + count

            def is_numbered(name: str) -> bool:
                number = pod_names.ordinal(nodeset.name, name)
                if number is None or number >= most:
                    return name in names
                return name == pod_names.numbered(nodeset.name, number, padding) or name in names

            return is_numbered, is_numbered
        nodes = self._nodes(nodeset, count, names)
        return nodes.__contains__, {pod_names.pod_name(nodeset, node) for node in nodes}.__contains__
