"""What a plan may ask for. `executor` carries these out in the order in which they stand and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slinky_operator.nodeset.model.claims import Claim, Retention
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.pod_facts import DrainCondition, Pod
from slinky_operator.nodeset.model.pod_names import PodSlot
from slinky_operator.nodeset.model.revision_records import Recorded
from slinky_operator.nodeset.slurm_nodes.drains import Cause


@dataclass(frozen=True, slots=True)
class PodStatusPatch:
    """What is to be written on one pod."""

    pod: Pod
    told: DrainCondition | None = None
    """The condition; None if it is as it should be."""
    deadline: str | None = None
    """The annotation, empty if it is to go; None if it is as it should be."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Persist our finalizer; nothing else is done in the same pass."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Make the pods ours that another operator made for the NodeSet; nothing that stands behind it is done without."""


@dataclass(frozen=True, slots=True)
class MarkRecords:
    """Write our mark on the records of pods that were taken over."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class EnsureGuard:
    """Create the second owner of the pods, if it is not there."""

    pods: tuple[Pod, ...] = ()
    """Pods that have lost it and are to have it again."""


@dataclass(frozen=True, slots=True)
class MarkRegistered:
    """Write down that Slurm knows the nodes of these pods."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Protect:
    """Put these pods into the PodDisruptionBudget."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Adopt:
    """Give these pods to the Cluster there is: the one they were made for is gone."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Unprotect:
    """Let these pods be evicted, unless the spec asks for protection and Slurm, asked once more, sees work on them."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """Write on pods what Slurm shows of their nodes."""

    showings: tuple[PodStatusPatch, ...]


@dataclass(frozen=True, slots=True)
class Announce:
    """Write on pods when they are made again unless their slurmds register; None takes the time off."""

    times: tuple[tuple[Pod, str | None], ...]


@dataclass(frozen=True, slots=True)
class Undrain:
    """Give these nodes back, those still in our drain."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain these nodes, in one call, those that nobody drains yet."""

    nodes: tuple[str, ...]
    reason: str
    causes: frozenset[Cause] = frozenset()
    """What the reason says."""
    notes: tuple[str, ...] = ()
    """What each node costs, for the Event: its name, and the jobs on it."""


@dataclass(frozen=True, slots=True)
class SetTraits:
    """Give these nodes the features and the topology of their Kubernetes Nodes."""

    hosts: Mapping[str, KubernetesNode]


@dataclass(frozen=True, slots=True)
class MarkDown:
    """Tell Slurm that nothing runs on these nodes any more: their pods have ended for certain."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndDrains:
    """Do what `spec.drain.onTimeout` says about nodes whose drain has taken too long, after asking Slurm once more."""

    pods: tuple[tuple[Pod, frozenset[Cause]], ...]
    """The pods, with what their nodes are drained for."""


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Delete pods, after asking Slurm once more."""

    pods: tuple[Pod, ...]
    forced: bool = False
    """The user has said that their jobs may die: Slurm is asked only which jobs these are."""
    blind: str = ""
    """Why Slurm cannot be asked even that."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Delete pods whose slurmds never registered, after asking Slurm once more; others are made in their place."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class DeleteIdlePods:
    """Delete pods in which no slurmd can have run; the delete holds for exactly the version that shows it."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Delete the records of nodes whose pods are gone."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordRevision:
    """Record the revision of the spec; nothing that stands behind it is done without."""

    number: int


@dataclass(frozen=True, slots=True)
class RenumberRevision:
    """Make a recorded revision the newest again."""

    revision: Recorded
    number: int


@dataclass(frozen=True, slots=True)
class DropRevisions:
    """Delete the records of revisions that no pod carries."""

    revisions: tuple[Recorded, ...]


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Create pods in these places."""

    places: tuple[PodSlot, ...]
    revision: str
    """Hash of the revision they are made from: that of the spec, or a recorded one."""


@dataclass(frozen=True, slots=True)
class MarkClaims:
    """Write on claims what becomes of them; None takes what is written off."""

    marks: tuple[tuple[Claim, Retention | None], ...]


@dataclass(frozen=True, slots=True)
class DeleteClaims:
    """Delete the claims of pods that are gone, those that are still marked for it."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Delete the guard and take the finalizer off, unless the API server still has a pod; the NodeSet's last action."""

    anyway: bool = False
    """The user has given up the jobs: that Slurm does not answer, or refuses, holds up nothing."""


Action = (
    AddFinalizer
    | EnsureGuard
    | TakeOver
    | MarkRecords
    | MarkRegistered
    | Protect
    | Adopt
    | Unprotect
    | Show
    | Announce
    | Undrain
    | Drain
    | SetTraits
    | MarkDown
    | EndDrains
    | DeletePods
    | Repair
    | DeleteIdlePods
    | DeleteRecords
    | RecordRevision
    | RenumberRevision
    | DropRevisions
    | CreatePods
    | MarkClaims
    | DeleteClaims
    | RemoveFinalizer
)
