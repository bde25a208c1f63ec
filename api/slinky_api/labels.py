"""Every label, annotation and finalizer, by name.

Slinky 0.1 wrote its annotations under the bare ``slinky.slurm.net/`` prefix, 0.2 and later under
``nodeset.slinky.slurm.net/``. The operator writes the later ones and accepts both: use `read` to read them.
"""

from collections.abc import Mapping
from typing import Final

__all__ = [
    "ANNOTATION_AUTOSCALED",
    "ANNOTATION_BRIDGE_CLUSTER",
    "ANNOTATION_BRIDGE_DEADLINE",
    "ANNOTATION_BRIDGE_DEVICES",
    "ANNOTATION_BRIDGE_MEMBERS",
    "ANNOTATION_BRIDGE_RANKS",
    "ANNOTATION_BRIDGE_SLOT",
    "ANNOTATION_BRIDGE_SLURMJOB",
    "ANNOTATION_CANCEL",
    "ANNOTATION_CLAIM_RETENTION",
    "ANNOTATION_CLAIM_SIZE",
    "ANNOTATION_CONFIG_TOUCH",
    "ANNOTATION_COPIES",
    "ANNOTATION_COST",
    "ANNOTATION_FEATURES_SPEC",
    "ANNOTATION_JOB_FILE",
    "ANNOTATION_LEAVES",
    "ANNOTATION_NEW_HOST_KEYS",
    "ANNOTATION_NODE_CORDON_REASON",
    "ANNOTATION_NODE_MACHINE",
    "ANNOTATION_NODE_RECORD",
    "ANNOTATION_NODE_WEIGHT",
    "ANNOTATION_POD_CORDON",
    "ANNOTATION_POD_DEADLINE",
    "ANNOTATION_POD_DELETE",
    "ANNOTATION_POD_DELETION_COST",
    "ANNOTATION_POD_PROGRESSIVE_CREATE",
    "ANNOTATION_POD_REGISTER_BY",
    "ANNOTATION_SECRET_SERVER",
    "ANNOTATION_SERVES",
    "ANNOTATION_SERVICE_ACCOUNT",
    "ANNOTATION_SKIP_DRAIN",
    "ANNOTATION_SOURCE_GENERATION",
    "ANNOTATION_SYLABS_JOBS",
    "ANNOTATION_TOPOLOGY_SPEC",
    "ANNOTATION_VIRTUAL_NODE_CLUSTER",
    "ANNOTATION_VIRTUAL_NODE_RECORD",
    "ANNOTATION_VIRTUAL_POD_CONTROLLER",
    "ANNOTATION_VIRTUAL_POD_JOB",
    "ANNOTATION_VIRTUAL_POD_LEFT",
    "ANNOTATION_VIRTUAL_POD_NAME",
    "ANNOTATION_VIRTUAL_POD_SHOWS",
    "ANNOTATION_WORKS",
    "BRIDGE_PREFIX",
    "CLUSTER_PREFIX",
    "FIELD_MANAGER",
    "FINALIZER_CLUSTER",
    "FINALIZER_NODESET_CONFIG",
    "FINALIZER_NODESET_DRAIN",
    "FINALIZER_SLURMJOB",
    "FINALIZER_VIRTUAL_POD",
    "GATE_BRIDGE",
    "KUBERNETES_NODE_PREFIX",
    "LABEL_APP_COMPONENT",
    "LABEL_APP_INSTANCE",
    "LABEL_APP_MANAGED_BY",
    "LABEL_APP_NAME",
    "LABEL_APP_PART_OF",
    "LABEL_BRIDGE_GROUP",
    "LABEL_BRIDGE_POD",
    "LABEL_BRIDGE_REQUIRED",
    "LABEL_CLUSTER_NAME",
    "LABEL_CLUSTER_UID",
    "LABEL_DAEMON",
    "LABEL_JOB_LOGS",
    "LABEL_LOGINSET_NAME",
    "LABEL_LOGINSET_UID",
    "LABEL_NODESET_NAME",
    "LABEL_NODESET_UID",
    "LABEL_OPERATOR",
    "LABEL_POD_HOSTNAME",
    "LABEL_POD_INDEX",
    "LABEL_POD_NAME",
    "LABEL_POD_PROTECT",
    "LABEL_REVISION",
    "LABEL_SCALING_MODE",
    "LABEL_SLURMJOB_NAME",
    "LABEL_TOKEN_UID",
    "LABEL_VIRTUAL_NODE",
    "LABEL_VIRTUAL_POD",
    "LEGACY_PREFIX",
    "LOGINSET_PREFIX",
    "MANAGED_BY",
    "NODESET_PREFIX",
    "NODE_HOSTNAME_OVERRIDE",
    "SLURMJOB_PREFIX",
    "TAINT_BRIDGE",
    "TAINT_VIRTUAL_NODE_UNAVAILABLE",
    "TOKEN_PREFIX",
    "VIRTUAL_NODE_PREFIX",
    "is_true",
    "read",
]

