"""Keeps the pods of SlurmJobs: reads what their plans need, and writes what these say.

An API server that refuses a pod (a quota, an admission rule) keeps nothing else of the job from its course. A log pod
that ends before its job is replaced; Secrets are not watched, so that of a pod which does not start is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.files import JobCopies, JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.jobs.tenants import Grant
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.copies import orders
from slinky_operator.pod_programs.joblogs.copies.orders import Copy
from slinky_operator.reconcile.secrets import OLD, OLD_IN_TROUBLE, SecretReader
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.model.job_files import is_collecting, needs_preparation
from slinky_operator.slurmjob.model.news import FilesReport, LogsReport
from slinky_operator.slurmjob.nodes import Nodes
from slinky_operator.slurmjob.pods import (
    bodies,
    copy_pod,
    copy_routes,
    log_plan,
    log_pod,
    own_objects,
    pod_state,
    routes,
)
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.copy_plan import DEADLINE, CopyPlan, CopySnapshot, plan
from slinky_operator.slurmjob.pods.copy_routes import CopyContext
from slinky_operator.slurmjob.pods.log_facts import End, Facts, end_of, of
from slinky_operator.slurmjob.pods.log_writer import LogMemory, LogWriter
from slinky_operator.slurmjob.pods.own_objects import NotOurs
from slinky_operator.slurmjob.pods.routes import Route
from slurm_client import JobSpec
from slurm_client.models import Job as SlurmRecord

REFUSED_S: Final = 60.0
"""Seconds until a pod that the API server has refused is tried again."""

NAME_TAKEN_S: Final = 5.0
"""The same where an object of that name may just be being collected."""

GIVE_UP_S: Final = 900.0
"""Seconds after the end of a job for which its output is tried to be reached."""

_NO_SERVER: Final = Route(why="no server is needed")


async def server_key(secrets: SecretReader, cluster: Cluster) -> bytes:
    """The key of a Cluster's job log servers; empty if it is not known. It is in no other namespace."""
    name = naming.job_logs_key(cluster.name)
    for age in (OLD, OLD_IN_TROUBLE):
        source = (await secrets.read(cluster.namespace, (name,), older_than=age))[name]
        if source.exists and source.cluster_uid == cluster.uid:
            return source.data.get(naming.JOB_LOGS_KEY, b"")
    return b""


