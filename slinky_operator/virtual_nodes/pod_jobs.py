"""Pods on virtual Nodes, and the SlurmJobs that they own or show: the caches of both, and how each is found.

The owner reference says whose a SlurmJob is. Its name says for which pod it was made: another pod may have taken it
over since.
"""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.informer import prune_managed_fields
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.writes.parts import controller_of

OF_POD: Final = "of pod"
"""Index of the SlurmJob cache over the uid of the pod that owns a SlurmJob."""

SHOWING: Final = "showing"
"""Index of the pod cache over `<namespace>/<SlurmJob>` of pods that show a SlurmJob, and have none of their own."""

_PREFIX: Final = "pod-"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def job_name(pod_uid: str) -> str:
    """Name of the SlurmJob that is made for a pod."""
    return f"{_PREFIX}{pod_uid}"


def owner_pod(job: Object) -> str:
    """Uid of the pod that owns a SlurmJob; empty if none does."""
    for reference in job["metadata"].get("ownerReferences") or ():
        if (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Pod") and reference.get("controller"):
            return str(reference.get("uid") or "")
    return ""


def job_of(jobs: Store, pod: Object) -> Object | None:
    """The SlurmJob that a pod owns, from the cache of SlurmJobs; None if there is none."""
    namespace = pod["metadata"].get("namespace")
    found = jobs.find(OF_POD, str(pod["metadata"].get("uid")))
    return next((job for job in found if job["metadata"].get("namespace") == namespace), None)


def shown_name(pod: Object) -> str:
    """Name of the SlurmJob that a pod shows, having none of its own; empty for a pod that runs as a job itself.

    Annotations can be added later: a pod that has the operator's finalizer has a job, and stays with it.
    """
    metadata = pod["metadata"]
    if labels.FINALIZER_VIRTUAL_POD in (metadata.get("finalizers") or ()):
        return ""
    return str((metadata.get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_POD_SHOWS) or "")


def shown_job(jobs: Store, pod: Object) -> Object | None:
    """The SlurmJob that a pod shows and belongs to, from the cache of SlurmJobs; None if there is none."""
    job = jobs.get(pod["metadata"].get("namespace"), shown_name(pod))
    return job if job is not None and controller_of(pod).get("uid") == job["metadata"].get("uid") else None


def by_shown(pod: Object) -> list[str]:
    """Indexer for `SHOWING`."""
    name = shown_name(pod)
    return [f"{pod['metadata'].get('namespace')}/{name}"] if name else []


def _by_pod(job: Object) -> list[str]:
    uid = owner_pod(job)
    return [uid] if uid else []


def _prune_pod(obj: Object) -> None:
    """Shorten a pod, in place: of one that has ended only what it shows is read."""
    prune_managed_fields(obj)
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    if _APPLIED in annotations:
        obj["metadata"] = {**metadata, "annotations": {k: v for k, v in annotations.items() if k != _APPLIED}}
    if (obj.get("status") or {}).get("phase") in _ENDED:
        containers = [
            {key: one[key] for key in ("name", "image") if key in one} for one in spec.get("containers") or ()
        ]
        kept = {key: spec[key] for key in ("nodeName", "restartPolicy") if key in spec}
        obj["spec"] = {**kept, "containers": containers}


PODS_CACHE: Final = CacheSpec(VIRTUAL_PODS, prune=_prune_pod, bound_to=VIRTUAL_NODES)
"""The cache of pods that are bound to virtual Nodes. Who asks for it asks for `directory.CACHE`, too."""

JOBS_CACHE: Final = CacheSpec(SLURMJOBS, {OF_POD: _by_pod}, prune=prune_job, mirrored=True)
"""The cache of SlurmJobs, with `OF_POD`."""
