"""Jobs as objects in a Cluster: which namespaces may submit, as which user, and to what."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from slinky_api.v1alpha1.common import SET, ApiModel
from slinky_api.v1alpha1.fields import DnsLabel, LabelValue, Namespace, UserName
from slinky_api.v1alpha1.rules import Keywords, Rule, Text, cel, matching
from slinky_api.v1alpha1.slurmjob.files import JobVolume
from slinky_api.v1alpha1.token import NO_NUMBER

_NOT_PRIVILEGED = Rule(
    "must not be root or slurm, which have full rights in the cluster",
    lambda text: text.lower() not in {"root", "slurm"},
    "!(self.lowerAscii() in ['root', 'slurm'])",
)

JobUser = Annotated[UserName, Text(NO_NUMBER, _NOT_PRIVILEGED, at_least=1, at_most=64)]
"""A user whose jobs may be objects."""

GrantedName = Annotated[
    str,
    Text(
        matching(
            "[A-Za-z0-9_][A-Za-z0-9_.-]*", "must be letters, digits, '_', '.' and '-', not beginning with '.' or '-'"
        ),
        at_least=1,
        at_most=64,
        by_pattern=True,
    ),
]
"""Name of an account, a partition or a QOS; checked by its pattern alone, since rules have a budget."""

_NAMES = Annotated[tuple[GrantedName, ...], Field(max_length=64), SET]


class JobTenant(ApiModel):
    """Whom the jobs of some namespaces belong to, and what they may ask for."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "has(self.namespaces) && size(self.namespaces) > 0"
                    " || has(self.namespaceLabels) && size(self.namespaceLabels) > 0",
                    "name namespaces, or labels that they have",
                    field=".namespaces",
                ),
                cel("has(self.uid) == has(self.gid)", "give both uid and gid, or none", field=".uid"),
            ]
        }
    )

    namespaces: Annotated[tuple[Namespace, ...], Field(max_length=64), SET] = ()
    """Namespaces in which SlurmJobs may be created for this Cluster."""
    namespace_labels: Annotated[dict[str, LabelValue], Field(max_length=16)] = Field(default_factory=dict)
    """Or all namespaces with these labels. The operator then reads the Namespace, which needs a cluster-wide right."""
    user: JobUser
    """The user whose jobs they are, who must exist where slurmctld runs. Never root or slurm."""
    uid: Annotated[int, Field(ge=1, lt=2**32 - 1)] | None = None
    """Uid of the user on the nodes. SlurmJobs with prepare need it: their files are copied as the user."""
    gid: Annotated[int, Field(ge=1, lt=2**32 - 1)] | None = None
    """Gid of the user on the nodes."""
    accounts: _NAMES = ()
    """Accounts that a job may name; the first is that of a job that names none. Default: what Slurm allows the user."""
    partitions: _NAMES = ()
    """Partitions, in the same way."""
    qos: _NAMES = ()
    """QOS, in the same way."""


_MAP_BY_LABEL: Final = Keywords({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "value"]})

_LABEL_NAME: Final = matching(r"[A-Za-z0-9._/-]+", "must be the name of a label")
_ONE_LINE: Final = matching(r"[^\x00-\x1f\x7f]+", "must be one line, without control characters")
_HOST: Final = matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", "must be lower-case letters, digits and '-'")
_GRES: Final = matching(
    r"[A-Za-z_][A-Za-z0-9_-]*(:[A-Za-z0-9_.-]+)?", "must be a generic resource of Slurm: gpu, or gpu:a100"
)
_PLAIN_PATH: Final = matching(r"/[A-Za-z0-9._/-]*", "must be an absolute path of letters, digits, dots and dashes")
"""Programs that run images read a colon as the end of a path."""


class SylabsLabel(ApiModel):
    """What a label in a node selector of the old kinds means to Slurm; without partition and features, all nodes."""

    name: Annotated[str, Text(_LABEL_NAME, at_least=1, at_most=317, by_pattern=True)]
    """Name of the label: wlm.sylabs.io/cuda."""
    value: Annotated[str, Text(_ONE_LINE, at_least=1, at_most=256, by_pattern=True)]
    """Its value. Each value of a label is an item of its own."""
    partition: GrantedName | None = None
    """The partition of jobs with this label."""
    features: Annotated[str, Text(_ONE_LINE, at_least=1, at_most=1024, by_pattern=True)] | None = None
    """Features that their nodes must have, as for sbatch --constraint."""


