"""What a pass over a pod on a virtual Node knows, read once and frozen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.node_names import VirtualNode
from slinky_operator.virtual_nodes.pod_jobs import shown_name
from slinky_operator.virtual_nodes.pods.translation.slurmjob import Translation


@dataclass(frozen=True, slots=True)
class PodJob:
    """The SlurmJob that a pod names."""

    obj: Object
    status: SlurmJobStatus
    is_owned: bool
    """Whether the pod is its controller."""

    @property
    def is_deleting(self) -> bool:
        """Whether it is to go."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the job of a pod runs."""

    cluster: Cluster
    node: VirtualNode
    granted: tenants.Grant | tenants.Refused
    translation: Translation | InvalidJob


@dataclass(frozen=True, slots=True)
class Away:
    """Why nothing can be done for a new pod now."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the plan reads."""

    pod: Object
    now: datetime
    job: PodJob | None
    """The SlurmJob that the pod names; None if there is none, of a pod that is deleted or has ended for certain."""
    address: str = ""
    """Of the virtual Node; empty if it is not known."""
    is_node_ready: bool = True
    is_preemption_meant: bool = False
    is_made: bool = False
    """Whether this process has made the SlurmJob."""
    place: Place | Away | None = None
    """Where a new job would run; None where none is to be made."""
    left_job: Object | None = None
    """A SlurmJob that an outage has left, and that this pod comes for."""
    is_predecessor_ending: bool = False
    """Whether a pod in whose place this one comes has yet to leave its SlurmJob."""

    @property
    def has_finalizer(self) -> bool:
        """Whether the pod is kept until its job is dealt with."""
        return labels.FINALIZER_VIRTUAL_POD in (self.pod["metadata"].get("finalizers") or ())

    @property
    def named_job(self) -> str:
        """Name of the SlurmJob that the pod names; empty if it names none. Users may have written it as well."""
        return str((self.pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_POD_JOB) or "")

    @property
    def shows(self) -> str:
        """Name of the SlurmJob that the pod only shows; empty for a pod that runs as a job of its own."""
        return shown_name(self.pod)

    @property
    def phase(self) -> str:
        """The phase of the pod."""
        return str((self.pod.get("status") or {}).get("phase") or "Pending")
