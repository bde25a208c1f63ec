"""The facts in a pod's object, read once and frozen.

What Slurm knows is not here, and neither are decisions: see `pod_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import PodCondition
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model.pods import guard, hindrance, pod_names, scheduling
from slinky_operator.nodeset.model.pods.hindrance import Hindrance
from slinky_operator.reconcile.text import cut, moment
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership
from slinky_operator.slurm.pods.volume_room import JOB_OUTPUT

SLURMD: Final = "slurmd"
"""Name of the container that matters; other containers are the user's."""

NODE_STATE: Final = "SlurmNodeState"
"""Prefix of the conditions that show states of its node."""

_OVER: Final = frozenset({"Failed", "Succeeded"})

EVICTED: Final = "Evicted"
"""The kubelet's reason of a pod that it has ended for want of memory, disk or inodes."""

LONGEST_EVICTION: Final = 300
"""Characters shown of why."""

_STUCK: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Waiting reasons of a container that the kubelet has tried to start and could not."""


class Slurmd(StrEnum):
    """How far the slurmd container has come, as the kubelet reports it."""

    NEVER = "never started"
    RUNNING = "running"
    BETWEEN = "between two starts"
    ENDED = "ended"
    """For good: the pod has ended, or it is being deleted and every container has ended."""


@dataclass(frozen=True, slots=True)
class DrainCondition:
    """The condition on a pod about the drain of its node."""

    status: str
    reason: str
    message: str
    since: str = field(default="", compare=False)
    """Last transition time of the status, as written."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a NodeSet."""

    name: str
    node_name: str
    """Name of its node in Slurm, which is its host name."""
    uid: str
    resource_version: str = ""
    ordinal: int | None = None
    revision: str = ""
    deleting: bool = False
    gone_by: datetime | None = None
    """When it must be gone, if it is being deleted: the meaning of its deletionTimestamp."""
    host: str = ""
    """Kubernetes Node it is bound to; empty if unbound."""
    address: str = ""
    """Of its network; empty if it has none yet."""
    on_node: bool = False
    """Whether it was created as the one pod of a Kubernetes Node, not as an ordinal."""
    guards: frozenset[str] = frozenset()
    """Uids of second owners: normally one, none if it was removed, two until a former one is cleaned up."""
    pinned_to: str = ""
    """Kubernetes Node that it is pinned to; empty if it may run on any."""
    phase: str = "Pending"
    slurmd: Slurmd = Slurmd.NEVER
    slurmd_started_at: datetime | None = None
    """When the container last started; None unless it runs."""
    seen_at: datetime | None = field(default=None, compare=False)
    """When the operator first saw this run of it, or the pod on this Kubernetes Node before, by the operator's clock;
    None if the pod was not read from the cache."""
    last_ended_at: datetime | None = None
    """When the container last ended, in a pod that has not ended; None if it never did."""
    stuck: str = ""
    """Why the kubelet cannot start the container, as its waiting reason; empty if it did or may."""
    hindrance: Hindrance | None = None
    """Why it does not run, whichever container is the cause; None if it runs or is starting."""
    registered: bool = False
    """Whether it is recorded that Slurm knows its node."""
    unmarked: bool = False
    """Whether that is recorded in the NodeSet's status alone, and not on the pod (`registered_pods`)."""
    ready_since: datetime | None = None
    """Since when the pod is Ready; None if it is not."""
    cordoned: bool = False
    cluster_labels: tuple[str, str] = ("", "")
    """The labels that link it to its Cluster: the Cluster's uid, and the Cluster's name as that of a slurmd pod."""
    deletion_cost: int = 0
    created_at: datetime | None = None
    bound_at: datetime | None = None
    """When it was bound to its Kubernetes Node, if it says so."""
    protected: bool = False
    """Whether it is in the PodDisruptionBudget."""
    told: DrainCondition | None = None
    node_states: Mapping[str, DrainCondition] = field(default_factory=dict)
    """The conditions that show states of its node, by type."""
    deadline: str = ""
    """When the last of its jobs ends, as annotated on it."""
    output_claim: str | None = None
    """The claim of the volume that its job log server looks at, empty if it has none; None without a server."""
    eviction: str = ""
    """Why its kubelet has evicted it, in the kubelet's words; empty if it has not."""
    register_by: datetime | None = None
    """When it is recreated unless its slurmd has registered, as annotated on it."""

    @property
    def stands_on(self) -> str:
        """The Kubernetes Node it belongs to, whether it is bound or only pinned to it; empty if neither."""
        return self.host or self.pinned_to

    @property
    def bound(self) -> bool:
        """Whether a kubelet may have started it."""
        return bool(self.host)


