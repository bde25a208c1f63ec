"""What a pass acts with, and the outcome of its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.claims import VolumeClaim
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.ports import AskVolumes, Slurm
from slinky_operator.nodeset.reserved_names import ReservedNames
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slurm_client import errors as slurm_errors

LONGEST_LIST: Final = 10
"""Maximum number of names in an Event."""


class MustWait(Exception):
    """An action depends on something that does not exist yet; the text says what, and later actions wait too."""


@dataclass(slots=True)
class PassOutcome:
    """The outcome of a plan."""

    refusals: list[str] = field(default_factory=list)
    """What the API server or Slurm rejected, for the NodeSet's conditions."""
    kept: list[str] = field(default_factory=list)
    """Why pods were not deleted after all."""
    slurm_error: slurm_errors.SlurmError | None = None
    """Why Slurm could not be queried or written to."""
    errors: list[Exception] = field(default_factory=list)
    """Errors that are retried."""
    told_slurm_at: float | None = None
    """Clock after the last write, certain or possible, that Slurm's cache does not show yet; None for nothing."""
    downed: list[str] = field(default_factory=list)
    """Nodes that were just marked down: the next pass sees the effect on their jobs."""
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes whose records were kept because something names them by now, and what."""
    recorded: RecordedEnds | None = None
    """What slurmdbd has said of jobs that delay drains; None if it was not asked."""
    steps: dict[str, StepsSeen] = field(default_factory=dict)
    """What slurmds that were asked have shown of the steps on their nodes, by uid of the pod."""
    rooms: dict[str, RoomSeen] = field(default_factory=dict)
    """What job log servers that were asked have said of their volumes, by volume."""
    checks: StoredChecks | None = None
    """Which nodes run which health checks, if that was read or written."""
    machines: dict[str, str] = field(default_factory=dict)
    """Kubernetes Nodes whose machines are to be replaced, and what that waits for."""
    traits: dict[str, RefusedTraits | None] = field(default_factory=dict)
    """What Slurm has not taken of nodes; None for what it has taken."""
    acted: bool = False
    """Whether anything was written that the next pass must check."""


@dataclass(slots=True)
class PassContext:
    """What one pass for one NodeSet acts with.

    Parameters
    ----------
    kube
        The API server.
    slurm
        The Cluster's Slurm; None if it is not reachable.
    nodeset, cluster
        The objects the plan is about.
    obj
        The NodeSet as the API server returned it, for Events and finalizers.
    revision
        The revision that new pods are created from.
    claims
        The NodeSet's claims as the cache shows them.
    defaults
        The operator's settings for new pods.
    expectations
        Records every pod created or deleted.
    guards
        Uids of guards known to exist, by uid of the NodeSet.
    reserved
        Names that NodeSets are about to use.
    recorder
        Emits Events.
    now, clock
        The wall clock, and monotonic seconds.
    ask_volumes
        Asks a job log server.
    changes
        Counts what is done, for metrics.
    """

    kube: Kube
    slurm: Slurm | None
    nodeset: NodeSet
    cluster: Cluster | None
    obj: Object
    revision: Revision
    claims: tuple[VolumeClaim, ...]
    owner: str
    defaults: Defaults
    expectations: Expectations
    guards: dict[str, str]
    reserved: ReservedNames
    recorder: Recorder
    now: Callable[[], datetime]
    clock: Callable[[], float]
    ask_volumes: AskVolumes
    machines: Machines | None = None
    """Has machines rebooted or deleted; None if nobody may ask for that."""
    changes: Changes = field(default_factory=Changes)
    outcome: PassOutcome = field(default_factory=PassOutcome)
    recorded: RecordedEnds = RecordedEnds()  # noqa: RUF009 - frozen
    """What slurmdbd has said before of jobs that delay drains."""
    steps: Mapping[str, StepsSeen] = field(default_factory=dict)
    """What slurmds have shown before, by uid of the pod."""
    rooms: Mapping[str, RoomSeen] = field(default_factory=dict)
    """What job log servers have said before, by volume."""
    unseen: bool = False
    """Whether the current action has written to Slurm what its cache does not show yet."""
    written_at: float | None = None
    """Clock at the end of the action's last write to Slurm, if there was one."""

    def reach(self) -> Slurm:
        """The Cluster's Slurm; raises `Unreachable` if there is none."""
        if self.slurm is None:
            raise slurm_errors.Unreachable("there is no client for this Cluster")
        return self.slurm

    def say(self, reason: EventReason | Reason, message: str) -> None:
        """Emit an Event."""
        self.recorder.normal(self.obj, str(reason), message)

    def warn(self, reason: EventReason | Reason, message: str) -> None:
        """Emit a Warning Event."""
        self.recorder.warning(self.obj, str(reason), message)


def listed(names: Sequence[str]) -> str:
    """Names for an Event, cut to the first if there are many."""
    shown = ", ".join(names[:LONGEST_LIST])
    return shown if len(names) <= LONGEST_LIST else f"{shown} and {len(names) - LONGEST_LIST} more"