LEGACY_PREFIX: Final = "slinky.slurm.net/"
"""Prefix of 0.1."""

CLUSTER_PREFIX: Final = "cluster.slinky.slurm.net/"
NODESET_PREFIX: Final = "nodeset.slinky.slurm.net/"
TOKEN_PREFIX: Final = "token.slinky.slurm.net/"  # noqa: S105
LOGINSET_PREFIX: Final = "loginset.slinky.slurm.net/"
SLURMJOB_PREFIX: Final = "slurmjob.slinky.slurm.net/"

VIRTUAL_NODE_PREFIX: Final = "virtual-node.slinky.slurm.net/"
"""Prefix of what is the operator's own on virtual Nodes and on pods that are bound to them."""

BRIDGE_PREFIX: Final = "bridge.slinky.slurm.net/"
"""Prefix of what belongs to pods of Kubernetes that Slurm places."""

KUBERNETES_NODE_PREFIX: Final = "slurm.sylabs.io/"
"""Prefix of labels and extended resources of Kubernetes Nodes that say which Slurm hardware they have: that of sylabs'
resource-daemon, by which jobs select Nodes."""

FIELD_MANAGER: Final = "slurm-operator"
"""The operator's name in server-side apply and in ``app.kubernetes.io/managed-by``."""

MANAGED_BY: Final = FIELD_MANAGER

# Finalizers

FINALIZER_CLUSTER: Final = CLUSTER_PREFIX + "daemons"
"""On a managed Cluster: removed when no slurmd pod is left and its daemons are gone."""

FINALIZER_NODESET_DRAIN: Final = NODESET_PREFIX + "drain"
"""On a NodeSet, by the NodeSet controller: removed when no pod is left."""

FINALIZER_NODESET_CONFIG: Final = CLUSTER_PREFIX + "config"
"""On a NodeSet, by the Cluster controller: removed when a configuration without it is live, or its Cluster is gone."""

FINALIZER_SLURMJOB: Final = SLURMJOB_PREFIX + "job"
"""On a SlurmJob: removed when its job has ended, or is not to be cancelled."""

FINALIZER_VIRTUAL_POD: Final = VIRTUAL_NODE_PREFIX + "job"
"""On a pod of a virtual Node: removed when its job has ended, or is to run on without the pod. So who deleted the pod,
also by force or while the operator was away, is still known when the operator decides about the job."""

# Labels

LABEL_APP_NAME: Final = "app.kubernetes.io/name"
LABEL_APP_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_APP_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_APP_PART_OF: Final = "app.kubernetes.io/part-of"
LABEL_APP_MANAGED_BY: Final = "app.kubernetes.io/managed-by"

LABEL_CLUSTER_NAME: Final = CLUSTER_PREFIX + "name"
LABEL_CLUSTER_UID: Final = CLUSTER_PREFIX + "uid"
"""Uid of the Cluster that a child or a slurmd pod belongs to; it decides ownership.

Nothing is selected by it: objects left by a deleted Cluster belong to the next one of its name."""

LABEL_DAEMON: Final = CLUSTER_PREFIX + "daemon"
"""Only on pods of slurmrestd and slurmd: their Services select by it, since no template may set it."""

LABEL_VIRTUAL_NODE: Final = VIRTUAL_NODE_PREFIX + "partition"
"""On virtual Nodes, with the name of the partition as Slurm writes it: the operator's own Nodes are selected by it."""

ANNOTATION_VIRTUAL_NODE_CLUSTER: Final = VIRTUAL_NODE_PREFIX + "cluster"
"""On virtual Nodes: namespace, name and uid of the Cluster, with slashes between."""