@dataclass(slots=True)
class PodUpkeep:
    """Keeps the pods of all SlurmJobs: the one with the output, and those that copy files.

    Parameters
    ----------
    kube
        The API server.
    secrets
        Reads keys of Clusters.
    nodes
        NodeSets, and the pods of nodes.
    image
        The operator's own.
    pods
        Cache of the pods; what it shows is read again before anything is deleted.
    """

    kube: Kube
    secrets: SecretReader
    nodes: Nodes
    image: Image
    pods: Store
    _logs: dict[str, LogMemory] = field(default_factory=dict)

    def forget(self, uid: str) -> None:
        """Forget a SlurmJob that is gone."""
        _ = self._logs.pop(uid, None)

    def pod_gone(self, uid: str) -> None:
        """The log pod of a SlurmJob is gone: it is made again in the next pass, while the job goes on."""
        memory = self._logs.get(uid)
        if memory is not None:
            memory.losses, memory.is_written = memory.losses + 1, False

    async def follow(
        self,
        job: SlurmJob,
        status: SlurmJobStatus,
        records: Sequence[SlurmRecord],
        cluster: Cluster | None,
        moment: datetime,
    ) -> LogsReport | None:
        """Bring pod and Secret to what is known of a job; None if there is nothing to do about them.

        Parameters
        ----------
        job
            The SlurmJob.
        status
            What is about to be written into its status.
        records
            All that Slurm has of the job now.
        cluster
            Its Cluster; None if it is gone.
        moment
            The time.

        Raises
        ------
        KubeError
            The API server failed, or was overtaken by another writer.
        """
        logs = status.logs
        end = end_of(status)
        # A job that is not submitted again has no number, but its pod has the output of the job before.
        is_none = status.job_id is None and end is None
        if job.spec.logs is None or logs is None or job.deleting or is_none:
            return None
        if logs.is_complete:
            return await self._if_gone(job, status)
        memory = self._logs.setdefault(job.uid, LogMemory())
        attempt = status.submission.attempt if status.submission is not None else 0
        job = job.model_copy(update={"status": status})
        memory.facts = of(records, logs.task) or _still(memory.facts, job)
        may_end = end is not None or attempt >= job.spec.backoff_limit
        report = await self._show_log(job, cluster, memory, end, may_end=may_end, now=moment.timestamp())
        if report.wake is not None and end is not None and _is_long_over(job, moment.timestamp()):
            report = replace(report, wake=None, is_complete=True)
        if report.is_complete:
            self.forget(job.uid)
        return report

    async def _if_gone(self, job: SlurmJob, status: SlurmJobStatus) -> LogsReport | None:
        """Say that the pod is gone which showed the output of a job that has ended: it is not made again.

        A pod that somebody deletes after the end is not wanted any more, and its node may be gone.
        """
        known = find(status.conditions, SlurmJobCondition.LOGS_AVAILABLE)
        name = log_pod.name_of(job.name)
        if known is None or known.status != "True" or self.pods.get(job.namespace, name) is not None:
            return None
        # A cache may not have yet what was just made.
        try:
            if await own_objects.find(self.kube, PODS, job, name) is not None:
                return None
        except NotOurs as error:
            return LogsReport(("False", Reason.LOG_POD_GONE, str(error)), is_complete=True)
        return log_plan.pod_gone(job.model_copy(update={"status": status}))

    async def _show_log(
        self, job: SlurmJob, cluster: Cluster | None, memory: LogMemory, end: End | None, *, may_end: bool, now: float
    ) -> LogsReport:
        """Bring Secret and pod to what the plan says; what the API server refuses is shown."""
        writer = LogWriter(self.kube, self.image, self.pods)
        try:
            if memory.written is None:
                memory.written = await writer.read(job)
            snapshot = log_plan.LogSnapshot(job, memory.written, memory.facts, end, may_end, now)
            reached, retry = await self._log_routes(snapshot, cluster, memory)
            planned = log_plan.plan(snapshot, reached, retry)
            if planned.file is None:
                return planned.report
            away = await writer.write(job, planned.file, memory, now)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest, NotOurs) as error:
            memory.written, memory.is_written = None, False
            return LogsReport(("False", Reason.LOG_POD_REFUSED, str(error)), _again(error))
        if planned.report.is_complete:
            return planned.report
        report = away or planned.report
        look = memory.starts.next_look(self.pods.get(job.namespace, log_pod.name_of(job.name)), now)
        return replace(report, wake=min((wait for wait in (report.wake, look) if wait is not None), default=None))

    async def _log_routes(
        self, snapshot: log_plan.LogSnapshot, cluster: Cluster | None, memory: LogMemory
    ) -> tuple[log_plan.Routes, float | None]:
        """How the job's files are reached, and in how many seconds other routes are looked for."""
        facts, job = log_plan.facts_of(snapshot), snapshot.job
        if facts is None or not log_plan.is_to_be_reached(snapshot):
            return (), memory.misses.retry(snapshot.now, may_come=False)
        volume = job.spec.logs.volume if job.spec.logs is not None else None
        pod, key = None, b""
        if cluster is not None and any(routes.needs_server(path, volume) for _, path in facts.files):
            pod, key = self._pod_of(cluster, facts.node), await server_key(self.secrets, cluster)
        context = routes.LogContext(cluster, pod, key, volume, snapshot.now, job.uid)
        reached = tuple((stream, routes.log_route(path, facts, context)) for stream, path in facts.files)
        return reached, memory.misses.retry(snapshot.now, may_come=any(route.may_come for _, route in reached))

    def _pod_of(self, cluster: Cluster, node: str) -> Object | None:
        """The slurmd pod of a node, one that is not being deleted first; None if there is none."""
        pods = self.nodes.of(cluster, node)
        return min(pods, key=lambda pod: bool(pod["metadata"].get("deletionTimestamp")), default=None)

    async def lacking(self, job: SlurmJob) -> str:
        """Name the volumes of a SlurmJob that do not exist; empty if all do.

        Raises
        ------
        KubeError
            The API server failed.
        """
        missing = [
            f"{resource.kind} {name}"
            for resource, name in dict.fromkeys(_volumes(job))
            if not await self._exists(resource, job, name)
        ]
        return f"namespace {job.namespace} has no {named(missing)}" if missing else ""

    async def _lacking_of(self, job: SlurmJob, pod: Object | None, moment: datetime) -> str:
        """Name the missing volumes that a pod may wait for; empty for one that runs."""
        is_waiting = pod is not None and pod_state.waiting_for(pod, moment) is not None
        return await self.lacking(job) if is_waiting else ""

    async def _exists(self, resource: Resource, job: SlurmJob, name: str) -> bool:
        try:
            _ = await self.kube.get(resource, name, job.namespace)
        except errors.NotFound:
            return False
        except errors.Forbidden:
            # Its pod will say so.
            return True
        return True

    async def prepare(
        self, job: SlurmJob, granted: Grant, wanted: JobSpec, cluster: Cluster, moment: datetime
    ) -> FilesReport:
        """Bring files to where the nodes of a job will read them.

        Parameters
        ----------
        job
            The SlurmJob.
        granted
            Whose job it will be.
        wanted
            What will be submitted.
        cluster
            Its Cluster.
        moment
            The time.

        Raises
        ------
        KubeError
            The API server failed, or was overtaken by another writer.
        """
        files = job.status.files or JobFilesStatus()
        before = files.prepare or JobCopies()
        name = copy_pod.name_of(job.name, copy_pod.PREPARE, before.attempts)
        try:
            pod = await own_objects.find(self.kube, PODS, job, name)
            key: bytes = b""
            server: str | Route = _NO_SERVER
            if copy_routes.prepared_by_server(job):
                key = await server_key(self.secrets, cluster)
                nodesets, of_nodes = self.nodes.nodesets_of(cluster), self.nodes.controlled(cluster)
                server = routes.shared_server(cluster, wanted.partition, nodesets, of_nodes, before.attempts)
            around = CopyContext(cluster, None, key, moment.timestamp())
            snapshot = CopySnapshot(
                items=copy_routes.preparations(job, granted, wanted, around, server),
                before=before,
                pod=pod,
                lacking=await self._lacking_of(job, pod, moment),
                now=moment,
            )
            planned = plan(snapshot)
            if planned.orders is not None:
                as_user = files.model_copy(update={"uid": granted.uid, "gid": granted.gid})
                await self._write(job, name, planned.orders, _sources(job), as_user)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest, NotOurs) as error:
            planned = _refused(before, error, is_over=False)
        told = files.model_copy(update={"prepare": planned.status})
        return FilesReport(SlurmJobCondition.PREPARED, planned.condition, told, planned.wake)

    async def collect(
        self, job: SlurmJob, status: SlurmJobStatus, cluster: Cluster | None, moment: datetime
    ) -> FilesReport | None:
        """Bring the results of a job that has ended to their volumes; None if there is nothing to do about them.

        Parameters
        ----------
        job
            The SlurmJob.
        status
            What is about to be written into its status.
        cluster
            Its Cluster; None if it is gone.
        moment
            The time.

        Raises
        ------
        KubeError
            The API server failed, or was overtaken by another writer.
        """
        job = job.model_copy(update={"status": status})
        if end_of(status) is None or not is_collecting(job):
            return None
        files = status.files or JobFilesStatus()
        before = files.results or JobCopies()
        kind = SlurmJobCondition.RESULTS_COLLECTED
        if not status.nodes and not before.attempts:
            done = before.model_copy(update={"is_complete": True})
            words = "the job ended without having run"
            return FilesReport(
                kind, ("True", Reason.NOTHING_TO_COPY, words), files.model_copy(update={"results": done})
            )
        finished = find(status.conditions, SlurmJobCondition.FINISHED)
        ended = (finished.last_transition_time if finished is not None else None) or moment
        name = copy_pod.name_of(job.name, copy_pod.RESULTS, before.attempts)
        try:
            pod = await own_objects.find(self.kube, PODS, job, name)
            snapshot = CopySnapshot(
                items=copy_routes.results(job, await self._surroundings(job, cluster, moment)),
                before=before,
                pod=pod,
                lacking=await self._lacking_of(job, pod, moment),
                now=moment,
                ended=ended,
            )
            planned = plan(snapshot)
            if planned.orders is not None:
                await self._write(job, name, planned.orders, _claims(job), files)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest, NotOurs) as error:
            planned = _refused(before, error, is_over=moment - ended > DEADLINE)
        return FilesReport(kind, planned.condition, files.model_copy(update={"results": planned.status}), planned.wake)

    async def _surroundings(self, job: SlurmJob, cluster: Cluster | None, moment: datetime) -> CopyContext:
        known, pod, key = job.status.files or JobFilesStatus(), None, b""
        if cluster is not None and copy_routes.needs_server(job):
            pod, key = self._pod_of(cluster, known.node), await server_key(self.secrets, cluster)
        return CopyContext(cluster, pod, key, moment.timestamp())

    async def _write(
        self,
        job: SlurmJob,
        name: str,
        copies: tuple[Copy, ...],
        volumes: Mapping[int, dict[str, Any]],
        files: JobFilesStatus,
    ) -> None:
        """Write the Secret first: a pod never starts with older orders than those that its annotation names."""
        text = orders.text(copies)
        pod = await own_objects.find(self.kube, PODS, job, name)
        if pod is not None and copy_pod.has_orders(pod, text):
            return
        await own_objects.put_secret(self.kube, job, bodies.secret(job, name, orders.NAME, text))
        if pod is None:
            of_pod = _of(copies, volumes)
            uid, gid = files.uid or 0, files.gid or 0
            _ = await self.kube.create(PODS, copy_pod.pod(job, name, copies, of_pod, self.image, uid, gid))
        else:
            await own_objects.change(self.kube, PODS, pod, bodies.mark(text))


