"""What a pass over a group of pods knows, read once and frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.bridge.devices import DeviceKey, NodeDevices
from slinky_operator.bridge.pods.model import membership
from slinky_operator.bridge.pods.model.group_owners import Owner
from slinky_operator.bridge.pods.model.membership import GroupKey, GroupKind
from slinky_operator.bridge.pods.model.translation.device_requests import ClaimsPending
from slinky_operator.bridge.pods.model.translation.request import Request
from slinky_operator.jobs import tenants
from slinky_operator.jobs.phases import Phase
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import moment

ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Member:
    """A pod of the group; what a plan asks often is read once."""

    obj: Object
    rank: int | None
    request: Request | InvalidJob | ClaimsPending | None = None
    """What it asks for; None where that was not read."""
    claims: Mapping[str, Object] = field(default_factory=dict)
    """Of a pod that waits, its ResourceClaims that are there, by their names in it."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.obj["metadata"]["name"])

    @cached_property
    def uid(self) -> str:
        """Its uid."""
        return str(self.obj["metadata"]["uid"])

    @property
    def phase(self) -> str:
        """Its phase."""
        return str((self.obj.get("status") or {}).get("phase") or "Pending")

    @property
    def created(self) -> datetime | None:
        """When it was created."""
        return moment(self.obj["metadata"].get("creationTimestamp"))

    @cached_property
    def is_over(self) -> bool:
        """Whether it has ended, or will never begin."""
        return self.phase in ENDED or self.is_void

    @property
    def is_void(self) -> bool:
        """Whether it is to go and has no Node: Kubernetes gives it none any more, however long finalizers keep it."""
        return self.is_deleting and not (self.obj.get("spec") or {}).get("nodeName")

    @cached_property
    def is_deleting(self) -> bool:
        """Whether it is to go."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))

    @cached_property
    def is_gated(self) -> bool:
        """Whether it waits for Slurm."""
        return membership.is_gated(self.obj)

    @property
    def waits(self) -> bool:
        """Whether it waits for Slurm, and is not about to go."""
        return self.is_gated and not self.is_deleting and not self.is_over

    @property
    def other_gates(self) -> list[str]:
        """Gates that are not ours."""
        own = labels.GATE_BRIDGE
        return [name for name in membership.gates_of(self.obj) if name != own] if self.is_gated else []

    @cached_property
    def job(self) -> str:
        """Name of the SlurmJob by which it was placed; empty if it was not."""
        return membership.placed_by(self.obj)

    @property
    def slot(self) -> int | None:
        """Which task of that job it is."""
        return membership.slot_of(self.obj)

    @property
    def runs(self) -> bool:
        """Whether it was placed, and has not ended."""
        return bool(self.job) and not self.is_over


@dataclass(frozen=True, slots=True)
class GroupJob:
    """A SlurmJob of the group."""

    obj: Object
    status: SlurmJobStatus
    attempt: int
    """Which job of the group it is, from 0 on."""
    is_owned: bool
    """Whether the object that holds the group together owns it."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.obj["metadata"]["name"])

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        found: Mapping[str, Any] = self.obj.get("spec") or {}
        return found

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """What each of its components asks for, with what it has of the whole; of a plain job its spec."""
        external = self.spec.get("external")
        found = external.get("components") if isinstance(external, dict) else None
        common = self.spec.get("parameters") or {}
        return tuple(
            {**self.spec, **one, "parameters": {**common, **(one.get("parameters") or {})}} for one in found or ()
        ) or (self.spec,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many pods each of its components is for."""
        found = (one.get("tasks") for one in self.parts)
        return tuple(one if isinstance(one, int) else 1 for one in found)

    @property
    def tasks(self) -> int:
        """How many pods it is for."""
        return sum(self.sizes)

    @property
    def is_deleting(self) -> bool:
        """Whether it is to go."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))

    @property
    def is_finished(self) -> bool:
        """Whether Slurm has nothing of it any more."""
        return self.status.state in {Phase.SUCCEEDED, Phase.FAILED}

    @property
    def is_lost(self) -> bool:
        """Whether Slurm has forgotten it, without an end that anybody has seen."""
        finished = any((one.type, one.status) == ("Finished", "True") for one in self.status.conditions)
        return self.status.state == Phase.UNKNOWN and finished

    @property
    def is_ended_by_us(self) -> bool:
        """Whether its pods have ended, and its SlurmJob says so."""
        return bool((self.spec.get("external") or {}).get("ended"))

    @property
    def is_over(self) -> bool:
        """Whether no pod may be placed by it any more."""
        return self.is_finished or self.is_deleting or self.is_ended_by_us

    @property
    def has_run(self) -> bool:
        """Whether Slurm has given it nodes."""
        return self.status.allocation is not None

    @property
    def is_running(self) -> bool:
        """Whether Slurm runs it, and has said where."""
        return self.status.state == Phase.RUNNING and self.has_run and not self.is_over


@dataclass(frozen=True, slots=True)
class Place:
    """The Cluster whose Slurm places a group."""

    cluster: Key
    granted: tenants.Grant


@dataclass(frozen=True, slots=True)
class Away:
    """Why nothing can be submitted now: what the administrator of the Cluster can change, or time does."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The object that holds the group together does not exist any more."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The devices of a Kubernetes Node, and what its node in Slurm was made of."""

    devices: NodeDevices
    word: str
    """The feature of the node in Slurm that says which devices have numbers there."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Kubernetes Nodes that the cache does not show."""

    missing: frozenset[str] = frozenset()
    """Those that certainly do not exist."""
    gone: frozenset[str] = frozenset()
    """Those of them that have been missing for so long that they do not return."""
    unsure: frozenset[str] = frozenset()
    """Those of which nothing is known now: a pass asks for a few."""

    @property
    def all(self) -> frozenset[str]:
        """Those on which no pod is placed now."""
        return self.missing | self.unsure


@dataclass(frozen=True)
class Snapshot:
    """Everything that the plan reads; a group may have a thousand pods, so they are sorted and counted once."""

    key: GroupKey
    namespace: str
    now: datetime
    members: tuple[Member, ...] = ()
    jobs: tuple[GroupJob, ...] = ()
    """In the order of their attempts."""
    lost: frozenset[str] = frozenset()
    """Names of SlurmJobs that pods name, and that certainly do not exist."""
    foreign: frozenset[str] = frozenset()
    """Names of SlurmJobs that pods name, and that are not those of this group."""
    owner: Owner | Gone | Away | None = None
    """What holds the group together; None where that was not read."""
    place: Place | Away | None = None
    """Where a job is, or would be; None where that was not read."""
    numbered: Mapping[str, Numbered] = field(default_factory=dict)
    """Devices of the nodes of a job that runs, by node, where pods of it wait for devices."""
    holders: Mapping[DeviceKey, Sequence[Object]] = field(default_factory=dict)
    """Which ResourceClaims have these devices."""
    classes: Mapping[str, Object] = field(default_factory=dict)
    """The DeviceClasses that pods ask for, by name."""
    devices_unknown: str = ""
    """Why devices of the job are not known now; empty if they are, or are not asked for."""
    empty_s: float = 0.0
    """Seconds for which no pod of the group has lived."""
    absent: Absent = Absent()
    """Which Kubernetes Nodes do not exist that pods wait for, or are to be placed on."""
    too_large: str = ""
    """What a pod of the job asks for and no node has; empty if some node has it, or nobody has looked."""

    @property
    def job(self) -> GroupJob | None:
        """The last job of the group."""
        return self.jobs[-1] if self.jobs else None

    @cached_property
    def waiting(self) -> tuple[Member, ...]:
        """Pods that wait for Slurm, by rank and name."""
        return tuple(sorted((one for one in self.members if one.waits), key=_order))

    @cached_property
    def living(self) -> tuple[Member, ...]:
        """Pods that have not ended."""
        return tuple(one for one in self.members if not one.is_over)

    @property
    def needs_next(self) -> bool:
        """Whether pods wait, and no job is theirs."""
        job = self.job
        if not self.waiting or job is None:
            return bool(self.waiting)
        return job.is_finished or (job.is_lost and not any(one.runs for one in self.members))

    @property
    def is_single(self) -> bool:
        """Whether the group is one pod."""
        return self.key.kind is GroupKind.POD


def _order(member: Member) -> tuple[int, str]:
    return (-1 if member.rank is None else member.rank, member.name)