class ImageRuntime(ApiModel):
    """How jobs run images, and which files they share."""

    runtime: Literal["Slurm", "Apptainer", "Pyxis"] = "Slurm"
    """How images run: by srun --container, for which nodes need oci.conf, skopeo, umoci and jq, by Apptainer, or by
    pyxis (srun --container-image) with enroot."""
    folder: Annotated[str, Text(_PLAIN_PATH, at_least=1, at_most=200, by_pattern=True)] = "/tmp"  # noqa: S108
    """Folder on the nodes in which a job makes one of its own for its image."""
    shared_folder: bool = False
    """Whether all nodes see the same files there. Jobs of several nodes that fetch an image need it."""
    shared_volume: JobVolume | None = None
    """A claim of that name in each namespace of a tenant, which nodes mount too: prepare and results of sylabs' kinds,
    and pods on virtual Nodes, reach files on it by their paths. Default: only files below /var/spool/job-output are
    reached, and pods cannot mount claims."""


class Sylabs(ImageRuntime):
    """Jobs of the kinds of sylabs' operators, slurm.sylabs.io and wlm.sylabs.io."""

    labels: Annotated[tuple[SylabsLabel, ...], Field(max_length=256), _MAP_BY_LABEL] = ()
    """Labels of the site's own. An object with any other is refused, unless it is one that all virtual nodes had."""
    logs: bool = False
    """Whether each job gets a pod that shows its output, as with spec.logs of a SlurmJob."""


class VirtualNodes(ImageRuntime):
    """Partitions as Kubernetes Nodes: pods that are bound to one run as jobs of Slurm."""

    host: Annotated[str, Text(_HOST, at_least=1, at_most=63)]
    """Middle part of the Nodes' names, slurm-<host>-<partition>; no other Cluster may have the same."""
    partitions: _NAMES = ()
    """The partitions that become Nodes. Default: all that Slurm has."""
    allocatable: Literal["Unlimited", "Partition"] = "Unlimited"
    """What a Node offers to the Kubernetes scheduler: Unlimited leaves all waiting to Slurm, Partition offers what the
    partition has, so that pods beyond it wait in Kubernetes, and pods of higher priority preempt others."""
    labels: Annotated[dict[str, LabelValue], Field(max_length=32)] = Field(default_factory=dict)
    """More labels of the Nodes. Labels of Kubernetes (kubernetes.io, k8s.io) and those that the operator writes are
    refused."""
    zone: LabelValue | None = None
    """Value of topology.kubernetes.io/zone. Default: no such label."""
    partition_config: Annotated[str, Field(max_length=16_384)] | None = None
    """The partition configuration of wlm-operator's red-box, as YAML: by partition, the numbers and features that its
    labels wlm.sylabs.io/* are to have. Default: what Slurm says."""
    sylabs_pods: bool = False
    """Whether objects of sylabs' kinds have the pods that wlm-operator gave them, <name>-job and <name>-wlm-job, on the
    Nodes of their partitions. These pods show the job and its output, and take the place of pods with the output
    (spec.jobs.sylabs.logs): an object created before has none. Deleting one cancels no job."""


