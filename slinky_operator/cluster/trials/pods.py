"""What every disposable pod has: its kind, name and objects, its end, and nothing by which it affects a real daemon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons import Images, metadata
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming

ANNOTATION_DESCRIPTION: Final = "kubernetes.io/description"
"""On the pod of each trial: what it is. The name is Kubernetes' own."""

LASTS: Final = 600
"""Seconds after which the kubelet ends a trial's pod that nobody has deleted: the time for a slow pull."""

ENDS: Final[Mapping[str, Any]] = {
    "restartPolicy": "Never",
    "activeDeadlineSeconds": LASTS,
    "terminationGracePeriodSeconds": 1,
}
"""Fields by which the pod ends."""

CONFIG: Final = "config"
"""Volume of the ConfigMap, as in slurmctld's pod."""

_NOT_COPIED: Final = frozenset(
    ("containers", "initContainers", "volumes", "hostNetwork", "hostPID", "hostIPC", "hostname", "subdomain")
)
"""Fields of a daemon's pod with which the disposable pod would look like it, or see it."""


@dataclass(frozen=True, slots=True)
class TrialKind:
    """One kind of trial."""

    tries: str
    """What is tried: the description of the pod."""

    mark: str = ""
    """Begins the last part of its names. That of a preflight has none: it begins with a digit of a hash."""

    annotation: str = ""
    """On its objects: what distinguishes two trials of the kind."""

    def has(self, cluster: Cluster, obj: Object) -> bool:
        """Whether an object belongs to a trial of this kind, by its name."""
        name, first = str(obj["metadata"]["name"]), naming.preflight(cluster.name, "")
        mark = name.removeprefix(first)[:1]
        return name.startswith(first) and self.mark == (mark if mark in _MARKS else "")


@dataclass(frozen=True, slots=True)
class TrialInput:
    """What a disposable pod of slurmctld is made of."""

    cluster: Cluster
    images: Images
    files: Mapping[str, str]
    """The configuration that it reads."""

    template: Mapping[str, Any] = field(default_factory=dict)
    """Spec of slurmctld's pod that is tried; of a new one if empty."""

    running: Mapping[str, Any] = field(default_factory=dict)
    """Spec of the running one."""

    claim: str = ""
    """Name of the claim with the live state, for a trial that copies it."""

    node: str = ""
    """The Node that it is for; empty for any."""


CONFIGURATION: Final = TrialKind("a configuration", "", labels.CLUSTER_PREFIX + "candidate")
REHEARSAL: Final = TrialKind("a new pod of slurmctld", "r", labels.CLUSTER_PREFIX + "rehearsal")
STATE: Final = TrialKind("a new slurmctld with a copy of the state", "t", labels.CLUSTER_PREFIX + "state-trial")
JOBS: Final = TrialKind("a configuration with a copy of the jobs", "j", labels.CLUSTER_PREFIX + "jobs-trial")
SLURMDBD_CONF: Final = TrialKind("slurmdbd.conf", "s", labels.CLUSTER_PREFIX + "slurmdbd-trial")
VERSIONS: Final = TrialKind("which Slurm images have", "v")

_MARKS: Final = frozenset(one.mark for one in (REHEARSAL, STATE, JOBS, SLURMDBD_CONF, VERSIONS))


def objects(
    cluster: Cluster,
    kind: TrialKind,
    spec: Mapping[str, Any],
    *,
    identity: Mapping[str, Any],
    note: str = "",
    data: Mapping[str, str] | None = None,
    volume: str = CONFIG,
    node: str = "",
) -> TrialObjects:
    """Name the objects of a trial by what they are: the same trial has the same name in each process.

    Parameters
    ----------
    spec
        Of the pod.
    identity
        What distinguishes two trials with the same pod.
    note
        Value of the kind's annotation.
    data
        What its daemons read; `None` if they read nothing.
    volume
        The volume of the pod that has the data.
    node
        The only Node it may run on; empty for any.
    """
    named = Child(PODS, {"metadata": {"name": "", "uid": cluster.uid, **identity}, "spec": spec})
    name = naming.preflight(cluster.name, f"{kind.mark}{named.digest}"[:10])
    notes = {kind.annotation: note} if note else None
    about = metadata(cluster, name, naming.COMPONENT_PREFLIGHT, notes)
    volumes = [
        {**one, "configMap": {**one["configMap"], "name": name}} if data is not None and one["name"] == volume else one
        for one in spec["volumes"]
    ]
    pod = Child(PODS, {"metadata": _of_pod(cluster, about, kind.tries), "spec": {**spec, "volumes": volumes}})
    if data is None:
        return TrialObjects(pod, node=node)
    return TrialObjects(pod, Child(CONFIGMAPS, {"metadata": about, "data": dict(data), "immutable": True}), node)


def _of_pod(cluster: Cluster, about: Object, tried: str) -> Object:
    """Metadata of a trial's pod, with a description of its purpose for administrators who find it, or its Events."""
    words = (
        f"slurm-operator tries {tried} for Cluster {cluster.name} in this pod, beside the running daemons, and deletes "
        "it afterwards. What it has found is in the conditions of the Cluster; Events of this pod are no faults of it"
    )
    return {
        **about,
        # Without the Cluster's uid, by which slurmd pods are found.
        "labels": naming.pod_labels(cluster, naming.COMPONENT_PREFLIGHT),
        "annotations": {**about.get("annotations", {}), ANNOTATION_DESCRIPTION: words},
    }


def of_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a daemon's pod for a disposable one: without what runs in it, and what it is or sees on its Node."""
    return {**{key: value for key, value in template.items() if key not in _NOT_COPIED}, **ENDS}


def container_of(template: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The container of a daemon in its pod."""
    found: Mapping[str, Any] = next(one for one in template["containers"] if one["name"] == name)
    return found


def is_claim(volume: Mapping[str, Any]) -> bool:
    """Whether a volume is on a claim: only one pod may be able to mount it."""
    return bool({"persistentVolumeClaim", "ephemeral"} & volume.keys())


def running(script: str, memory: str = "32Mi") -> dict[str, Any]:
    """Command and requests of a container that runs a script."""
    return {"command": ["/bin/sh", "-c", script], "resources": {"requests": {"cpu": "10m", "memory": memory}}}


def placed(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The same pod on one Node, whatever its scheduling fields say; an image that is present is not pulled again."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    free = {key: value for key, value in spec.items() if key not in {"nodeSelector", "topologySpreadConstraints"}}
    return {
        **free,
        "affinity": {"nodeAffinity": required},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{**one, "imagePullPolicy": "IfNotPresent"} for one in spec["containers"]],
    }
