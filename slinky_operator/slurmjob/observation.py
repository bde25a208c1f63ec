"""From caches, the list of jobs and the keys of a Cluster to the snapshot of one SlurmJob."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find, is_true
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobLogPod, JobLogStatus, SlurmJob
from slinky_operator.jobs import external, tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import Submission
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.reconcile.cached.job_nodes import Nodes
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.namespaces import NamespaceReader
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurmjob.model import dependencies, output_path
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Obstacle, Snapshot
from slinky_operator.slurmjob.model.stages import late_calls
from slinky_operator.slurmjob.polling import job_list
from slinky_operator.slurmjob.polling.job_list import JobList
from slinky_operator.slurmjob.polling.queues import Queues
from slinky_operator.slurmjob.translations import Translations
from slurm_client import JobSpec

CLUSTER_OF_JOB: Final = "cluster of job"
"""Index of the SlurmJob cache over `<namespace>/<cluster>`; of those whose job has not ended."""

UID: Final = "uid"
"""Index of the SlurmJob cache over uids."""

AWAITED: Final = "awaited"
"""Index of the SlurmJob cache over `<namespace>/<SlurmJob>` that others wait for."""


def cluster_of(obj: Object) -> str:
    """Index value of the Cluster that a SlurmJob names."""
    spec = obj.get("spec") if isinstance(obj.get("spec"), dict) else {}
    namespace = spec.get("clusterNamespace") if isinstance(spec, dict) else None
    name = spec.get("clusterName") if isinstance(spec, dict) else None
    return f"{namespace or obj['metadata'].get('namespace')}/{name}"


def _by_cluster(obj: Object) -> list[str]:
    # One whose submission had no answer is kept for the job that may come late.
    is_awaited = bool(obj["metadata"].get("finalizers")) and late_calls.may_come(obj.get("status") or {})
    return [cluster_of(obj)] if is_awaited or not dependencies.has_ended(obj) else []


def _by_number(obj: Object) -> list[str]:
    status = obj.get("status") or {}
    numbers = {status.get("jobId"), *(status.get("failedAttempts") or ())} - {None}
    return [job_list.number_in(cluster_of(obj), number) for number in numbers]


def _by_uid(obj: Object) -> list[str]:
    return [str(obj["metadata"].get("uid") or "")]


def _by_awaited(obj: Object) -> list[str]:
    return [f"{obj['metadata'].get('namespace')}/{name}" for name in dependencies.names(obj)]


INDEXES_OF_JOBS: Final[Mapping[str, Indexer]] = {
    CLUSTER_OF_JOB: _by_cluster,
    job_list.NUMBER: _by_number,
    UID: _by_uid,
    AWAITED: _by_awaited,
}
"""Indexes the SlurmJob cache must have."""

_OBSTACLES: Final = frozenset(
    {Reason.CLUSTER_NOT_FOUND, Reason.CLUSTER_NOT_READY, Reason.CLUSTER_GONE, Reason.SLURM_UNREACHABLE}
)
"""Reasons why a job waits that are shown only of a spec without fault."""


def _waits_without_fault(job: SlurmJob, granted: tenants.Grant | tenants.Refused, obstacle: Obstacle | None) -> bool:
    """Whether nothing can be submitted now, and an earlier pass found no fault: scripts are not read every minute."""
    known = find(job.status.conditions, SlurmJobCondition.SUBMITTED)
    if known is None or known.observed_generation != job.metadata.generation or job.status.submission is not None:
        return False
    if isinstance(granted, tenants.Refused):
        return known.reason in _OBSTACLES | {Reason.JOBS_NOT_ALLOWED}
    return obstacle is not None and known.reason in _OBSTACLES


def _restricted(job: SlurmJob, submission: Submission, granted: tenants.Grant | tenants.Refused) -> tuple[JobSpec, ...]:
    """The components of a job within what is granted.

    Raises
    ------
    InvalidJob
        One of them is not.
    """
    given = (job.spec.external.components if job.spec.external is not None else None) or ()
    if not isinstance(granted, tenants.Grant):
        return submission.components
    found: list[JobSpec] = []
    for number, (component, wanted) in enumerate(zip(given, submission.components, strict=True)):
        try:
            found.append(tenants.restrict(wanted, granted))
        except InvalidJob as error:
            raise external.in_component(error, number, component) from None
    return tuple(found)


Decided = tuple[Submission | InvalidJob | None, JobLogStatus | None]
"""What would be submitted, and what that says of its output."""


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    kube
        Reads Namespaces, and scripts that the cache has left out.
    jobs
        Their cache, with `INDEXES_OF_JOBS`.
    clusters
        Reads Clusters.
    slurm
        The Slurm of every Cluster.
    queues
        Their jobs.
    nodes
        Their nodes.
    now, clock
        The wall clock, and monotonic seconds.
    """

    def __init__(
        self,
        kube: Getter,
        jobs: Store,
        clusters: ClusterReader,
        slurm: ClientMap,
        queues: Queues,
        nodes: Nodes,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._namespaces = NamespaceReader(kube, clock)
        self._jobs = jobs
        self._clusters = clusters
        self._slurm = slurm
        self._list = JobList(queues, jobs, now)
        self._nodes = nodes
        self._now = now
        self._translations = Translations(kube)

    def entry(self, cluster: Cluster) -> ClusterClient | None:
        """The connection to a Cluster's Slurm."""
        return self._slurm.get(cluster.uid)

    async def observe(self, obj: Object, job: SlurmJob) -> Snapshot:
        """Read everything that a pass needs.

        Raises
        ------
        KubeError
            A Namespace could not be read, for another reason than a missing right.
        """
        cluster = await self._clusters.find(job.cluster_key)
        granted = await self._granted(cluster, job)
        obstacle = self._obstacle(cluster, job)
        waits = _waits_without_fault(job, granted, obstacle)
        submission, logs = (None, job.status.logs) if waits else await self._submission(job, cluster, granted)
        looked, listed_at = None, None
        second_jobs: tuple[Seen, ...] = ()
        if cluster is not None and obstacle is None:
            looked = await self._list.looked(cluster, job)
            if late_calls.is_looked_for(job):
                listed_at, second_jobs = self._list.second_jobs(cluster, job, looked)
        return Snapshot(
            job=job,
            now=self._now(),
            cluster=cluster,
            granted=granted,
            obstacle=obstacle,
            looked=looked,
            listed_at=listed_at,
            second_jobs=second_jobs,
            keeps_history=cluster is not None and (cluster.spec.external or cluster.spec.accounting is not None),
            submission=submission,
            logs=logs,
            dependency=self._dependency(obj, job),
        )

    async def _granted(self, cluster: Cluster | None, job: SlurmJob) -> tenants.Grant | tenants.Refused:
        if cluster is None:
            return tenants.Refused("there is no such Cluster")
        labels = await self._namespaces.labels(job.namespace) if tenants.needs_labels(cluster) else None
        return tenants.grant(cluster, job.namespace, labels, job.spec.user)

    def _obstacle(self, cluster: Cluster | None, job: SlurmJob) -> Obstacle | None:
        if cluster is None:
            return self._without_cluster("/".join(job.cluster_key), job)
        if cluster.deleting:
            return Obstacle(Reason.CLUSTER_GONE, f"Cluster {cluster.namespace}/{cluster.name} is being deleted")
        entry = self._slurm.get(cluster.uid)
        if entry is None or entry.contact.state is ContactState.CONNECTING:
            where = f"{cluster.namespace}/{cluster.name}"
            return Obstacle(Reason.CLUSTER_NOT_READY, f"there is no connection to the Slurm of Cluster {where} yet")
        if entry.contact.state is not ContactState.READY:
            return Obstacle(Reason.SLURM_UNREACHABLE, f"Slurm does not answer: {entry.contact.why}")
        return None

    def _without_cluster(self, name: str, job: SlurmJob) -> Obstacle | None:
        if not self._clusters.is_shown(job.cluster_key):
            words = (
                f"Cluster {name} is in a namespace that this operator does not watch: watch it again, or set "
                "cancelPolicy: Keep to give up the job"
            )
            return Obstacle(Reason.CLUSTER_NOT_READY, words)
        if not self._clusters.exists(job.cluster_key):
            return None
        return Obstacle(Reason.CLUSTER_NOT_READY, f"Cluster {name} has an invalid spec")

    async def _submission(
        self, job: SlurmJob, cluster: Cluster | None, granted: tenants.Grant | tenants.Refused
    ) -> Decided:
        status = job.status
        if job.deleting or is_true(status.conditions, SlurmJobCondition.FINISHED):
            return None, status.logs
        is_followed = status.submission is not None and status.submission.failure is not None
        if status.job_id is not None and not (job.spec.backoff_limit or is_followed):
            return None, status.logs
        user = granted.user if isinstance(granted, tenants.Grant) else ""
        translated = await self._translations.of(job, user, self._now())
        if isinstance(translated, InvalidJob):
            return translated, status.logs
        return self._decide(job, cluster, granted, translated)

    def _decide(
        self, job: SlurmJob, cluster: Cluster | None, granted: tenants.Grant | tenants.Refused, submission: Submission
    ) -> Decided:
        """Bring what is asked for to what is granted, and to where its output is reached."""
        logs = job.status.logs
        try:
            wanted = submission.job
            if isinstance(granted, tenants.Grant):
                wanted = tenants.restrict(wanted, granted)
            shown = job.spec.logs or (JobLogPod() if any(result.path is None for result in job.spec.results) else None)
            if shown is not None:
                not_served = self._not_served(cluster, wanted.partition)
                name = secrets.token_hex(output_path.NAME_BYTES)
                wanted, logs = output_path.decide(shown, wanted, submission.array, logs, not_served, name)
            dependencies.check(wanted.dependency, is_waiting=bool(job.spec.depends_on))
            components = _restricted(job, submission, granted)
        except InvalidJob as error:
            return error, logs
        return replace(submission, job=wanted, components=components), logs

    def _not_served(self, cluster: Cluster | None, partition: str | None) -> str:
        """Why a job must not write to the folder of the job log server."""
        if cluster is None:
            return "there is no such Cluster"
        node_sets, pods = self._nodes.nodesets_of(cluster), self._nodes.pods_of(cluster)
        return output_path.why_not_served(cluster, partition, node_sets, pods)

    def _dependency(self, obj: Object, job: SlurmJob) -> dependencies.Ready | dependencies.Wait:
        if not job.spec.depends_on or job.deleting:
            return dependencies.Ready("")
        begun = job.status.submission
        is_met = begun is not None and begun.failure is not None and bool(job.status.nodes)
        return dependencies.resolve(obj, lambda name: self._jobs.get(job.namespace, name), is_met=is_met)

    def forget_job(self, uid: str) -> None:
        """Forget a SlurmJob that is gone."""
        self._translations.forget(uid)