LABEL_VIRTUAL_POD: Final = VIRTUAL_NODE_PREFIX + "pod"
"""On SlurmJobs of pods on virtual Nodes: uid of the pod whose job it is, or was."""

ANNOTATION_VIRTUAL_POD_JOB: Final = VIRTUAL_NODE_PREFIX + "slurmjob"
"""On pods of virtual Nodes: name of the SlurmJob, written before the SlurmJob is made or taken over."""

ANNOTATION_VIRTUAL_POD_NAME: Final = VIRTUAL_NODE_PREFIX + "pod-name"
"""On SlurmJobs of pods on virtual Nodes: name of the pod whose job it is, or was."""

ANNOTATION_VIRTUAL_POD_CONTROLLER: Final = VIRTUAL_NODE_PREFIX + "controller"
"""On SlurmJobs of pods on virtual Nodes: uid of the pod's controller and, behind a slash, which of its pods it is."""

ANNOTATION_VIRTUAL_POD_SHOWS: Final = VIRTUAL_NODE_PREFIX + "shows"
"""On pods of virtual Nodes that show a SlurmJob instead of having one: name of the SlurmJob, which owns the pod."""

ANNOTATION_VIRTUAL_POD_LEFT: Final = VIRTUAL_NODE_PREFIX + "left"
"""On SlurmJobs whose pod an outage took: what deleted the pod, and when. The next pod of the controller takes the job
over."""

LABEL_BRIDGE_POD: Final = BRIDGE_PREFIX + "pod"
"""On pods that Slurm is to place, with the value true, beside the scheduling gate: the operator watches these alone."""

LABEL_BRIDGE_REQUIRED: Final = BRIDGE_PREFIX + "required"
"""On Namespaces, with the value true: a policy of the chart slurm-bridge refuses pods there that have no gate."""

GATE_BRIDGE: Final = BRIDGE_PREFIX + "slurm"
"""The scheduling gate of a pod that Slurm is to place; the operator removes it once Slurm runs the job of the pod."""

ANNOTATION_BRIDGE_CLUSTER: Final = BRIDGE_PREFIX + "cluster"
"""On pods that Slurm is to place: ``<namespace>/<name>`` of the Cluster, where several grant their namespace."""

ANNOTATION_BRIDGE_SLURMJOB: Final = BRIDGE_PREFIX + "slurmjob"
"""On pods that Slurm has placed: name of the SlurmJob. Written with the removal of the gate."""

ANNOTATION_BRIDGE_SLOT: Final = BRIDGE_PREFIX + "slot"
"""On pods that Slurm has placed: which task of the job the pod is, from 0. Written with the removal of the gate."""

ANNOTATION_BRIDGE_DEVICES: Final = BRIDGE_PREFIX + "devices"
"""On pods that Slurm has placed: the devices of their ResourceClaims, as ``<claim>=<device>,<device>; ...``. Written
with the removal of the gate."""

ANNOTATION_BRIDGE_DEADLINE: Final = BRIDGE_PREFIX + "deadline"
"""On pods that Slurm has placed: RFC 3339, when their job reaches its time limit."""

LABEL_BRIDGE_GROUP: Final = BRIDGE_PREFIX + "group"
"""On SlurmJobs of pods that Slurm is to place: uid of the object whose pods they are, or of the only pod."""

ANNOTATION_BRIDGE_MEMBERS: Final = BRIDGE_PREFIX + "members"
"""On SlurmJobs of pods that Slurm is to place: which pods they are, as ``<kind>/<name or uid>/<part>``."""

ANNOTATION_BRIDGE_RANKS: Final = BRIDGE_PREFIX + "ranks"
"""On SlurmJobs of pods that Slurm is to place: ranks of the pods, as 0-3,7, in the order of the job's tasks."""

TAINT_BRIDGE: Final = BRIDGE_PREFIX + "reserved"
"""A taint by which administrators keep Nodes for pods that Slurm places; these get the toleration with their place."""

TAINT_VIRTUAL_NODE_UNAVAILABLE: Final = VIRTUAL_NODE_PREFIX + "unavailable"
"""The taint of a virtual Node whose Slurm is away or whose partition starts no jobs, with the effect NoSchedule."""

ANNOTATION_VIRTUAL_NODE_RECORD: Final = VIRTUAL_NODE_PREFIX + "written"
"""On virtual Nodes: JSON with the names of the labels that the operator has written, and whether it has cordoned the
Node. Other labels, and cordons of others, stay."""