class BridgeGres(ApiModel):
    """A resource of Kubernetes Nodes as a generic resource of Slurm: an extended resource, or a class of devices."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "has(self.resource) != has(self.deviceClass)",
                    "name either an extended resource, or a class of devices (deviceClass)",
                    field=".resource",
                ),
                cel(
                    "has(self.deviceClass) || !has(self.driver) && !has(self.attributes)",
                    "driver and attributes are for classes of devices: name deviceClass",
                    field=".driver",
                ),
            ]
        }
    )

    resource: Annotated[str, Text(_LABEL_NAME, at_least=1, at_most=317, by_pattern=True)] | None = None
    """Name of the extended resource: nvidia.com/gpu."""
    device_class: Annotated[str, Text(_LABEL_NAME, at_least=1, at_most=253, by_pattern=True)] | None = None
    """Name of the DeviceClass that requests of ResourceClaims have: gpu.example.com. Each device of a Node then has a
    place of its own in Slurm, and a pod gets the devices that Slurm has given to its job. The operator's settings must
    have bridge_devices. No other item may have this generic resource, nor a resource of Nodes one of its name."""
    driver: Annotated[str, Text(_LABEL_NAME, at_least=1, at_most=63, by_pattern=True)] | None = None
    """Driver of the devices of this class, as in ResourceSlices. Default: it is called like the class."""
    attributes: Annotated[
        dict[str, Annotated[str, Field(min_length=1, max_length=64)]] | None, Field(min_length=1, max_length=8)
    ] = None
    """Attributes that a device must have to be of this class, with their values as texts: type: gpu. They repeat what
    the DeviceClass selects, which the operator does not evaluate. Default: all devices of the driver are."""
    gres: Annotated[str, Text(_GRES, at_least=1, at_most=64, by_pattern=True)]
    """The generic resource, with its type if it has one: gpu, or gpu:a100."""


class Bridge(ApiModel):
    """Kubernetes Nodes as nodes of Slurm, and pods that Slurm places on them. Needs Slurm 26.05.3 or newer."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "!has(self.gres) || self.gres.all(one, !has(one.deviceClass) || self.gres.all(other, "
                    "(has(other.deviceClass) && other.deviceClass == one.deviceClass) == (other.gres == one.gres)"
                    " && (has(other.deviceClass) && other.gres.contains(':') == one.gres.contains(':')"
                    " || other.gres.split(':')[0] != one.gres.split(':')[0])))",
                    "each deviceClass needs a generic resource of its own; those of one name all have types or none, "
                    "and no extended resource has this name",
                    field=".gres",
                )
            ]
        }
    )

    node_labels: Annotated[dict[str, LabelValue], Field(min_length=1, max_length=16)]
    """Nodes with all of these labels become nodes of Slurm, with their own names."""
    name: DnsLabel = "bridge"
    """What partitions name in nodeSets to have these nodes; also their feature. No NodeSet may have this name."""
    feature_labels: Annotated[
        tuple[Annotated[str, Text(_LABEL_NAME, at_least=1, at_most=317, by_pattern=True)], ...],
        Field(max_length=16),
        SET,
    ] = ()
    """Labels of Nodes that become features, so that nodeSelector of a pod can name them: topology.kubernetes.io/zone
    with the value eu-1 is the feature zone.eu-1."""
    gres: Annotated[tuple[BridgeGres, ...], Field(max_length=16)] = ()
    """Extended resources and classes of devices that Slurm counts. Default: nvidia.com/gpu and amd.com/gpu as gpu,
    where Nodes have them."""


class Jobs(ApiModel):
    """Jobs as objects: the kind SlurmJob, and the kinds of sylabs' operators."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "!has(self.virtualNodes) || !has(self.virtualNodes.sylabsPods) || !self.virtualNodes.sylabsPods"
                    " || has(self.sylabs)",
                    "sylabsPods needs spec.jobs.sylabs, whose objects have these pods: write sylabs: {}",
                    field=".virtualNodes.sylabsPods",
                )
            ]
        }
    )

    tenants: Annotated[tuple[JobTenant, ...], Field(max_length=64)] = ()
    """Who may submit. The first that fits a namespace, and the user that a SlurmJob names, counts. Default: nobody."""
    sylabs: Sylabs | None = None
    """Whether the Cluster also runs jobs of the kinds of sylabs' operators, for the same tenants. Default: it does not.
    A namespace may have a tenant in only one Cluster that does."""
    virtual_nodes: VirtualNodes | None = None
    """Whether partitions are Kubernetes Nodes, on which pods of the tenants' namespaces run as jobs. The operator's
    settings must name the Cluster, since Nodes belong to no namespace. Default: they are not."""
    bridge: Bridge | None = None
    """Whether Kubernetes Nodes are nodes of this Slurm, on which it places pods of the tenants' namespaces. The
    operator's settings must name the Cluster, since Nodes belong to no namespace. Default: they are not."""
