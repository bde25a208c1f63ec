"""What is observed of a NodeSet, under the names of all generations: `NodeSetStatus.counted` writes them."""

from typing import Annotated, Any, Final, Self

from pydantic import Field

from slinky_api.v1alpha1.common import CONDITIONS, ApiModel, Condition
from slinky_api.v1alpha1.nodeset.autoscaling import AutoscalingStatus
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_api.v1alpha1.rules import Keywords


class NodeSetNodeCounts(ApiModel):
    """The nodes of existing pods, each counted once."""

    idle: int = 0
    """Without jobs, and accepting jobs."""
    allocated: int = 0
    """With jobs, and not drained."""
    draining: int = 0
    """Drained for any cause, with jobs left."""
    drained: int = 0
    """Drained for any cause, without jobs."""
    down: int = 0
    """Down, not responding, or with an invalid registration."""
    starting: int = 0
    """Not registered with Slurm yet."""
    unknown: int = 0
    """In none of these states, or Slurm is unreachable."""


MAX_REPLACEMENTS: Final = 128
"""Nodes of which tries are remembered."""

_MAP_BY_HOST: Final = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host"]})


class Replacement(ApiModel):
    """What was tried about a bad Kubernetes Node."""

    host: str
    """The Kubernetes Node."""
    tries: int = 1
    """Tries, this one included."""
    last: str = ""
    """When the last one began."""
    pod: str = ""
    """The pod of that time."""
    pod_uid: str = ""
    """Its uid: a try is written here before anything is done to this very pod."""
    boot_id: str = ""
    """Of a try that is for the machine, its boot id at that time; another one shows that it has started again."""


LONGEST_ORDINALS: Final = 4096
"""Characters of the ordinals of pods that have registered; pods for which there is no room are marked at once."""


class RegisteredPods(ApiModel):
    """Pods whose nodes have registered with Slurm, while that is not written on the pods themselves."""

    ordinals: Annotated[str, Field(max_length=LONGEST_ORDINALS)] = ""
    """Ordinals of these pods, for example 0-17,19."""
    created_until: str = ""
    """When the youngest of them was created: a later pod with such an ordinal is another one."""


class NodeSetStatus(ApiModel):
    """The observed state of the NodeSet.

    For people: summary, nodes, desired and the counts of pods after it. Fields marked as compatibility names repeat
    one of these, or count in another way, for programs written for Slinky.
    """

    summary: str = ""
    """The problem, or else the current activity, in one line."""
    nodes: NodeSetNodeCounts = Field(default_factory=NodeSetNodeCounts)
    """The nodes of existing pods, each counted once."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """Conditions of the NodeSet."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""
    selector: str | None = None
    """Selector of exactly this NodeSet's pods, for autoscalers."""
    scaling_mode: ScalingMode | None = None
    """The mode, fixed when the operator first saw the NodeSet."""
    current_revision: str | None = None
    """ControllerRevision that all pods had before the current update; the same as updateRevision if there is none.
    Pods excluded from the update are created from it."""
    update_revision: str | None = None
    """ControllerRevision of the current spec."""
    node_set_hash: str | None = None
    """The hash of currentRevision: the label controller-revision-hash of its pods."""
    update_hash: str | None = None
    """The hash of updateRevision."""
    collision_count: int | None = None
    """Number of hash collisions of revisions."""
    ordinal_to_node: dict[str, str] | None = None
    """With pinToNode: the Node of each ordinal."""
    replacements: Annotated[tuple[Replacement, ...] | None, Field(max_length=MAX_REPLACEMENTS), _MAP_BY_HOST] = None
    """With health.replace: what was tried about bad Nodes, until health.replace.withinSeconds after the last try."""
    registered: RegisteredPods | None = None
    """Pods whose nodes have registered with Slurm and that have no condition Registered yet; absent without such pods.
    When many pods start at once, they are recorded here first, in one write, and later on each pod."""
    autoscaling: AutoscalingStatus | None = None
    """With autoscaling: what it last decided."""
    maintenance: str | None = None
    """When the next maintenance window of the Cluster with this NodeSet starts and its name, or until when which one is
    on."""

    desired: int = 0
    """Desired number of pods."""
    replicas: int = 0
    """Existing pods."""
    updated_replicas: int = 0
    """Pods of the current revision."""
    ready_replicas: int = 0
    """Pods that are Ready."""
    available_replicas: int = 0
    """Pods that have been Ready for minReadySeconds."""
    unavailable_replicas: int = 0
    """Desired pods that are not available."""
    draining_replicas: int = 0
    """Pods whose node the operator is draining."""
    slurm_idle: int = 0
    """Compatibility name of Slinky 0.2: nodes in state IDLE, including drained ones."""
    slurm_allocated: int = 0
    """Compatibility name of Slinky 0.2: nodes in state ALLOCATED or MIXED, including drained ones."""
    slurm_down: int = 0
    """Compatibility name of Slinky 0.2: nodes in state DOWN."""
    slurm_drain: int = 0
    """Compatibility name of Slinky 0.2: nodes with the flag DRAIN, in any state."""

    desired_number_scheduled: int = 0
    """Compatibility name of Slinky 0.1 for desired."""
    current_number_scheduled: int = 0
    """Compatibility name of Slinky 0.1 for replicas."""
    number_misscheduled: int = 0
    """Compatibility name of Slinky 0.1: pods on Nodes that no longer match."""
    number_ready: int = 0
    """Compatibility name of Slinky 0.1 for readyReplicas."""
    updated_number_scheduled: int = 0
    """Compatibility name of Slinky 0.1 for updatedReplicas."""
    number_available: int = 0
    """Compatibility name of Slinky 0.1 for availableReplicas."""
    number_unavailable: int = 0
    """Compatibility name of Slinky 0.1 for unavailableReplicas."""
    number_idle: int = 0
    """Compatibility name of Slinky 0.1 for slurmIdle."""
    number_allocated: int = 0
    """Compatibility name of Slinky 0.1 for slurmAllocated."""
    number_down: int = 0
    """Compatibility name of Slinky 0.1 for slurmDown."""
    number_drain: int = 0
    """Compatibility name of Slinky 0.1 for slurmDrain."""

    @classmethod
    def counted(
        cls,
        *,
        desired: int,
        replicas: int,
        updated: int,
        ready: int,
        available: int,
        draining: int = 0,
        misscheduled: int = 0,
        idle: int = 0,
        allocated: int = 0,
        down: int = 0,
        drain: int = 0,
        **rest: Any,
    ) -> Self:
        """Build a status with each count under both its names.

        Parameters
        ----------
        desired, replicas, updated, ready, available, draining, misscheduled
            Numbers of pods.
        idle, allocated, down, drain
            Numbers of Slurm nodes; allocated includes mixed ones.
        **rest
            The fields that have one name: conditions, selector and so on.

        Returns
        -------
        NodeSetStatus
            The status.
        """
        unavailable = max(desired - available, 0)
        return cls(
            desired=desired,
            replicas=replicas,
            updated_replicas=updated,
            ready_replicas=ready,
            available_replicas=available,
            unavailable_replicas=unavailable,
            draining_replicas=draining,
            slurm_idle=idle,
            slurm_allocated=allocated,
            slurm_down=down,
            slurm_drain=drain,
            desired_number_scheduled=desired,
            current_number_scheduled=replicas,
            number_misscheduled=misscheduled,
            number_ready=ready,
            updated_number_scheduled=updated,
            number_available=available,
            number_unavailable=unavailable,
            number_idle=idle,
            number_allocated=allocated,
            number_down=down,
            number_drain=drain,
            **rest,
        )
