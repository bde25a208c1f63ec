"""The frozen input of one pass: what Kubernetes shows, what Slurm shows, what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model import member
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.claims import VolumeClaim
from slinky_operator.nodeset.model.drain_requests import DrainRequest
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.machines import MachineRules
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.pods.registered_pods import Marking
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.ssh_keys import MissingKeys
from slinky_operator.nodeset.slurm_nodes import drains, identity
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.slurm.nodes.node_references import References
from slurm_client.models import Job, Node


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts about the Cluster that a NodeSet names."""

    uid: str = ""
    """Empty if the Cluster does not exist."""
    gone: bool = False
    """Whether the API server itself, not a cache, has answered that it does not exist."""
    deleting: bool = False
    external: bool = False
    node_sets: frozenset[str] = frozenset()
    """Names of the NodeSets in its running configuration: no node can have such a name."""
    leaving: frozenset[str] = frozenset()
    """Names of other NodeSets that are being deleted, or are gone, and may be in slurmctld's configuration still,
    whether the Cluster's status lists them or not: no node can have such a name yet."""
    listed: bool = False
    """Whether the running configuration contains the NodeSet."""
    refused: str = ""
    """Why the configuration leaves the NodeSet out, or keeps its earlier part; empty if it does neither."""
    update_wait: str = ""
    """What an update of pods waits for; empty if for nothing. It is paused meanwhile."""
    window_wait: str = ""
    """The maintenance window that it waits for, if it waits for nothing else."""
    maintenance: str = ""
    """The maintenance window with the NodeSet that is on or comes next; empty without one."""
    maintenance_changes_in: float | None = None
    """Seconds until a maintenance window begins or ends; None if none does."""
    has_contain: bool = False
    """Whether its jobs have a step for sessions by SSH; looked at only for a NodeSet with `spec.ssh`."""

    @property
    def exists(self) -> bool:
        """Whether the Cluster exists."""
        return bool(self.uid)


@dataclass(frozen=True, slots=True)
class SlurmFacts:
    """What Slurm shows, or why it shows nothing."""

    readable: bool
    """Whether Slurm answers and its nodes are cached."""
    reason: Reason = Reason.AS_EXPECTED
    """Why not."""
    why: str = ""
    """Why not, as quoted from the answer."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Records by name: those named like a pod here or like one that could be created, and those tagged with this
    NodeSet. They may be seconds old: enough to start something, not to delete anything."""
    jobs: Mapping[str, tuple[Job, ...]] | None = None
    """Jobs that hold nodes, by node; None if they were not queried."""
    named: References = field(default_factory=dict)
    """What jobs and reservations name these nodes; empty if jobs were not queried."""


