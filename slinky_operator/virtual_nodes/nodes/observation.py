"""What a pass over a Cluster knows: from the caches of Nodes and of its Slurm, and the last answer about partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from slinky_api.v1alpha1.cluster.jobs import VirtualNodes
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.jobs.job_facts import PartitionJobs
from slinky_operator.virtual_nodes.node_names import virtual_node
from slinky_operator.virtual_nodes.nodes.model.node_object import Availability
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts, facts
from slinky_operator.virtual_nodes.nodes.model.snapshot import Snapshot, owner_of
from slinky_operator.virtual_nodes.nodes.model.wishes import wanted_of
from slinky_operator.virtual_nodes.nodes.partition_poll import AGAIN_S, PartitionAnswer, PartitionPoll
from slinky_operator.virtual_nodes.nodes.partition_poll import Slurm as AskedSlurm
from slurm_client.models import Node

PATIENCE_S: Final = 60.0
"""Seconds without a first answer of Slurm after which it counts as away."""

MANY: Final = 200
"""Nodes of Slurm from which on they are added up in a thread."""


class Slurm(AskedSlurm, Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    contact: Contact
    nodes_at: float | None
    partition_jobs: PartitionJobs | None

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes."""
        ...


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None:
        """The Slurm of a Cluster."""
        ...


class Leases(Protocol):
    """What is used of `leases.NodeLeases`."""

    def hurry(self) -> None:
        """Renew now."""
        ...


@dataclass(frozen=True, slots=True)
class KubeletAddress:
    """Where the API server reaches the kubelet API of all virtual Nodes."""

    address: str
    port: int


@dataclass(slots=True)
class Memory:
    """What is remembered of one Cluster."""

    uid: str
    since: float
    facts: Mapping[str, PartitionFacts] | None = None
    """By Slurm's last answer."""
    closed_at: dict[str, float] = field(default_factory=dict)
    """By uid of a Node that is to go: since when it is known to take no more pods."""
    partitions_at: float | None = None
    """When the partitions in the status were last written."""


class Observation:
    """Makes snapshots.

    Parameters
    ----------
    nodes
        The cache of virtual Nodes.
    slurm, poll
        The Slurm of every Cluster, and what it says of partitions.
    kubelet
        Where the kubelet API is.
    """

    def __init__(self, nodes: Store, slurm: SlurmByUid, poll: PartitionPoll, kubelet: KubeletAddress) -> None:
        self._nodes = nodes
        self._slurm = slurm
        self._poll = poll
        self._kubelet = kubelet

    def of_cluster(self, key: Key) -> list[Object]:
        """The Nodes that carry a Cluster's name, by name."""
        found = [obj for obj in self._nodes if (node := virtual_node(obj)) is not None and node.cluster == key]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    def _others(self, key: Key) -> dict[str, str]:
        """Names of the virtual Nodes of other Clusters."""
        found = ((obj, virtual_node(obj)) for obj in self._nodes)
        return {
            str(obj["metadata"]["name"]): owner_of(obj) for obj, node in found if node is None or node.cluster != key
        }

    def ending(self, key: Key, uid: str, why: str) -> Snapshot:
        """What a pass knows of a Cluster that is to have no virtual Nodes."""
        return Snapshot(
            cluster=key,
            uid=uid,
            wanted=None,
            why_not=why,
            facts=None,
            availability=Availability(None),
            nodes=self.of_cluster(key),
            taken={},
            address=self._kubelet.address,
            port=self._kubelet.port,
        )

    async def snapshot(
        self, key: Key, uid: str, wanted: VirtualNodes, memory: Memory, now: float
    ) -> tuple[Snapshot, float]:
        """What a pass knows of a Cluster, and the seconds until Slurm is asked again."""
        slurm = self._slurm.get(uid)
        answer, due = PartitionAnswer(), AGAIN_S
        ready = slurm is not None and slurm.contact.state is ContactState.READY and slurm.nodes_at is not None
        if slurm is not None and ready:
            due = max(self._poll.ask(key, uid, slurm), AGAIN_S)
            answer = self._poll.known(uid)
            # An answer without any partition removes no Node.
            if answer.partitions:
                memory.facts = await _facts(key, uid, answer, dict(slurm.nodes))
        chosen, problems = wanted_of(wanted)
        return Snapshot(
            cluster=key,
            uid=uid,
            wanted=chosen,
            why_not="",
            facts=memory.facts,
            availability=_availability(slurm, answer, now - memory.since),
            nodes=self.of_cluster(key),
            taken=self._others(key),
            address=self._kubelet.address,
            port=self._kubelet.port,
            problems=problems,
            jobs=None if slurm is None else slurm.partition_jobs,
        ), due


def _availability(slurm: Slurm | None, answer: PartitionAnswer, known_for: float) -> Availability:
    """Whether Slurm answers; not known until it has answered once, or should have."""
    if slurm is None or slurm.contact.state is ContactState.CONNECTING or slurm.nodes_at is None:
        if slurm is not None and slurm.contact.state is ContactState.UNREACHABLE:
            return Availability(slurm=False, slurm_message=slurm.contact.why)
        late = known_for >= PATIENCE_S
        return Availability(slurm=False if late else None, slurm_message="the Cluster has no connection to its Slurm")
    if slurm.contact.state is not ContactState.READY:
        return Availability(slurm=False, slurm_message=slurm.contact.why)
    if answer.partitions is None:
        return Availability(slurm=False if answer.failure else None, slurm_message=answer.failure)
    if not answer.partitions:
        return Availability(slurm=False, slurm_message="its answer has no partition at all")
    return Availability()


async def _facts(
    key: Key, uid: str, answer: PartitionAnswer, nodes: Mapping[str, Node]
) -> Mapping[str, PartitionFacts]:
    partitions = answer.partitions or ()
    if len(nodes) <= MANY:
        return facts(partitions, nodes.values())
    return await run_in_thread((key[0], "virtual nodes", uid), facts, partitions, list(nodes.values()))
