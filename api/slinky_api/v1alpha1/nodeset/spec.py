"""What a NodeSet is to be."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from slinky_api.labels import LABEL_NODESET_NAME
from slinky_api.v1alpha1.common import SET, ApiModel, LabelSelector, Resources, SecretRef
from slinky_api.v1alpha1.fields import (
    MAX_ORDINALS,
    DnsLabelOrEmpty,
    DnsSubdomain,
    Duration,
    FeatureName,
    GresText,
    Image,
    IntOrPercent,
    NodeLine,
    PartitionLine,
    PodTemplate,
    VolumeClaim,
    absent_if_empty,
)
from slinky_api.v1alpha1.nodeset.autoscaling import Autoscaling
from slinky_api.v1alpha1.nodeset.health import Health
from slinky_api.v1alpha1.nodeset.topology import MAX_TOPOLOGIES, NodeTopology
from slinky_api.v1alpha1.rules import Keywords, cel

_INT32: Final = 2_147_483_647

MAX_FUTURE_NODES: Final = 1000
"""Nodes that jobs may wait for. Each costs slurmctld memory (10 to 20 KiB) and a submission a few microseconds."""

_NEEDS_CGROUPS: Final = (
    "ssh needs confinement Constrain: sessions are kept in, and end with, the cgroups of a job, which there are with it"
)
_NOT_ON_EACH_NODE: Final = (
    "autoscaling needs scalingMode StatefulSet: with DaemonSet, Nodes decide how many pods there are"
)


class ScalingMode(StrEnum):
    """How replicas are mapped to pods."""

    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class OnTimeout(StrEnum):
    """What happens when a drain exceeds its timeout."""

    WAIT = "Wait"
    REQUEUE = "Requeue"
    CANCEL = "Cancel"
    FORCE = "Force"


class ForgottenJobs(StrEnum):
    """What happens to jobs whose end slurmdbd has recorded and slurmctld does not know."""

    REPORT = "Report"
    CANCEL = "Cancel"


class Confinement(StrEnum):
    """How jobs are kept to what they were allocated."""

    NONE = "None"
    CONSTRAIN = "Constrain"


class ContainerJobs(StrEnum):
    """Whether jobs may start containers."""

    NONE = "None"
    ROOTLESS = "Rootless"


class RollingUpdate(ApiModel):
    """How pods are replaced."""

    max_unavailable: IntOrPercent = 1
    """How many nodes may be unavailable at a time: a number, or a percentage of the desired nodes, rounded up. 0 means
    1. Default: 1."""
    partition: Annotated[int, Field(ge=0, le=_INT32)] = 0
    """Number of pods that keep the old revision: with ordinals, those below this number. Default: 0."""
    paused: bool = False
    """Whether updates are paused. Default: false."""


class UpdateStrategy(ApiModel):
    """How a change of the template reaches the pods."""

    type: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    """RollingUpdate drains and replaces pods, limited by maxUnavailable; OnDelete waits until someone deletes them."""
    rolling_update: RollingUpdate = Field(default_factory=RollingUpdate)
    """Settings of RollingUpdate."""


class ClaimRetention(ApiModel):
    """Whether claims created from volumeClaimTemplates are kept or deleted."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """When the NodeSet is deleted. Default: Retain."""
    when_scaled: Literal["Retain", "Delete"] = "Retain"
    """When the pod of a claim is removed by a scale-in. Claims kept by an earlier scale-in stay. Default: Retain."""


class NodeSetPartition(ApiModel):
    """A partition of exactly this NodeSet's nodes."""

    enabled: bool = True
    """Whether the partition exists. It has the name of the NodeSet."""
    config: PartitionLine = ""
    """Additional keys of the partition's line, for example Default=YES MaxTime=8:00:00."""


class Drain(ApiModel):
    """How long to wait for jobs before a pod is removed."""

    timeout: Duration | None = None
    """How long to wait for jobs, from the start of the drain, for example 90s, 30m or 1h30m. Default: no limit."""
    on_timeout: OnTimeout = OnTimeout.WAIT
    """What happens then. Wait: nothing, a condition reports it. Requeue: jobs are requeued if Slurm can do that without
    killing others. Cancel: jobs are cancelled. Force: the pod is deleted with its jobs. Default: Wait."""
    forgotten_jobs: ForgottenJobs = ForgottenJobs.REPORT
    """What happens to jobs that delay a drain although they have ended, as slurmdbd or slurmd shows: a slurmctld that
    was killed shows them as running. Report: a condition names them. Cancel: they are cancelled in slurmctld. Default:
    Report."""


