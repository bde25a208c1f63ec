"""Keeps the pods that copy the files of SlurmJobs: reads what their plan needs, and writes what it says.

An API server that refuses a pod (a quota, an admission rule) keeps nothing else of the job from its course.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.files import JobCopies, JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.jobs.tenants import Grant
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.copies import orders
from slinky_operator.pod_programs.joblogs.copies.orders import Copy
from slinky_operator.reconcile.cached.job_nodes import Nodes
from slinky_operator.reconcile.secrets import SecretReader, job_logs_key
from slinky_operator.reconcile.text import named
from slinky_operator.slurmjob.model.job_files import is_collecting, needs_preparation
from slinky_operator.slurmjob.model.news import FilesReport
from slinky_operator.slurmjob.pods import bodies, copy_pod, copy_routes, own_objects, pod_state, routes
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.copy_plan import DEADLINE, CopyPlan, CopySnapshot, plan
from slinky_operator.slurmjob.pods.copy_routes import CopyContext
from slinky_operator.slurmjob.pods.log_facts import end_of
from slinky_operator.slurmjob.pods.own_objects import NotOurs, retry_after
from slinky_operator.slurmjob.pods.routes import Route
from slurm_client import JobSpec

_NO_SERVER: Final = Route(why="no server is needed")


@dataclass(frozen=True, slots=True)
class CopyUpkeep:
    """Keeps the pods that copy files of all SlurmJobs.

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
    """

    kube: Kube
    secrets: SecretReader
    nodes: Nodes
    image: Image

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
                key = await job_logs_key(self.secrets, cluster)
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
            pod, key = self.nodes.pod_of(cluster, known.node), await job_logs_key(self.secrets, cluster)
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
    return CopyPlan(
        ("False", Reason.COPY_POD_REFUSED, str(error)), status, wake=None if is_over else retry_after(error)
    )


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
