"""The SlurmJobs of pods: as they are made, left behind by an outage, and taken over by the next pod. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SLURMJOBS
from slinky_operator.reconcile.text import stamp
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.virtual_nodes.pod_jobs import job_name
from slinky_operator.virtual_nodes.pods.pod_owners import is_of_job, place
from slinky_operator.virtual_nodes.pods.projection import is_finished, is_given_up
from slinky_operator.virtual_nodes.pods.snapshot import Place

LEFT: Final = "left"
"""Index of the SlurmJob cache over `<namespace>/<place of the pod>`, of those that an outage has left."""

KEPT_S: Final = 7 * 24 * 3600
"""Seconds after the end of its job for which a SlurmJob is kept that an outage has left, and no pod has taken over."""


def by_place(job: Object) -> list[str]:
    """Indexer for `LEFT`."""
    metadata = job["metadata"]
    annotations = metadata.get("annotations") or {}
    where = annotations.get(labels.ANNOTATION_VIRTUAL_POD_CONTROLLER)
    if not where or not annotations.get(labels.ANNOTATION_VIRTUAL_POD_LEFT) or metadata.get("ownerReferences"):
        return []
    return [] if metadata.get("deletionTimestamp") else [f"{metadata.get('namespace')}/{where}"]


def fits(job: Object, pod: Object, where: Place) -> bool:
    """Whether a pod may take over a SlurmJob that was left for its place.

    A Job's pods are all alike, and the scheduler may choose another Node for the next one: the work is the same. The
    next pod of another controller may be another by now, and counts only on the Node of the partition.
    """
    spec = job.get("spec") or {}
    same_cluster = (spec.get("clusterNamespace"), spec.get("clusterName")) == where.node.cluster
    return same_cluster and (is_in(job, where) or is_of_job(pod))


def is_in(job: Object, where: Place) -> bool:
    """Whether a SlurmJob runs in the partition of the Node that a pod is bound to."""
    return bool((job.get("spec") or {}).get("partition") == where.node.partition)


def made_for(pod: Object, where: Place, fields: Object, user: str | None) -> Object:
    """The SlurmJob of a pod, owned by it."""
    metadata = pod["metadata"]
    namespace, name = where.node.cluster
    controller = place(pod)
    annotations = {
        labels.ANNOTATION_VIRTUAL_POD_NAME: metadata["name"],
        **({labels.ANNOTATION_VIRTUAL_POD_CONTROLLER: controller} if controller else {}),
    }
    return {
        "apiVersion": SLURMJOBS.api_version,
        "kind": SLURMJOBS.kind,
        "metadata": {
            "name": job_name(metadata["uid"]),
            "namespace": metadata["namespace"],
            "labels": {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_VIRTUAL_POD: metadata["uid"]},
            "annotations": annotations,
            "ownerReferences": [_owner(pod)],
        },
        "spec": {
            **fields,
            "clusterName": name,
            "clusterNamespace": namespace,
            "logs": {"pod": False},
            **({"user": user} if user is not None else {}),
        },
    }


def detached(why: str, now: datetime) -> Object:
    """The patch that leaves a SlurmJob without its pod."""
    return {
        "metadata": {
            "ownerReferences": None,
            "annotations": {labels.ANNOTATION_VIRTUAL_POD_LEFT: f"{stamp(now)}: pod deleted {why}"},
        },
        "spec": {"ttlSecondsAfterFinished": KEPT_S},
    }


def kept(pod: Object, job: Object, why: str) -> str:
    """What an Event says of a SlurmJob that is left without its pod: who has the job now, and how to cancel it."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    status = stored_status(SlurmJobStatus, job)
    is_over = is_finished(status) and not is_given_up(status)
    state = f"has ended, and SlurmJob {name} keeps its result" if is_over else f"keeps running as SlurmJob {name}"
    heir = "which the next pod of its controller takes over" if place(pod) else "since no controller makes another pod"
    cancel = "" if is_over else f". To cancel it: kubectl delete slurmjob {name} -n {namespace}"
    return f"pod {pod['metadata']['name']} was deleted {why}; its Slurm job {state}, {heir}{cancel}"


def taken_over(pod: Object) -> Object:
    """The patch that gives a SlurmJob to a pod."""
    metadata = pod["metadata"]
    annotations: dict[str, Any] = {
        labels.ANNOTATION_VIRTUAL_POD_LEFT: None,
        labels.ANNOTATION_VIRTUAL_POD_NAME: metadata["name"],
    }
    return {
        "metadata": {
            "labels": {labels.LABEL_VIRTUAL_POD: metadata["uid"]},
            "annotations": annotations,
            "ownerReferences": [_owner(pod)],
        },
        "spec": {"ttlSecondsAfterFinished": None},
    }


def _owner(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