class JobLogs(ApiModel):
    """Output of jobs for their owners in Kubernetes, without a shared file system."""

    keep_for: Duration = timedelta(hours=24)
    """How long output stays on the node after it was last written to; 0s: as long as the pod. What a process has open
    stays in any case; on a volume that nodes share everything does. Default: 24h."""
    resources: Resources | None = None
    """Resource requests and limits of the server's container. Default: requests and limits of 100m and 128Mi, which
    keep the pod in the QoS class Guaranteed if slurmd's container is."""


class Ssh(ApiModel):
    """Logins by SSH to nodes on which the user has a running job."""

    port: Annotated[int, Field(ge=1, le=65535), Keywords({"format": "int32"})] = 22
    """Port of the SSH server, for example 2222 where pods share the network of a Node that has one. Default: 22."""
    authorized_keys_ref: SecretRef | None = None
    """Secret with SSH keys of users, as in a LoginSet: each key of the Secret is the name of a user, its value has the
    lines of authorized_keys. They are accepted beside those in a user's home and those of the directory."""
    host_keys_ref: SecretRef | None = None
    """Secret with the SSH host keys of all pods (ssh_host_ed25519_key, ssh_host_rsa_key, ssh_host_ecdsa_key). Default:
    each pod makes one when it starts, so that clients see another host key after each update."""