def _refused(before: JobCopies, error: Exception, *, is_over: bool) -> CopyPlan:
    status = before.model_copy(update={"is_complete": True}) if is_over else before
    return CopyPlan(("False", Reason.COPY_POD_REFUSED, str(error)), status, wake=None if is_over else _again(error))


def _volumes(job: SlurmJob) -> list[tuple[Resource, str]]:
    """Volumes that are needed from now on."""
    found = []
    for one in job.spec.prepare if needs_preparation(job) else ():
        volume = one.volume
        if volume.persistent_volume_claim is not None:
            found.append((PERSISTENTVOLUMECLAIMS, volume.persistent_volume_claim.claim_name))
        if volume.config_map is not None:
            found.append((CONFIGMAPS, volume.config_map.name))
        if volume.secret is not None:
            found.append((SECRETS, volume.secret.secret_name))
    wanted = [result.volume for result in job.spec.results if result.when != "Never"]
    return [*found, *((PERSISTENTVOLUMECLAIMS, one.persistent_volume_claim.claim_name) for one in wanted)]


def _sources(job: SlurmJob) -> dict[int, dict[str, Any]]:
    """Sources of the volumes that files are prepared from."""
    return {index: one.volume.to_dict() for index, one in enumerate(job.spec.prepare)}


def _claims(job: SlurmJob) -> dict[int, dict[str, Any]]:
    """Sources of the volumes that results are written to."""
    return {index: one.volume.to_dict() for index, one in enumerate(job.spec.results)}


def _of(copies: Iterable[Copy], volumes: Mapping[int, dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The volumes that copies use, by the numbers of their folders."""
    used = {folder for copy in copies for folder in (copy.source.folder, copy.target.folder)}
    return [(index, source) for index, source in volumes.items() if copy_pod.volume_folder(index) in used]


def _again(error: Exception) -> float:
    """Seconds until what the API server has refused is tried again."""
    # An earlier SlurmJob of the same name may just be being collected.
    return NAME_TAKEN_S if isinstance(error, NotOurs) else REFUSED_S


def _still(facts: Facts | None, job: SlurmJob) -> Facts | None:
    """What was known of the job, if it is the same one; a submission after it has another number."""
    return facts if facts is not None and facts.job.partition("_")[0] == str(job.status.job_id) else None


def _is_long_over(job: SlurmJob, now: float) -> bool:
    ended = job.status.end_time
    return ended is None or now - ended.timestamp() > GIVE_UP_S