LABEL_OPERATOR: Final = CLUSTER_PREFIX + "operator"
"""On the operator's pods and on the Lease of its replicas, with the value true."""

ANNOTATION_SERVES: Final = CLUSTER_PREFIX + "serves"
"""On the Lease: the namespaces that the operator is to serve, separated by commas, or *."""

ANNOTATION_LEAVES: Final = CLUSTER_PREFIX + "leaves"
"""On the Lease: of these, the namespaces that it leaves to another release, separated by commas."""

ANNOTATION_WORKS: Final = CLUSTER_PREFIX + "works"
"""On the Lease: true once the holder has found no other release before it, and works."""

ANNOTATION_SERVICE_ACCOUNT: Final = CLUSTER_PREFIX + "service-account"
"""On the Lease: the ServiceAccount, of the Lease's namespace, by whose rights other releases believe it."""

LABEL_JOB_LOGS: Final = CLUSTER_PREFIX + "job-logs"
"""On pods that follow output of jobs, with the value true: the chart's NetworkPolicy lets them reach the servers."""

ANNOTATION_JOB_FILE: Final = SLURMJOB_PREFIX + "job-file"
"""On pods that follow output of jobs: digest of their job file. A change of it makes the kubelet refresh the file."""

ANNOTATION_COPIES: Final = SLURMJOB_PREFIX + "copies"
"""On pods that copy files of jobs: which items they copy, in the order of their reports."""

LABEL_SLURMJOB_NAME: Final = SLURMJOB_PREFIX + "name"
"""On pods of a SlurmJob, with its output or for its files, where its name is short enough."""

LABEL_LOGINSET_NAME: Final = LOGINSET_PREFIX + "name"
LABEL_LOGINSET_UID: Final = LOGINSET_PREFIX + "uid"
"""Uid of the LoginSet that a pod or another object belongs to; also the unique part of ``status.selector``."""

LABEL_NODESET_NAME: Final = NODESET_PREFIX + "name"
LABEL_NODESET_UID: Final = NODESET_PREFIX + "uid"
"""Uid of the NodeSet a pod or claim belongs to; also the unique part of ``status.selector``."""

LABEL_TOKEN_UID: Final = TOKEN_PREFIX + "uid"
"""Uid of the Token that a Secret was made for. For people: ownership is decided by the owner reference."""

LABEL_POD_NAME: Final = NODESET_PREFIX + "pod-name"
LABEL_POD_INDEX: Final = NODESET_PREFIX + "pod-index"
LABEL_POD_HOSTNAME: Final = NODESET_PREFIX + "pod-hostname"
LABEL_POD_PROTECT: Final = NODESET_PREFIX + "pod-protect"
"""``"true"`` on a pod that the PodDisruptionBudget protects."""

LABEL_SCALING_MODE: Final = NODESET_PREFIX + "scaling-mode"
LABEL_REVISION: Final = "controller-revision-hash"

# Annotations on SlurmJobs

ANNOTATION_CANCEL: Final = SLURMJOB_PREFIX + "cancel"
"""``"true"`` on a SlurmJob: its job is cancelled, or never submitted, and the object stays. Other values do nothing."""

ANNOTATION_SOURCE_GENERATION: Final = SLURMJOB_PREFIX + "source-generation"
"""On a SlurmJob made of an object of an old kind: the generation of that object's spec."""

# Annotations on Namespaces

ANNOTATION_SYLABS_JOBS: Final = CLUSTER_PREFIX + "sylabs-jobs"
"""``<namespace>/<name>`` of the Cluster that runs the Namespace's jobs of the kinds of sylabs' operators."""

# Annotations on NodeSets

ANNOTATION_AUTOSCALED: Final = NODESET_PREFIX + "autoscaled-replicas"
"""The number that autoscaling last set in ``spec.replicas``: another number there was set by somebody else."""

ANNOTATION_COST: Final = NODESET_PREFIX + "cost"
"""A number; of several NodeSets of one weight that could run a job, autoscaling raises the one with the lowest."""

# Annotations on pods

ANNOTATION_POD_CORDON: Final = NODESET_PREFIX + "pod-cordon"
"""``"true"``: drain this pod's Slurm node and keep it drained."""