class NodeSetSpec(ApiModel):
    """The desired state of the NodeSet."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "(has(self.serviceName) ? self.serviceName : '') =="
                    " (has(oldSelf.serviceName) ? oldSelf.serviceName : '')",
                    "serviceName is immutable: it is part of every pod's host name",
                    field=".serviceName",
                ),
                cel(
                    "!has(oldSelf.scalingMode) || (has(self.scalingMode) && self.scalingMode == oldSelf.scalingMode)",
                    "scalingMode is immutable: it decides how nodes are named",
                    field=".scalingMode",
                ),
                cel(
                    "!has(self.autoscaling) || !has(self.scalingMode) || self.scalingMode != 'DaemonSet'",
                    _NOT_ON_EACH_NODE,
                    field=".autoscaling",
                ),
                cel(
                    "!has(self.ssh) || (has(self.confinement) && self.confinement == 'Constrain')",
                    _NEEDS_CGROUPS,
                    field=".ssh",
                ),
            ]
        }
    )

    cluster_name: Annotated[
        DnsSubdomain,
        Keywords({"x-kubernetes-validations": [cel("self == oldSelf", "clusterName is immutable")]}),
    ]
    """Name of the Cluster object, in the same namespace. Immutable."""
    replicas: Annotated[int, Field(ge=0, le=MAX_ORDINALS), Keywords({"format": "int32"})] | None = None
    """Number of pods, for example 2; 0 drains and deletes them all. With scalingMode DaemonSet, the maximum number of
    Nodes with a pod. With autoscaling, the operator sets it: leave it out. Default: all matching Nodes; with a template
    of Slinky 0.2 or 0.3 (a host name that ends in a dash, or the label nodeset.slinky.slurm.net/name) 0, as in
    Slinky; with autoscaling, its minReplicas."""
    autoscaling: Autoscaling | None = None
    """Sets replicas by the pending jobs of the Cluster. Default: none; replicas is what you set."""
    scaling_mode: ScalingMode | None = None
    """StatefulSet: pods with ordinals, on any Node. DaemonSet: one pod on each matching Node, which names the Slurm
    node. Default: StatefulSet if replicas or autoscaling is set or the template is of Slinky 0.2 or 0.3, else
    DaemonSet.
    Immutable."""
    selector: Annotated[LabelSelector, Keywords({"x-kubernetes-map-type": "atomic"})] | None = None
    """Labels of the pods, shown in status.selector. Ownership is by uid and does not depend on it."""
    service_name: Annotated[DnsLabelOrEmpty | None, BeforeValidator(absent_if_empty)] = None
    """The headless Service of the pods; empty as if not given. Default: the operator's own. Immutable."""
    template: PodTemplate | None = None
    """A pod template: a complete one, as in Slinky 0.1 to 0.3, or a fragment that is merged over the generated one by
    strategic-merge rules."""
    image: Image | None = None
    """Image of slurmd. Default: the operator's setting."""
    resources: Resources | None = None
    """Resource requests and limits of slurmd's container, for example limits of cpu 4 and memory 16Gi. They set the
    resources of the Slurm node: CPUs is the limit of cpu, else the request, rounded down and at least 1; RealMemory is
    the limit of memory, else the request, in MiB. Default: CPUs=1, RealMemory=512, and Kubernetes reserves nothing (QoS
    class BestEffort). If template sets slurmd's arguments, as Slinky's charts do, resources without a limit are those
    of the machine."""

    partition: NodeSetPartition = Field(default_factory=NodeSetPartition)
    """A partition of exactly this NodeSet's nodes."""
    features: Annotated[tuple[FeatureName, ...], Field(max_length=64), SET] = ()
    """Slurm features of the nodes, in addition to the name of the NodeSet. None may be the name of another NodeSet of
    the Cluster: Slurm would add the nodes to that one."""
    gres: GresText | None = None
    """Generic resources of a node, for example gpu:a100:4. slurmd must find as many: set gres.conf in configFiles of
    the Cluster, and the devices in resources. A node that has fewer is drained by Slurm as inval."""
    weight: Annotated[int, Field(ge=0, le=4_294_967_280), Keywords({"format": "int64"})] | None = None
    """Scheduling weight of the nodes, for example 100: Slurm prefers lower ones. Default: 1 (Slurm's own)."""
    confinement: Confinement = Confinement.NONE
    """Whether Slurm keeps jobs to what they were allocated. None: it does not; a job can use all that the pod has.
    Constrain: it does, by cgroups, for cores, memory and devices (proctrack/cgroup, task/cgroup). slurmd's container
    then has the capabilities SYS_ADMIN and SYS_NICE and no AppArmor profile, but is not privileged; its namespace must
    allow the Pod Security level privileged. A change drains and replaces the pods. Default: None."""
    containers: ContainerJobs = ContainerJobs.NONE
    """Whether jobs may start containers (srun --container). None: where Kubernetes confines pods by seccomp or
    AppArmor, they cannot. Rootless: slurmd's container has neither of these profiles, so that users can create user
    namespaces and mount in them; no capability is added. Its namespace must allow the Pod Security level privileged,
    and image must have crun and jq. A change drains and replaces the pods. Default: None."""
    job_logs: JobLogs | None = None
    """Whether a small server beside slurmd serves output of jobs, live, to pods that may read it: what jobs write below
    /var/spool/job-output. {} is enough. A change drains and replaces the pods. Default: none, no server."""
    ssh: Ssh | None = None
    """Whether users may log in by SSH to nodes on which they have a running job: pam_slurm_adopt puts a session into
    the job, and refuses users without one. {} is enough. Needs confinement Constrain, PrologFlags=Contain in extraConf
    of the Cluster, and an image with sshd and pam_slurm_adopt. A change drains and replaces the pods. Default: none, no
    SSH server."""
    extra_conf: NodeLine = ""
    """Additional keys of the node's line, for example MemSpecLimit=1024 CoreSpecCount=1."""
    future_nodes: Annotated[int, Field(ge=0, le=MAX_FUTURE_NODES), Keywords({"format": "int32"})] = 0
    """How many nodes jobs may wait for while they do not exist, for example 8: the most that an autoscaler makes. Slurm
    refuses a job that none of its nodes could run; with this one, it queues jobs for up to so many nodes like those
    of this NodeSet, even while replicas is 0. Only where the operator writes slurm.conf. Default: 0; with autoscaling,
    its maxReplicas."""

    volume_claim_templates: Annotated[tuple[VolumeClaim, ...], Field(max_length=32)] = ()
    """Claims that every pod gets, named <claim>-<nodeset>-<ordinal>."""
    persistent_volume_claim_retention_policy: ClaimRetention = Field(default_factory=ClaimRetention)
    """Whether these claims are kept or deleted."""
    update_strategy: UpdateStrategy = Field(default_factory=UpdateStrategy)
    """How a change of the template reaches the pods."""
    revision_history_limit: Annotated[int, Field(ge=0, le=_INT32)] = 0
    """How many unused revisions are kept. Default: 0."""
    min_ready_seconds: Annotated[int, Field(ge=0, le=_INT32)] = 0
    """How many seconds a pod must be Ready to count as available. Default: 0."""

    drain: Drain = Field(default_factory=Drain)
    """How long to wait for jobs before a pod is removed."""
    health: Health | None = None
    """Which conditions of Kubernetes Nodes, and which checks, drain Slurm nodes. Default: none does."""
    topology: Annotated[
        tuple[NodeTopology, ...],
        Field(max_length=MAX_TOPOLOGIES),
        Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = ()
    """Where the nodes are in Slurm's topologies, by labels of their Kubernetes Nodes. The annotation
    topology.slinky.slurm.net/spec of a Node takes its place there. Needs Slurm 25.05. Default: labels mean nothing."""
    max_concurrent_startup: Annotated[int, Field(ge=1, le=MAX_ORDINALS)] | None = None
    """How many pods may be starting, not yet registered with Slurm, at a time, for example 50. Default: the operator's
    setting --max-concurrent-startup, which is 1000 unless changed."""
    ordinal_padding: Annotated[int, Field(ge=0, le=5)] = 0
    """Minimum number of digits of ordinals, which keeps hostlists short. A change renames pods as they are replaced;
    claims under the old names stay until their ordinal is removed. Default: 0."""
    pin_to_node: bool = False
    """Whether an ordinal always returns to the Node it first ran on. Default: false."""
    workload_disruption_protection: bool = True
    """Whether a PodDisruptionBudget prevents the eviction of pods that are not proven drained. Default: true."""

    @model_validator(mode="after")
    def _can_be_scaled(self) -> Self:
        if self.autoscaling is not None and self.scaling_mode is ScalingMode.DAEMON_SET:
            raise ValueError(_NOT_ON_EACH_NODE)
        return self

    @model_validator(mode="after")
    def _jobs_have_cgroups(self) -> Self:
        if self.ssh is not None and self.confinement is not Confinement.CONSTRAIN:
            raise ValueError(_NEEDS_CGROUPS)
        return self

    @property
    def wanted_mode(self) -> ScalingMode:
        """The mode the spec asks for. ``status.scalingMode``, once set, takes precedence."""
        if self.scaling_mode is not None:
            return self.scaling_mode
        if self.replicas is None and self.autoscaling is None and not self.counts_from_zero:
            return ScalingMode.DAEMON_SET
        return ScalingMode.STATEFUL_SET

    @property
    def replicas_if_unset(self) -> int:
        """The number of pods with ordinals while ``replicas`` is not set."""
        if self.autoscaling is not None:
            return self.autoscaling.min_replicas
        return 0 if self.counts_from_zero else 1

    @property
    def awaited_nodes(self) -> int:
        """How many nodes jobs may wait for: ``futureNodes``, and as many as autoscaling may make."""
        made = self.autoscaling.max_replicas if self.autoscaling is not None else 0
        return max(self.future_nodes, min(made, MAX_FUTURE_NODES))

    @property
    def counts_from_zero(self) -> bool:
        """Whether the spec was written for Slinky 0.2 or 0.3, where the default of replicas is 0.

        Their charts set a host name that is a prefix (``debug-``), and 0.3 the NodeSet's name as a label. Neither is in
        manifests of 0.1, nor needed here.
        """
        template = self.template or {}
        pod_spec, metadata = (template.get(key) for key in ("spec", "metadata"))
        hostname = pod_spec.get("hostname") if isinstance(pod_spec, dict) else None
        given = metadata.get("labels") if isinstance(metadata, dict) else None
        selected = self.selector.match_labels if self.selector is not None else {}
        return (
            (isinstance(hostname, str) and hostname.endswith("-"))
            or (isinstance(given, dict) and LABEL_NODESET_NAME in given)
            or LABEL_NODESET_NAME in selected
        )

    @property
    def drain_timeout(self) -> timedelta | None:
        """How long to wait for jobs before a pod is removed; None means without limit."""
        return self.drain.timeout
