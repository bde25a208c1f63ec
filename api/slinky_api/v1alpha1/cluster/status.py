"""The status of a Cluster."""

from datetime import datetime
from typing import Annotated

from slinky_api.v1alpha1.common import CONDITIONS, MAP_BY_NAME, SET, ApiModel, Condition


class NodeCounts(ApiModel):
    """Slurm nodes by state, each counted once: as invalid, else as drain, else by its base state."""

    total: int = 0
    """All nodes."""
    idle: int = 0
    """Nodes without a job."""
    allocated: int = 0
    """Fully allocated nodes."""
    mixed: int = 0
    """Partly allocated nodes."""
    down: int = 0
    """Nodes that cannot be used."""
    drain: int = 0
    """Nodes that are drained or draining, whatever their base state."""
    invalid: int = 0
    """Nodes whose slurmd registered with fewer resources than configured; sinfo shows inval."""
    other: int = 0
    """Nodes in any other state."""


class WaitingReason(ApiModel):
    """Jobs that wait for one reason."""

    reason: str
    """Slurm's word, such as Resources or Priority."""
    jobs: int
    """Pending jobs; tasks of an array that wait together are one."""


class JobCounts(ApiModel):
    """Slurm jobs that have not ended, by state."""

    total: int = 0
    """All jobs that have not ended."""
    running: int = 0
    """Running jobs."""
    pending: int = 0
    """Pending jobs."""
    suspended: int = 0
    """Suspended jobs."""
    completing: int = 0
    """Completing jobs."""
    other: int = 0
    """Jobs in any other state."""
    waiting: tuple[WaitingReason, ...] = ()
    """Why jobs are pending, the eight most frequent reasons first; from the last list of all jobs, which is up to a
    minute old, and older where there are more than 1,000 jobs and nothing else has read them."""


class PartitionJobCounts(ApiModel):
    """Slurm jobs of one partition; one that waits for one of several partitions counts in each."""

    running: int = 0
    """Running jobs."""
    pending: int | None = None
    """Pending jobs; tasks of an array that wait together are one. Not set where a list of all jobs is larger than an
    answer of Slurm may be: then only jobs that hold nodes are read."""
    waiting: tuple[WaitingReason, ...] = ()
    """Why jobs are pending, the five most frequent reasons first."""


class PartitionStatus(ApiModel):
    """A partition of Slurm."""

    name: str
    """Name of the partition."""
    state: str
    """Slurm's word: UP, DOWN, DRAIN or INACTIVE."""
    nodes: int = 0
    """Nodes of the partition, whatever their states; those of the state FUTURE do not count."""
    cpus: int = 0
    """CPUs that its nodes have."""
    gpus: int = 0
    """GPUs that its nodes have: generic resources of the name gpu."""
    jobs: PartitionJobCounts | None = None
    """Jobs in it, by the last list of jobs that the operator has read, for whatever reason; for this alone it reads one
    every 90 seconds at most, and more seldom where a list takes long."""


class RefusedNodeSet(ApiModel):
    """A NodeSet whose part of the configuration is not used."""

    name: str
    """Name of the NodeSet."""
    message: str = ""
    """Field and reason."""


class ConfigStatus(ApiModel):
    """State of the configuration."""

    hash: str = ""
    """Hash of the configuration described by the spec, over all its inputs."""
    applied_hash: str = ""
    """Hash of the configuration that the daemons run."""
    node_sets: Annotated[tuple[str, ...], SET] = ()
    """NodeSets in the running configuration. A NodeSet gets pods only when it is listed here."""
    leaving_node_sets: Annotated[tuple[str, ...], SET] = ()
    """NodeSets that have been deleted, or that no partition names any more, and that the running configuration still
    has until no job needs their partition. Slurm accepts no node with such a name."""
    refused: Annotated[tuple[RefusedNodeSet, ...], MAP_BY_NAME] = ()
    """NodeSets whose part is omitted or not updated, and why."""


class AccountCounts(ApiModel):
    """What of spec.accounting.tree slurmdbd has."""

    accounts: int = 0
    """Accounts in the tree."""
    users: int = 0
    """Users in the tree."""
    associations: int = 0
    """Associations of the tree: each account by itself, and each user in each account."""
    qos: int = 0
    """QOS in the tree."""
    pending: int = 0
    """Changes of slurmdbd that are still to be made, or were refused."""
    unmanaged: int = 0
    """Accounts, users and QOS that slurmdbd has and the tree has not."""


