"""The actions of a plan. `executor` carries them out in order and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slinky_api.events import EventReason
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.claims import Retention, VolumeClaim
from slinky_operator.nodeset.model.machines import Mark
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition, Pod
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions.revision_records import Recorded
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import Traits
from slurm_client.models import Job


@dataclass(frozen=True, slots=True)
class PodStatusPatch:
    """What to write on one pod."""

    pod: Pod
    told: DrainCondition | None = None
    """The condition; None if it is up to date."""
    deadline: str | None = None
    """The annotation, empty to remove it; None if it is up to date."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Persist the operator's finalizer; nothing else is done in the same pass."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Take over the pods that another operator created for the NodeSet; if this fails, no later action is executed."""


@dataclass(frozen=True, slots=True)
class MarkRecords:
    """Write the operator's mark on the records of pods that were taken over."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class EnsureGuard:
    """Create the second owner of the pods if it is missing."""

    pods: tuple[Pod, ...] = ()
    """Pods that have lost it and get it again."""


@dataclass(frozen=True, slots=True)
class MarkRegistered:
    """Record on these pods that Slurm knows their nodes."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Protect:
    """Add these pods to the PodDisruptionBudget."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Adopt:
    """Move these pods to the existing Cluster: the one they were created for is gone."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Unprotect:
    """Allow eviction of these pods, unless the spec asks for protection and a new query of Slurm shows work on them."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """Write on pods what Slurm shows of their nodes."""

    showings: tuple[PodStatusPatch, ...]


@dataclass(frozen=True, slots=True)
class PodStates:
    """The conditions about states of its node that one pod is to have, by type."""

    pod: Pod
    states: Mapping[str, DrainCondition]


@dataclass(frozen=True, slots=True)
class ShowStates:
    """Write on pods the states of their nodes."""

    pods: tuple[PodStates, ...]


@dataclass(frozen=True, slots=True)
class Announce:
    """Write on pods when they are recreated unless their slurmds register; None removes the time."""

    times: tuple[tuple[Pod, str | None], ...]


@dataclass(frozen=True, slots=True)
class Undrain:
    """Undrain these nodes, if they are still in the operator's drain."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain these nodes in one call, except those that are drained already."""

    nodes: tuple[str, ...]
    reason: str
    causes: frozenset[Cause] = frozenset()
    """The causes that the reason names."""
    notes: tuple[str, ...] = ()
    """The cost of each node, for the Event: its name, and the jobs on it."""


@dataclass(frozen=True, slots=True)
class SetTraits:
    """Set the features and the topology of these nodes from their Kubernetes Nodes."""

    wanted: Mapping[str, Traits]


@dataclass(frozen=True, slots=True)
class MarkDown:
    """Set these nodes DOWN: their pods have ended for certain, so nothing runs on them."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndDrains:
    """Apply `spec.drain.onTimeout` to nodes whose drain has taken too long, after querying Slurm again."""

    pods: tuple[tuple[Pod, frozenset[Cause]], ...]
    """The pods, with the causes of their nodes' drains."""


@dataclass(frozen=True, slots=True)
class AskForEnds:
    """Ask slurmdbd whether these jobs, which delay drains, have ended."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class StepQuestion:
    """One slurmd that is asked which jobs have a step on its node."""

    pod: Pod
    jobs: frozenset[int] = frozenset()
    """Jobs that may have ended there."""


@dataclass(frozen=True, slots=True)
class AskForSteps:
    """Ask slurmds which jobs have a step on their nodes."""

    questions: tuple[StepQuestion, ...]


@dataclass(frozen=True, slots=True)
class AskForRoom:
    """Ask the job log servers of these pods how much room their volumes have."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class CancelForgotten:
    """Cancel these jobs, which slurmctld shows although they have ended, after all that show it were asked again."""

    jobs: tuple[Job, ...]
    pods: tuple[Pod, ...] = ()
    """Those of the NodeSet."""


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Delete pods, after querying Slurm again."""

    pods: tuple[Pod, ...]
    forced: bool = False
    """The user has given up their jobs: Slurm is only asked which jobs these are."""
    blind: str = ""
    """Why Slurm cannot be asked even that."""
    for_health: bool = False
    """They are recreated because of their Nodes: they must still be drained for that."""


@dataclass(frozen=True, slots=True)
class ReplaceMachines:
    """Go on with what is done about machines, as far as what Slurm and the API server show now permits."""

    tries: tuple[tuple[str, Mark], ...]
    """Kubernetes Nodes, and what their marks are to say."""
    shown: frozenset[str] = frozenset()
    """Those of them whose cordon the cache shows."""
    given_back: tuple[str, ...] = ()
    """Nodes that the operator uncordons, if the cordon is its own."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Delete pods whose slurmds never registered, after querying Slurm again; they are recreated."""

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
    """Record the revision of the spec; if this fails, no later action is executed."""

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
    """Create pods in these slots."""

    places: tuple[PodSlot, ...]
    revision: str
    """Hash of the revision they are created from: that of the spec, or a recorded one."""


@dataclass(frozen=True, slots=True)
class MarkClaims:
    """Write the retention on claims; None removes it."""

    marks: tuple[tuple[VolumeClaim, Retention | None], ...]


@dataclass(frozen=True, slots=True)
class DeleteClaims:
    """Delete the claims of removed pods, those that are still marked for deletion."""

    claims: tuple[VolumeClaim, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Delete the guard and remove the finalizer, unless the API server still has a pod; the NodeSet's last action."""

    anyway: bool = False
    """The user has given up the jobs: an unreachable or refusing Slurm does not delay this."""
    named: tuple[str, ...] = ()
    """Nodes whose records stay in Slurm after the NodeSet, since jobs or reservations name them."""


@dataclass(frozen=True, slots=True)
class KeepChecks:
    """Read the ConfigMap with health checks, or write it."""

    data: Mapping[str, str] | None = None
    """What it has to have; None to read it."""
    stored: StoredChecks = StoredChecks()  # noqa: RUF009 - frozen
    """What it had."""
    events: tuple[tuple[EventReason, str], ...] = ()
    """What to say once that is written."""


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
    | ShowStates
    | Announce
    | Undrain
    | Drain
    | SetTraits
    | MarkDown
    | EndDrains
    | AskForEnds
    | AskForSteps
    | AskForRoom
    | CancelForgotten
    | DeletePods
    | ReplaceMachines
    | Repair
    | DeleteIdlePods
    | DeleteRecords
    | RecordRevision
    | RenumberRevision
    | DropRevisions
    | CreatePods
    | MarkClaims
    | DeleteClaims
    | KeepChecks
    | RemoveFinalizer
)
