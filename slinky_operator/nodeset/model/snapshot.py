"""Everything one pass decides upon, frozen: what Kubernetes shows, what Slurm shows, what we remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset.model import member
from slinky_operator.nodeset.model.claims import Claim
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.model.revision_records import Revision
from slinky_operator.nodeset.slurm_nodes import identity
from slurm_client.models import Job, Node


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What matters of the Cluster a NodeSet names."""

    uid: str = ""
    """Empty if there is no such Cluster."""
    gone: bool = False
    """Whether the API server itself, not a cache, has said that there is none."""
    deleting: bool = False
    external: bool = False
    node_sets: frozenset[str] = frozenset()
    """Names of the NodeSets that its running configuration knows: no node can be called so."""
    listed: bool = False
    """Whether the running configuration knows the NodeSet."""
    refused: str = ""
    """Why the configuration leaves the NodeSet's part out, or as it was; empty if it does not."""

    @property
    def exists(self) -> bool:
        """Whether there is such a Cluster."""
        return bool(self.uid)


@dataclass(frozen=True, slots=True)
class SlurmFacts:
    """What Slurm shows, or why it shows nothing."""

    readable: bool
    """Whether Slurm answers and a picture of its nodes is there."""
    reason: Reason = Reason.AS_EXPECTED
    """Why not."""
    why: str = ""
    """Why not, in the words that came back."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Records by name: those named like a pod here or like one that could be created, and those tagged with this
    NodeSet. They may be seconds old: enough to begin something, not to delete anything."""
    jobs: Mapping[str, tuple[Job, ...]] | None = None
    """Jobs that hold nodes, by node; None if they were not asked for."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One NodeSet and all that concerns it."""

    nodeset: NodeSet
    cluster: ClusterFacts
    slurm: SlurmFacts
    revision: Revision
    pods: tuple[Pod, ...] = ()
    """Pods with our uid label."""
    claims: tuple[Claim, ...] = ()
    """Claims of the NodeSet, or of an earlier one of its name."""
    hosts: Mapping[str, KubernetesNode] | None = None
    """Kubernetes Nodes by name; None if nobody watches them."""
    foreign_pods: frozenset[str] = frozenset()
    """Names of pods that are not ours and stand where ours could."""
    stripped: Mapping[str, str] = field(default_factory=dict)
    """Nodes whose pods have lost our labels, and what to do about it."""
    names_of_other_nodesets: Mapping[str, str] = field(default_factory=dict)
    """Nodes that ours could be called like, and that are those of another NodeSet's pods, with its name."""
    mode_is_fixed: bool = True
    """Whether the mode has been written down; it is not before the first pass."""
    ended: frozenset[str] = frozenset()
    """Nodes whose pods are gone, and of which a kubelet had said that all had ended."""
    guard: str = ""
    """Uid of the guard; empty if it is not known to exist."""
    max_startup: int = 1
    """How many pods may be starting at a time, where the spec does not say."""
    patience: timedelta = timedelta(minutes=5)
    """How long a slurmd may run before it registers."""
    owner: str = field(init=False)
    """The tag of this NodeSet's records."""
    members: tuple[Member, ...] = field(init=False)
    """The pods, in the same order, each with what Slurm shows of its node; they follow `pods` and `slurm`."""

    def __post_init__(self) -> None:
        owner = identity.tag(self.nodeset.namespace, self.nodeset.name)
        nodes, jobs = self.slurm.nodes, self.slurm.jobs or {}
        object.__setattr__(self, "owner", owner)
        object.__setattr__(self, "members", tuple(member.join(pod, nodes, jobs, owner) for pod in self.pods))

    def host_of(self, pod: Pod) -> KubernetesNode | None:
        """The Kubernetes Node a pod is bound to; None before, and where it is not known."""
        return self.hosts.get(pod.host) if self.hosts is not None else None
