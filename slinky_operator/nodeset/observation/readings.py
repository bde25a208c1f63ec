"""What was read of a cache, kept for the next look: only what has changed since is read again, the rest is the same.

An object of a cache, and a record of a list of Slurm, is the same object until another has come. So what has changed is
found by comparing identities, some nanoseconds each, and no list of changes is kept that could lack one. Where the
result would have another shape (something came, went, or has another owner), all is joined again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.pods import pod_facts, pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import identity
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class PodReading:
    """The pods of a NodeSet, as they were last read."""

    objects: Sequence[Object] = ()
    """The pods as the cache gave them."""
    read: Sequence[Pod] = ()
    """What each of them says."""
    order: Sequence[int] = ()
    """Their places, by ordinal and name."""
    pods: tuple[Pod, ...] = ()
    """The same in that order."""
    node_names: frozenset[str] = frozenset()
    """Names of their nodes in Slurm."""

    def again(self, objects: Sequence[Object], nodeset: str, now: datetime) -> PodReading:
        """Read the pods of a NodeSet of this name again, as far as they have changed."""
        if len(objects) != len(self.objects):
            return self._anew(objects, nodeset, now)
        if all(map(operator.is_, objects, self.objects)):
            return self
        read = list(self.read)
        for place, (old, new) in enumerate(zip(self.objects, objects, strict=True)):
            if old is new:
                continue
            before = read[place]
            read[place] = pod = read_pod(new, nodeset, {before.uid: before}, now)
            if (before.uid, before.name, before.ordinal, before.node_name) != (
                pod.uid,
                pod.name,
                pod.ordinal,
                pod.node_name,
            ):
                return self._anew(objects, nodeset, now)
        if all(map(operator.is_, read, self.read)):
            return PodReading(objects, self.read, self.order, self.pods, self.node_names)
        return PodReading(objects, read, self.order, tuple(map(read.__getitem__, self.order)), self.node_names)

    def unread(self, objects: Sequence[Object]) -> int:
        """How many of these objects are others than those that were read."""
        if len(objects) == len(self.objects):
            others = sum(map(operator.is_not, objects, self.objects))
            if not others:
                return 0
        # What has come or gone moves all after it.
        known = set(map(id, self.objects))
        return sum(id(obj) not in known for obj in objects)

    def with_registered(self, is_recorded: Callable[[Pod], bool]) -> PodReading:
        """The same, with what is recorded elsewhere of pods that do not say themselves that they have registered."""
        read = [pod if pod.registered else with_record(pod, is_recorded) for pod in self.read]
        if all(map(operator.is_, read, self.read)):
            return self
        return PodReading(self.objects, read, self.order, tuple(map(read.__getitem__, self.order)), self.node_names)

    def by_uid(self) -> dict[str, Pod]:
        """What was read, by uid."""
        return {pod.uid: pod for pod in self.read}

    def _anew(self, objects: Sequence[Object], nodeset: str, now: datetime) -> PodReading:
        same = dict(zip(map(id, self.objects), self.read, strict=True))
        known = self.by_uid()
        return joined(objects, [same.get(id(obj)) or read_pod(obj, nodeset, known, now) for obj in objects])


def joined(objects: Sequence[Object], read: Sequence[Pod]) -> PodReading:
    """What was read of these objects, each in its place."""
    places = [(pod.ordinal if pod.ordinal is not None else -1, pod.name) for pod in read]
    order = sorted(range(len(read)), key=places.__getitem__)
    names = frozenset(pod.node_name for pod in read)
    return PodReading(objects, read, order, tuple(map(read.__getitem__, order)), names)


def read_pod(obj: Object, nodeset: str, known: Mapping[str, Pod], now: datetime) -> Pod:
    """A pod as it was read before, by uid, unless it has changed; and since when the operator has seen what runs there.

    A kubelet's time of a start is that of another clock.
    """
    metadata = obj["metadata"]
    before = known.get(metadata["uid"])
    if before is not None and before.resource_version == metadata.get("resourceVersion"):
        return before
    pod = pod_facts.read(obj, nodeset)
    is_known = (
        before is not None and before.host == pod.host and pod.slurmd_started_at in {None, before.slurmd_started_at}
    )
    return replace(pod, seen_at=before.seen_at if before is not None and is_known else now)


def with_record(pod: Pod, is_recorded: Callable[[Pod], bool]) -> Pod:
    """A pod, with what is recorded elsewhere if it does not say itself that it has registered."""
    return pod if pod.registered or not is_recorded(pod) else replace(pod, registered=True, unmarked=True)


@dataclass(frozen=True, slots=True)
class NodeReading:
    """The records in Slurm that concern a NodeSet, as they were last chosen."""

    owner: str
    """Tag of the NodeSet."""
    node_names: frozenset[str]
    """Names of the nodes of its pods."""
    hosts: Mapping[str, KubernetesNode] | None
    """The Kubernetes Nodes that give names; None where its pods are numbered."""
    could_be: Callable[[str], bool]
    """Whether a node of the NodeSet could have a name."""
    concerns: Callable[[str, Node], bool]
    """Whether a record concerns the NodeSet: this follows from the fields above."""
    all: Mapping[str, Node]
    """The records of all nodes of the Slurm, a mapping that does not change."""
    own: Mapping[str, Node]
    """Those that concern it."""

    def again(self, nodes: Mapping[str, Node]) -> NodeReading:
        """Choose again among the records of all nodes, as far as they have changed."""
        before = self.all
        if nodes is before:
            return self
        return self.with_records(nodes, [name for name, node in nodes.items() if before.get(name) is not node])

    def renamed(self, node_names: frozenset[str]) -> NodeReading:
        """Choose again for other names of nodes of its pods."""
        concerns = _concerns(self.could_be, self.owner, node_names)
        moved = [name for name in node_names ^ self.node_names if name in self.all]
        return replace(self, node_names=node_names, concerns=concerns).with_records(self.all, moved)

    def with_records(self, nodes: Mapping[str, Node], doubtful: Sequence[str]) -> NodeReading:
        """The records of which these may have become its own, or ceased to be; all others are as before, or gone."""
        own = dict(self.own)
        come = False
        for name in doubtful:
            if self.concerns(name, nodes[name]):
                come = come or name not in own
                own[name] = nodes[name]
            else:
                _ = own.pop(name, None)
        if not own.keys() <= nodes.keys():
            own = {name: node for name, node in own.items() if name in nodes}
        if come:
            # What has come has its place in the list, which is that of its name.
            own = {name: own[name] for name in nodes if name in own}
        is_same = own.keys() == self.own.keys() and all(map(operator.is_, own.values(), self.own.values()))
        return replace(self, all=nodes, own=self.own if is_same else own)


def chosen(
    nodeset: str,
    owner: str,
    node_names: frozenset[str],
    hosts: Mapping[str, KubernetesNode] | None,
    nodes: Mapping[str, Node],
) -> NodeReading:
    """Choose the records of nodes that are named like a NodeSet's pods, tagged with it, or could be named by it.

    Parameters
    ----------
    nodeset
        Its name.
    owner, node_names, hosts
        As the fields of `NodeReading`.
    nodes
        The records of all nodes, by name.
    """
    could_be = _namer(nodeset, hosts)
    concerns = _concerns(could_be, owner, node_names)
    return NodeReading(owner, node_names, hosts, could_be, concerns, {}, {}).again(nodes)


def _concerns(could_be: Callable[[str], bool], owner: str, node_names: frozenset[str]) -> Callable[[str, Node], bool]:
    return lambda name, node: name in node_names or identity.is_tagged(node, owner) or could_be(name)


def _namer(nodeset: str, hosts: Mapping[str, KubernetesNode] | None) -> Callable[[str], bool]:
    """Return a function that says whether a node of this NodeSet could have a name."""
    if hosts is None:
        head = f"{nodeset}-"
        return lambda name: name.startswith(head) and pod_names.ordinal(nodeset, name) is not None
    return {host.node_name for host in hosts.values()}.__contains__