ANNOTATION_CLAIM_RETENTION: Final = NODESET_PREFIX + "claim-retention"
"""On a claim whose pod is removed by a scale-in: ``Delete`` (after its pod), ``DeleteWithNodeSet`` or ``Retain``,
according to the policy of the NodeSet at that time."""

ANNOTATION_POD_DELETION_COST: Final = NODESET_PREFIX + "pod-deletion-cost"
"""A 32-bit integer; among equals, the pod with the lower one is removed first."""

ANNOTATION_POD_DEADLINE: Final = NODESET_PREFIX + "pod-deadline"
"""RFC 3339: when the last of the pod's jobs reaches its time limit."""

ANNOTATION_POD_REGISTER_BY: Final = NODESET_PREFIX + "pod-register-by"
"""RFC 3339: when a pod whose slurmd runs but has not registered is recreated."""

ANNOTATION_POD_DELETE: Final = NODESET_PREFIX + "pod-delete"
"""0.1 only (without ``nodeset.``): the pod has no Slurm node and is to be replaced."""

# Annotations on a NodeSet

ANNOTATION_SKIP_DRAIN: Final = NODESET_PREFIX + "skip-drain"
"""``"true"`` on a NodeSet being deleted: its jobs may die."""

ANNOTATION_POD_PROGRESSIVE_CREATE: Final = NODESET_PREFIX + "pod-progressive-create"
"""0.1 only (without ``nodeset.``)."""

# Annotations on a Cluster

ANNOTATION_WRITE_CONFIG: Final = CLUSTER_PREFIX + "write-configuration"
"""Hash of a configuration that is to be written although nothing shows what slurmctld runs: jobs may die."""

# Annotations on a LoginSet

ANNOTATION_NEW_HOST_KEYS: Final = LOGINSET_PREFIX + "new-host-keys"
"""Fingerprint of a lost SSH host key: new ones may be generated in its place."""

# Annotations on Nodes

ANNOTATION_NODE_WEIGHT: Final = NODESET_PREFIX + "node-weight"
"""A 32-bit integer: Nodes are used in ascending order of it. 0.1 wrote it without ``nodeset.``."""

ANNOTATION_NODE_CORDON_REASON: Final = NODESET_PREFIX + "node-cordon-reason"
ANNOTATION_NODE_MACHINE: Final = NODESET_PREFIX + "machine-replacement"
"""On a Node: the operator has cordoned it to have its machine rebooted or deleted, for which NodeSet, and how far that
is."""

NODE_HOSTNAME_OVERRIDE: Final = NODESET_PREFIX + "hostname-override"
"""Annotation or label: the name of the Slurm node on this Node, instead of the Node's short name."""

ANNOTATION_NODE_RECORD: Final = KUBERNETES_NODE_PREFIX + "written-by-slurm-operator"
"""JSON: names, without prefix, of the labels and extended resources of a Node that the operator has written."""

ANNOTATION_TOPOLOGY_SPEC: Final = "topology.slinky.slurm.net/spec"
ANNOTATION_FEATURES_SPEC: Final = "features.slinky.slurm.net/spec"

# Annotations on Secrets

ANNOTATION_SECRET_SERVER: Final = CLUSTER_PREFIX + "server"
"""URLs of the external slurmrestds that the Secret may be sent to, separated by commas or blanks."""

# Annotations on objects of the Cluster controller

ANNOTATION_CLAIM_SIZE: Final = CLUSTER_PREFIX + "claim-size"
"""On a daemon's claim: the size up to which the operator has made it grow."""

ANNOTATION_CONFIG_TOUCH: Final = CLUSTER_PREFIX + "config-touched"
"""On the slurmctld pod: changed so that the kubelet refreshes its volumes at once."""


def read(annotations: Mapping[str, str] | None, key: str) -> str | None:
    """Look up an annotation under its name or, failing that, under its name in 0.1.

    Parameters
    ----------
    annotations
        ``metadata.annotations`` of any object, or None.
    key
        One of the names above.

    Returns
    -------
    str or None
        The value; if both exist, that of the later name.
    """
    if annotations is None:
        return None
    if key in annotations:
        return annotations[key]
    if key.startswith(NODESET_PREFIX):
        return annotations.get(LEGACY_PREFIX + key.removeprefix(NODESET_PREFIX))
    return None


def is_true(annotations: Mapping[str, str] | None, key: str) -> bool:
    """Whether a boolean annotation is ``"true"``, under either name."""
    return read(annotations, key) == "true"