@dataclass(frozen=True)
class Snapshot:
    """One NodeSet and everything about it.

    What is derived is derived when a rule asks for it: for a large NodeSet in the thread of the rules.
    """

    nodeset: NodeSet
    cluster: ClusterFacts
    slurm: SlurmFacts
    revision: Revision
    pods: tuple[Pod, ...] = ()
    """Pods with the NodeSet's uid label."""
    claims: tuple[VolumeClaim, ...] = ()
    """Claims of the NodeSet, or of an earlier one of its name."""
    hosts: Mapping[str, KubernetesNode] | None = None
    """Kubernetes Nodes by name; None if they are not watched."""
    drain_requests: Mapping[str, DrainRequest] | None = field(default_factory=dict)
    """NVSentinel's requests to drain, by Kubernetes Node; none if they are not served, and None if not known yet."""
    machine_rules: MachineRules | None = None
    """Who may have machines rebooted or deleted; None if nobody may."""
    foreign_pods: Mapping[str, str] = field(default_factory=dict)
    """Names of pods that belong to others and that a pod of the NodeSet could have, and what to say of each."""
    stripped: Mapping[str, str] = field(default_factory=dict)
    """Nodes whose pods have lost the operator's labels, and what to do about it."""
    names_of_other_nodesets: Mapping[str, str] = field(default_factory=dict)
    """Node names that this NodeSet could use and that pods of another NodeSet have, with that NodeSet's name."""
    mode_is_fixed: bool = True
    """Whether the mode is recorded; it is not before the first pass."""
    ended: frozenset[str] = frozenset()
    """Nodes whose pods are gone, after a kubelet had reported that all their containers had ended."""
    unlisted: frozenset[str] = frozenset()
    """Nodes whose pods have gone since Slurm was asked for its nodes: it may have records of them that are not here."""
    guard: str = ""
    """Uid of the guard; empty if it is not known to exist."""
    marking: Marking = Marking()  # noqa: RUF009 - frozen
    """When it is written on pods themselves that they have registered."""
    max_startup: int = 1
    """How many pods may be starting at a time, if the spec does not set it."""
    recorded: RecordedEnds = RecordedEnds()  # noqa: RUF009 - frozen
    """What slurmdbd has said of jobs that delay drains."""
    steps: Mapping[str, StepsSeen] = field(default_factory=dict)
    """What slurmds have shown of the steps on their nodes, by uid of the pod."""
    idle: frozenset[str] = frozenset()
    """Uids of pods whose slurmds have shown for minutes that no step runs."""
    rooms: Mapping[str, RoomSeen] = field(default_factory=dict)
    """What job log servers have said of their volumes, by `output_room.volume_of`."""
    checks: StoredChecks | None = None
    """Which nodes run which health checks; None if that has not been read yet."""
    checks_are_old: bool = False
    """Whether that was read long ago, and is to be read again."""
    missing_keys: tuple[MissingKeys, ...] = ()
    """What is missing of the Secrets that `spec.ssh` names."""
    refused_traits: Mapping[str, RefusedTraits] = field(default_factory=dict)
    """What Slurm has not taken of nodes a moment ago, and would not take now."""
    state_writes: int = 0
    """How many pods may get other conditions about states of their nodes in this pass (`health.node_states`)."""
    pods_in_sight: int = 0
    """Pods of all Clusters that the operator knows: what sets the pace of questions to single pods."""
    patience: timedelta = timedelta(minutes=5)
    """How long a slurmd may run before it registers."""

    @cached_property
    def owner(self) -> str:
        """The tag of this NodeSet's records."""
        return identity.tag(self.nodeset.namespace, self.nodeset.name)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The pods, in the same order, each joined with its node in Slurm."""
        nodes, jobs, named = self.slurm.nodes, self.slurm.jobs or {}, self.slurm.named
        return tuple(member.join(pod, nodes, jobs, self.owner, named, self.idle) for pod in self.pods)

    @cached_property
    def aside(self) -> tuple[Member, ...]:
        """Of the members, in their order, those whose nodes get no jobs: few of many, and what most rules ask about."""
        return tuple(one for one in self.members if one.record is not None and drains.is_aside(one.record))

    def host_of(self, pod: Pod) -> KubernetesNode | None:
        """The Kubernetes Node a pod is bound to; None if it is unbound, or its Node is not known."""
        return self.hosts.get(pod.host) if self.hosts is not None else None

    def drain_request_of(self, pod: Pod) -> DrainRequest | None:
        """The request that keeps the node of a pod drained; None if there is none."""
        request = self.drain_requests.get(pod.host) if self.drain_requests is not None else None
        return request if request is not None and request.is_in_force(self.host_of(pod)) else None

    def with_jobs(self, jobs: Mapping[str, tuple[Job, ...]], named: References | None = None) -> Snapshot:
        """The same snapshot with the jobs that were queried, and with what names its nodes."""
        return replace(self, slurm=replace(self.slurm, jobs=jobs, named=named or {}))

    def with_learnt(self, rooms: Mapping[str, RoomSeen], refused_traits: Mapping[str, RefusedTraits]) -> Snapshot:
        """The same snapshot with what its pass has learnt, which changes no member: these are not joined again."""
        found = replace(self, rooms=rooms, refused_traits=refused_traits)
        vars(found).update({name: value for name, value in vars(self).items() if name in _OF_PODS_AND_NODES})
        return found

    def blinded(self, reason: Reason, why: str) -> Snapshot:
        """The same snapshot after Slurm has failed to answer: cached nodes are no longer used."""
        return replace(self, slurm=SlurmFacts(readable=False, reason=reason, why=why))


_OF_PODS_AND_NODES: Final = frozenset({"owner", "members", "aside"})
"""What is derived of pods and records alone."""
