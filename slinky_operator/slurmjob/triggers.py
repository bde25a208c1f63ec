"""What wakes a SlurmJob: itself, its Cluster, those that it waits for, its job in Slurm, and its pod with output."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, JOB_LOG_PODS, SLURMJOBS
from slinky_operator.reconcile.triggers import Triggers, is_same, written_by_users
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurmjob.model.dependencies import has_ended
from slinky_operator.slurmjob.observation import AWAITED, CLUSTER_OF_JOB, UID
from slinky_operator.slurmjob.pods import bodies
from slinky_operator.slurmjob.polling.queues import Queues


class SlurmJobTriggers:
    """Handlers of caches and of Clusters' Slurm: each returns the keys of SlurmJobs.

    Parameters
    ----------
    jobs
        Their cache, with `observation.INDEXES_OF_JOBS`.
    slurm
        The Slurm of every Cluster.
    queues
        The jobs of Clusters.
    pod_gone
        Called with the uid of a SlurmJob whose pod with output is gone.
    """

    def __init__(
        self,
        jobs: Store,
        slurm: ClientMap,
        queues: Queues,
        pod_gone: Callable[[str], None],
    ) -> None:
        self._jobs = jobs
        self._slurm = slurm
        self._queues = queues
        self._pod_gone = pod_gone

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={SLURMJOBS: self.job, CLUSTERS: self.cluster, JOB_LOG_PODS: self.log_pod},
            contact=self.contact,
            others=(self._subscribe,),
        )

    def job(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of SlurmJobs: their own key, and those of others that wait for a change of its number or its end."""
        obj = new or old
        if obj is None:
            return
        if not is_same(old, new, _of_interest):
            yield key_of(obj)
        if not is_same(old, new, _of_others):
            namespace, name = key_of(obj)
            for waiting in self._jobs.find(AWAITED, f"{namespace}/{name}"):
                yield key_of(waiting)

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: all SlurmJobs of one whose tenants, or whose being, has changed."""
        if is_same(old, new, written_by_users):
            return
        obj = new or old
        if obj is None:
            return
        if new is None:
            self._queues.forget(str(obj["metadata"]["uid"]))
        yield from self._of_cluster(*key_of(obj))

    def log_pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods with output, or that copy files: the SlurmJob of one that is gone, or has ended."""
        if old is None or (new is not None and (_has_ended(old) or not _has_ended(new))):
            return
        for uid in bodies.owners(old):
            for job in self._jobs.find(UID, uid):
                # A pod of another namespace is nobody's here, whatever owner it names.
                if job["metadata"].get("namespace") != old["metadata"].get("namespace"):
                    continue
                if new is None:
                    self._pod_gone(uid)
                yield key_of(job)

    def contact(self, cluster_uid: str) -> Iterable[Key]:
        """Handler of connections to Slurm."""
        self._queues.resume(cluster_uid)
        slurm = self._slurm.get(cluster_uid)
        if slurm is not None:
            yield from self._of_cluster(slurm.namespace, slurm.name)

    def _of_cluster(self, namespace: str, name: str) -> Iterable[Key]:
        return self._jobs.find_keys(CLUSTER_OF_JOB, f"{namespace}/{name}")

    def _subscribe(self, call: Callable[[Key], None]) -> None:
        def wake(uid: str) -> None:
            for job in self._jobs.find(UID, uid):
                call(key_of(job))

        self._queues.subscribe(wake)


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def _of_interest(obj: Object) -> tuple[Any, ...]:
    """What others than the operator write, and what a step of its own leads on from."""
    status = obj.get("status") or {}
    known = status.get("submission"), status.get("jobId"), has_ended(obj)
    is_cancelled = labels.is_true(obj["metadata"].get("annotations"), labels.ANNOTATION_CANCEL)
    return (*written_by_users(obj), obj["metadata"].get("finalizers"), is_cancelled, *known)


def _of_others(obj: Object) -> tuple[Any, ...]:
    status = obj.get("status") or {}
    limit = (obj.get("spec") or {}).get("backoffLimit")
    return status.get("jobId"), status.get("state"), has_ended(obj), limit