class KubeletApiStatus(ApiModel):
    """Whether the API server reaches the kubelet API of virtual Nodes; the condition KubeletApiReachable shows it."""

    reachable: bool | None = None
    """Whether it does, by its own word; null while that is not known."""
    reason: str = ""
    """Reason of the condition."""
    message: str = ""
    """Which address it does not reach, why, and what to open."""


class VirtualNodesStatus(ApiModel):
    """What the controller of virtual Nodes has last decided; the condition VirtualNodesReady is made of it."""

    ready: bool | None = None
    """Whether every wanted partition has its Node; null while that is not known."""
    reason: str = ""
    """Reason of the condition."""
    message: str = ""
    """What is missing, why, and what to do."""
    nodes: int = 0
    """Nodes that the Cluster has, those that are to go too."""
    kubelet_api: KubeletApiStatus | None = None
    """Whether the API server reaches the operator's pod, which answers kubectl logs; not set until it has said so."""


class BridgeStatus(ApiModel):
    """What the controller of the bridge has last decided; the condition BridgeReady is made of it."""

    ready: bool | None = None
    """Whether every chosen Node is a node of Slurm; null while that is not known."""
    reason: str = ""
    """Reason of the condition."""
    message: str = ""
    """What is missing, why, and what to do."""
    nodes: int = 0
    """Nodes of Slurm that the bridge has made, those that are to go too."""


class WindowStatus(ApiModel):
    """A maintenance window that is on, or comes next."""

    name: str
    """Name of the window."""
    start: datetime | None = None
    """When it began, or begins; not set if it does not come again."""
    end: datetime | None = None
    """When it ends."""
    active: bool = False
    """Whether it is on."""
    released: bool = False
    """Whether it was ended early, with releaseEarly: the nodes run jobs again."""


class MaintenanceStatus(ApiModel):
    """Maintenance windows; the conditions InMaintenance and MaintenanceReserved say more."""

    next: str = ""
    """When the next window starts and its name, or until when which one is on."""
    windows: Annotated[tuple[WindowStatus, ...], MAP_BY_NAME] = ()
    """The windows of the spec, each as it is on or comes next."""


class ClusterStatus(ApiModel):
    """The observed state of the cluster."""

    summary: str = ""
    """The problem, or else the current activity, in a few words."""
    is_ready: bool = False
    """Whether Slurm works: slurmrestd and slurmctld answer."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """Conditions of the cluster."""
    server: str | None = None
    """URL of the slurmrestd in use."""
    slurm_version: str | None = None
    """Version of Slurm."""
    api_version: str | None = None
    """Negotiated version of the REST API, for example v0.0.42."""
    nodes: NodeCounts | None = None
    """Slurm nodes by state."""
    jobs: JobCounts | None = None
    """Slurm jobs by state."""
    config: ConfigStatus | None = None
    """State of the configuration."""
    accounting: AccountCounts | None = None
    """Accounts in slurmdbd, with spec.accounting.tree."""
    slurmctld_addresses: Annotated[tuple[str, ...], SET] = ()
    """Addresses of this cluster's slurmctld that slurmdbd has had, at most eight, the last one first."""
    slurmd_image: str | None = None
    """Default image of slurmd for NodeSets: the operator's setting when the cluster was created, or a newer patch
    release of it."""
    slurmctld_image: str | None = None
    """Image with which slurmctld was last up: a StatefulSet that is lost is created with it again, if the spec names
    none."""
    slurm_key_file: str | None = None
    """What daemons have as the key of auth/slurm: slurm.jwks, a key set, or slurm.key, a single key; not set with
    spec.server."""
    signing_key_id: str | None = None
    """Id (kid) of the RSA key that tokens are signed with; not set while that is the key of auth/jwt."""
    bridge: BridgeStatus | None = None
    """Of Kubernetes Nodes that are nodes of this Slurm."""
    virtual_nodes: VirtualNodesStatus | None = None
    """Partitions as Kubernetes Nodes, with spec.jobs.virtualNodes."""
    maintenance: MaintenanceStatus | None = None
    """Maintenance windows; not set without any, once Slurm has no reservation for one."""
    partitions: Annotated[tuple[PartitionStatus, ...], MAP_BY_NAME] = ()
    """The partitions that spec.jobs.virtualNodes wants, with what each has and what waits for it: the first 100 by
    name. Written every five seconds at most; while Slurm does not answer, they stay as they were. Empty without
    spec.jobs.virtualNodes."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""
    last_contact: datetime | None = None
    """When Slurm last answered; written only when it stops answering."""
