"""Reads what the plan about copies needs, and writes what it says.

An API server that refuses the pod (a quota, an admission rule) keeps nothing else of the job from its course.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.files import JobCopies, JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.joblogs.copies import orders
from slinky_operator.joblogs.copies.orders import Copy
from slinky_operator.jobs.tenants import Grant
from slinky_operator.kube import errors
from slinky_operator.kube.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.text import named
from slinky_operator.slurmjob import own_objects
from slinky_operator.slurmjob.files import bodies, pods, ways
from slinky_operator.slurmjob.files.facts import is_collecting, needs_preparation
from slinky_operator.slurmjob.files.plan import DEADLINE, Plan, Snapshot, plan
from slinky_operator.slurmjob.files.ways import Surroundings
from slinky_operator.slurmjob.logs.bodies import Image, digest
from slinky_operator.slurmjob.logs.facts import end_of
from slinky_operator.slurmjob.logs.nodes import Nodes
from slinky_operator.slurmjob.logs.streams import Way
from slinky_operator.slurmjob.logs.upkeep import server_key
from slinky_operator.slurmjob.model.pod_reports import FilesReport
from slinky_operator.slurmjob.own_objects import Kube, NotOurs
from slurm_client import JobSpec

REFUSED_S: Final = 60.0
"""Seconds until a pod that the API server has refused is tried again."""

_NO_SERVER: Final = Way(why="no server is needed")

NAME_TAKEN_S: Final = 5.0
"""The same where an object of that name may just be being collected."""


@dataclass(frozen=True, slots=True)
class FileUpkeep:
    """Keeps the copies of all SlurmJobs.

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
        name = bodies.name_of(job.name, bodies.PREPARE, before.attempts)
        try:
            pod = await own_objects.find(self.kube, PODS, job, name)
            key: bytes = b""
            server: str | Way = _NO_SERVER
            if ways.prepared_by_server(job):
                key = await server_key(self.secrets, cluster)
                nodesets, of_nodes = self.nodes.nodesets_of(cluster), self.nodes.controlled(cluster)
                server = ways.shared_server(cluster, wanted.partition, nodesets, of_nodes, before.attempts)
            around = Surroundings(cluster, None, key, moment.timestamp())
            snapshot = Snapshot(
                items=ways.preparations(job, granted, wanted, around, server),
                before=before,
                pod=pod,
                lacking=await self.lacking(job) if pod is not None and pods.waits(pod, moment) is not None else "",
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
            words = "the job has ended without having run"
            return FilesReport(
                kind, ("True", Reason.NOTHING_TO_COPY, words), files.model_copy(update={"results": done})
            )
        finished = find(status.conditions, SlurmJobCondition.FINISHED)
        ended = (finished.last_transition_time if finished is not None else None) or moment
        name = bodies.name_of(job.name, bodies.RESULTS, before.attempts)
        try:
            pod = await own_objects.find(self.kube, PODS, job, name)
            snapshot = Snapshot(
                items=ways.results(job, await self._surroundings(job, cluster, moment)),
                before=before,
                pod=pod,
                lacking=await self.lacking(job) if pod is not None and pods.waits(pod, moment) is not None else "",
                now=moment,
                ended=ended,
            )
            planned = plan(snapshot)
            if planned.orders is not None:
                await self._write(job, name, planned.orders, _claims(job), files)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest, NotOurs) as error:
            planned = _refused(before, error, is_over=moment - ended > DEADLINE)
        return FilesReport(kind, planned.condition, files.model_copy(update={"results": planned.status}), planned.wake)

    async def _surroundings(self, job: SlurmJob, cluster: Cluster | None, moment: datetime) -> Surroundings:
        known, pod, key = job.status.files or JobFilesStatus(), None, b""
        if cluster is not None and ways.needs_server(job):
            found = self.nodes.of(cluster, known.node)
            alive = [one for one in found if not one["metadata"].get("deletionTimestamp")] or found
            pod = alive[0] if alive else None
            key = await server_key(self.secrets, cluster)
        return Surroundings(cluster, pod, key, moment.timestamp())

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
        if pod is not None and bodies.has_orders(pod, text):
            return
        data = {orders.NAME: base64.b64encode(text.encode()).decode()}
        secret = await own_objects.find(self.kube, SECRETS, job, name)
        if secret is None:
            about = bodies.metadata(job, name)
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data}
            _ = await self.kube.create(SECRETS, body)
        else:
            await own_objects.change(self.kube, SECRETS, secret, {"data": data})
        if pod is None:
            of_pod = _of(copies, volumes)
            uid, gid = files.uid or 0, files.gid or 0
            _ = await self.kube.create(PODS, bodies.pod(job, name, copies, of_pod, self.image, uid, gid))
        else:
            await own_objects.change(
                self.kube, PODS, pod, {"metadata": {"annotations": {labels.ANNOTATION_JOB_FILE: digest(text)}}}
            )


def _refused(before: JobCopies, error: Exception, *, is_over: bool) -> Plan:
    # An earlier SlurmJob of the same name may just be being collected.
    wake = NAME_TAKEN_S if isinstance(error, NotOurs) else REFUSED_S
    status = before.model_copy(update={"is_complete": True}) if is_over else before
    return Plan(("False", Reason.COPY_POD_REFUSED, str(error)), status, wake=None if is_over else wake)


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
    wanted = [one.volume for one in job.spec.results if one.when != "Never"]
    return [*found, *((PERSISTENTVOLUMECLAIMS, one.persistent_volume_claim.claim_name) for one in wanted)]


def _sources(job: SlurmJob) -> dict[int, dict[str, Any]]:
    """Sources of the volumes that files are prepared from."""
    return {index: one.volume.to_dict() for index, one in enumerate(job.spec.prepare)}


def _claims(job: SlurmJob) -> dict[int, dict[str, Any]]:
    """Sources of the volumes that results are written to."""
    return {index: one.volume.to_dict() for index, one in enumerate(job.spec.results)}


def _of(copies: Iterable[Copy], volumes: Mapping[int, dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The volumes that copies use, by the numbers of their folders."""
    used = {folder for one in copies for folder in (one.source.folder, one.target.folder)}
    return [(index, source) for index, source in volumes.items() if bodies.volume_folder(index) in used]
