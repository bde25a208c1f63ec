"""Which pod the SlurmJob of an old object has, on which Node, and when it is made or goes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import SlurmJobCondition
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SLURM_SLURMJOBS, SLURMJOBS, WLM_SLURMJOBS, WLM_WLMJOBS
from slinky_operator.reconcile.text import moment
from slinky_operator.reconcile.writes.parts import controller_of
from slinky_operator.virtual_nodes.node_names import MAX_NAME

OF_CLUSTER: Final = "old job of cluster"
"""Index of the SlurmJob cache over `<namespace>/<name>` of the Cluster, of SlurmJobs that have such a pod."""

PAST: Final = timedelta(minutes=10)
"""Time after the end of a job within which a pod that has gone comes back, or one that was late comes: enough for an
operator that is replaced. Far fewer jobs end in it than Kubernetes keeps pods that have ended, 12,500."""

_GONE: Final = "PartitionGone"
_NOBODY: Final = 65534


@dataclass(frozen=True, slots=True)
class PodForm:
    """How wlm-operator and slurm-operator named the pods of a kind."""

    suffix: str
    container: str


_FORMS: Final[Mapping[tuple[str, str], PodForm]] = {
    (WLM_SLURMJOBS.group, WLM_SLURMJOBS.kind): PodForm("-job", "jt1"),
    (WLM_WLMJOBS.group, WLM_WLMJOBS.kind): PodForm("-wlm-job", "jt2"),
    (SLURM_SLURMJOBS.group, SLURM_SLURMJOBS.kind): PodForm("-job", "jt1"),
}


@dataclass(frozen=True, slots=True)
class Create:
    """Make the pod."""

    body: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the pod: its Node goes, or it is on another than its job."""

    pod: Object


def pod_name(job: Object) -> str:
    """Name of the pod of a SlurmJob; empty for one that has none.

    Only a SlurmJob that was made with a view to such a pod has one: else its output is not where the pod's is read.
    """
    form, owner = _form(job), controller_of(job)
    logs = (job.get("spec") or {}).get("logs") or {}
    if form is None or logs.get("pod") is not False:
        return ""
    name = f"{owner.get('name')}{form.suffix}"
    return name if len(name) <= MAX_NAME else ""


def cluster_of(job: Object) -> Key:
    """Namespace and name of the Cluster of a SlurmJob."""
    spec, about = job.get("spec") or {}, job["metadata"]
    return str(spec.get("clusterNamespace") or about.get("namespace")), str(spec.get("clusterName"))


def partition_of(job: Object) -> str:
    """The partition that Slurm has put the job of a SlurmJob into; empty before."""
    status = job.get("status") or {}
    return str(status.get("partition") or "") if status.get("jobId") is not None else ""


def by_cluster(job: Object) -> list[str]:
    """Indexer for `OF_CLUSTER`."""
    return ["/".join(cluster_of(job))] if pod_name(job) else []


def is_of(pod: Object, job: Object) -> bool:
    """Whether a pod belongs to this very SlurmJob."""
    return bool(controller_of(pod).get("uid") == job["metadata"].get("uid"))


def is_going(node: Object) -> bool:
    """Whether a Node goes once no pod is bound to it."""
    taints: Iterable[Mapping[str, Any]] = (node.get("spec") or {}).get("taints") or ()
    return any((one.get("key"), one.get("value")) == (labels.TAINT_VIRTUAL_NODE_UNAVAILABLE, _GONE) for one in taints)


def is_past(job: Object, now: datetime) -> bool:
    """Whether the job of a SlurmJob has ended so long ago that no pod comes for it any more.

    Kubernetes deletes ended pods where there are many: each that came back would make it delete another one, for ever.
    """
    conditions: Iterable[Mapping[str, Any]] = (job.get("status") or {}).get("conditions") or ()
    found = [one for one in conditions if (one.get("type"), one.get("status")) == (SlurmJobCondition.FINISHED, "True")]
    since = moment(found[0].get("lastTransitionTime")) if found else None
    return bool(found) and (since is None or since.tzinfo is None or now - since >= PAST)


def decide(job: Object, pod: Object | None, node: Object | None, now: datetime) -> Create | Delete | None:
    """Decide on the pod of a SlurmJob.

    Parameters
    ----------
    job
        The SlurmJob.
    pod
        The pod of its name, if it is on a virtual Node and belongs to the SlurmJob.
    node
        The Node of the job's partition; None if there is none, or none is wanted.
    now
        The time.
    """
    if job["metadata"].get("deletionTimestamp"):
        # Garbage collection deletes the pod when the job has left its nodes.
        return None
    is_wanted = node is not None and not is_going(node)
    if pod is None:
        # Nobody makes pods on a Node that is drained: not even one that comes back by itself.
        is_open = node is not None and is_wanted and not (node.get("spec") or {}).get("unschedulable")
        return Create(body(job, node)) if node is not None and is_open and not is_past(job, now) else None
    is_there = node is not None and (pod.get("spec") or {}).get("nodeName") == node["metadata"]["name"]
    if (is_wanted and is_there) or pod["metadata"].get("deletionTimestamp"):
        return None
    return Delete(pod)


def body(job: Object, node: Object) -> Object:
    """The pod of a SlurmJob, owned by it; namespaces that allow only restricted pods allow it."""
    about, form = job["metadata"], _form(job)
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    owner = {
        "apiVersion": SLURMJOBS.api_version,
        "kind": SLURMJOBS.kind,
        "name": about["name"],
        "uid": about["uid"],
        "controller": True,
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": pod_name(job),
            "namespace": about["namespace"],
            "labels": {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY},
            "annotations": {labels.ANNOTATION_VIRTUAL_POD_SHOWS: about["name"]},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node["metadata"]["name"],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            # It goes with its SlurmJob, and with nothing else.
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": form.container if form is not None else "",
                    "image": "no-image",
                    "securityContext": restricted,
                }
            ],
        },
    }


def _form(job: Object) -> PodForm | None:
    owner = controller_of(job)
    return _FORMS.get((str(owner.get("apiVersion", "")).partition("/")[0], str(owner.get("kind"))))