def read(obj: Mapping[str, Any], nodeset: str) -> Pod:
    """Read a pod.

    Parameters
    ----------
    obj
        The pod as the API server returns it.
    nodeset
        Name of its NodeSet, for the ordinal.
    """
    metadata = obj["metadata"]
    spec: Mapping[str, Any] = obj.get("spec") or {}
    status: Mapping[str, Any] = obj.get("status") or {}
    own = metadata.get("labels") or {}
    deleting = "deletionTimestamp" in metadata
    on_node = own.get(labels.LABEL_SCALING_MODE) == ScalingMode.DAEMON_SET
    slurmd, started, stuck = _slurmd(status, deleting=deleting)
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    registered = conditions.get(PodCondition.REGISTERED.value) or {}
    scheduled = conditions.get("PodScheduled") or {}
    scheduled_at = moment(scheduled.get("lastTransitionTime"))
    return Pod(
        name=metadata["name"],
        node_name=pod_ownership.node_name(obj),
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion") or "",
        ordinal=None if on_node else pod_names.ordinal(nodeset, metadata["name"]),
        revision=own.get(labels.LABEL_REVISION) or "",
        deleting=deleting,
        gone_by=moment(metadata.get("deletionTimestamp")),
        host=spec.get("nodeName") or "",
        address=str(status.get("podIP") or ""),
        on_node=on_node,
        guards=guard.held_by(metadata),
        pinned_to=scheduling.pinned_to(spec),
        phase=status.get("phase") or "Pending",
        slurmd=slurmd,
        slurmd_started_at=started,
        last_ended_at=last_end(status),
        stuck=stuck,
        hindrance=hindrance.read(obj, scheduled_at),
        registered=registered.get("status") == "True",
        ready_since=moment(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None,
        cordoned=labels.is_true(metadata.get("annotations"), labels.ANNOTATION_POD_CORDON),
        cluster_labels=(own.get(labels.LABEL_CLUSTER_UID) or "", _slurmd_of(own)),
        deletion_cost=_integer(labels.read(metadata.get("annotations"), labels.ANNOTATION_POD_DELETION_COST)),
        created_at=moment(metadata.get("creationTimestamp")),
        bound_at=scheduled_at if scheduled.get("status") == "True" else None,
        protected=own.get(labels.LABEL_POD_PROTECT) == "true",
        told=_told(conditions.get(PodCondition.SLURM_DRAINED.value)),
        node_states={
            str(kind): told
            for kind, one in conditions.items()
            if str(kind).startswith(NODE_STATE) and (told := _told(one)) is not None
        },
        output_claim=_output_claim(spec),
        eviction=_eviction(status),
        register_by=moment((metadata.get("annotations") or {}).get(labels.ANNOTATION_POD_REGISTER_BY)),
        deadline=(metadata.get("annotations") or {}).get(labels.ANNOTATION_POD_DEADLINE) or "",
    )


def are_alike(old: Pod, new: Pod) -> bool:
    """Whether a pod says the same in two versions of it: what else its kubelet has written is read by nobody."""
    if old is new:
        return True
    return replace(old, resource_version=new.resource_version) == new and _beside(old) == _beside(new)


def _beside(pod: Pod) -> tuple[str, ...]:
    """What rules read of a pod, and equal pods may have different."""
    return (
        pod.hindrance.brief if pod.hindrance is not None else "",
        pod.told.since if pod.told is not None else "",
        *(told.since for told in pod.node_states.values()),
    )


def has_ended(status: Mapping[str, Any], *, deleting: bool) -> bool:
    """Whether the kubelet has reported that nothing in the pod runs any more, and will not again.

    A pod whose Node is gone is set Failed by a component other than its kubelet: its containers are then still shown as
    running, and may be.
    """
    states = [item.get("state") or {} for item in _containers(status)]
    if not all("terminated" in state for state in states):
        return False
    if status.get("phase") in _OVER:
        return True
    return deleting and bool(states)


def _slurmd_of(own: Mapping[str, str]) -> str:
    """Name of the Cluster whose Service selects the pod; empty if none does."""
    name = own.get(labels.LABEL_CLUSTER_NAME) or ""
    return name if name and naming.slurmd_labels(name).items() <= own.items() else ""


def _slurmd(status: Mapping[str, Any], *, deleting: bool) -> tuple[Slurmd, datetime | None, str]:
    if has_ended(status, deleting=deleting):
        return Slurmd.ENDED, None, ""
    shown = next((item for item in status.get("containerStatuses") or () if item.get("name") == SLURMD), None)
    if shown is None:
        return Slurmd.NEVER, None, ""
    state = shown.get("state") or {}
    if "running" in state:
        return Slurmd.RUNNING, moment(state["running"].get("startedAt")), ""
    waiting = str((state.get("waiting") or {}).get("reason") or "")
    stuck = waiting if waiting in _STUCK else ""
    if "terminated" in state or shown.get("restartCount") or (shown.get("lastState") or {}).get("terminated"):
        return Slurmd.BETWEEN, None, stuck
    return Slurmd.NEVER, None, stuck


def last_end(status: Mapping[str, Any]) -> datetime | None:
    """When slurmd's container last ended, whether it has been restarted since or not."""
    containers: Iterable[Mapping[str, Any]] = status.get("containerStatuses") or ()
    shown = next((item for item in containers if item.get("name") == SLURMD), {})
    for state in (shown.get("state") or {}, shown.get("lastState") or {}):
        ended = moment((state.get("terminated") or {}).get("finishedAt"))
        if ended is not None:
            return ended
    return None


def _containers(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from status.get("containerStatuses") or ()
    yield from status.get("ephemeralContainerStatuses") or ()


def _told(condition: Mapping[str, Any] | None) -> DrainCondition | None:
    if condition is None:
        return None
    status, reason, message, since = (
        str(condition.get(key) or "") for key in ("status", "reason", "message", "lastTransitionTime")
    )
    return DrainCondition(status, reason, message, since)


def _output_claim(spec: Mapping[str, Any]) -> str | None:
    if all(container.get("name") != naming.JOB_LOGS_CONTAINER for container in spec.get("initContainers") or ()):
        return None
    volume: Mapping[str, Any] = next((one for one in spec.get("volumes") or () if one.get("name") == JOB_OUTPUT), {})
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def _eviction(status: Mapping[str, Any]) -> str:
    if status.get("phase") != "Failed" or status.get("reason") != EVICTED:
        return ""
    return cut(str(status.get("message") or "the kubelet does not say why"), LONGEST_EVICTION)


def _integer(text: str | None) -> int:
    try:
        return int(text) if text is not None else 0
    except ValueError:
        return 0


def unguarded(pods: Iterable[Pod], guard_uid: str) -> tuple[Pod, ...]:
    """The pods that are not owned by the guard.

    Somebody may have deleted it. The garbage collector then removes it from the owners of each pod, which is how the
    operator notices: it does not watch ConfigMaps for this.

    Parameters
    ----------
    pods
        Pods of the NodeSet.
    guard_uid
        Uid of the guard; if it is empty (not known), any guard counts.
    """
    return tuple(pod for pod in pods if not pod.deleting and not (guard_uid in pod.guards if guard_uid else pod.guards))
