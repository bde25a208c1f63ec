"""Keeps the pods that show the output of SlurmJobs: reads what their plan needs, and writes what it says.

An API server that refuses a pod (a quota, an admission rule) keeps nothing else of the job from its course. A log pod
that ends before its job is replaced; Secrets are not watched, so that of a pod which does not start is looked for.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS, SECRETS
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.pod_programs.joblogs.follower.job_file import InvalidJobFile, Job, JobState
from slinky_operator.reconcile.cached.job_nodes import Nodes
from slinky_operator.reconcile.secrets import SecretReader, job_logs_key
from slinky_operator.slurmjob.model.news import LogsReport
from slinky_operator.slurmjob.pods import bodies, log_plan, log_pod, own_objects, pod_state, routes
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.log_facts import End, Facts, end_of, of
from slinky_operator.slurmjob.pods.own_objects import NotOurs, retry_after
from slinky_operator.slurmjob.pods.pod_state import PodEnds, PodStarts
from slinky_operator.slurmjob.pods.routes import Misses
from slurm_client.models import Job as SlurmRecord

GIVE_UP_S: Final = 900.0
"""Seconds after the end of a job for which its output is tried to be reached."""


@dataclass(slots=True)
class LogMemory:
    """What is remembered of the log pod of one SlurmJob."""

    facts: Facts | None = None
    written: Job | None = None
    """What the Secret has; None if that is not known."""
    is_written: bool = False
    """Whether the pod has it too."""
    losses: int = 0
    """How often its pod has gone."""
    misses: Misses = field(default_factory=Misses)
    ends: PodEnds = field(default_factory=PodEnds)
    starts: PodStarts = field(default_factory=PodStarts)


@dataclass(slots=True)
class LogUpkeep:
    """Keeps the pods with the output of all SlurmJobs.

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
        """The log pod of a SlurmJob is gone: it is made again in the next pass, as long as the job runs."""
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
        if not job.spec.logs.pod:
            return None if logs.is_complete else log_plan.without_pod(logs, of(records, logs.task), end)
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
            return LogsReport(("False", Reason.LOG_POD_REFUSED, str(error)), retry_after(error))
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
            pod, key = self.nodes.pod_of(cluster, facts.node), await job_logs_key(self.secrets, cluster)
        context = routes.LogContext(cluster, pod, key, volume, snapshot.now, job.uid)
        reached = tuple((stream, routes.log_route(path, facts, context)) for stream, path in facts.files)
        return reached, memory.misses.retry(snapshot.now, may_come=any(route.may_come for _, route in reached))


@dataclass(frozen=True, slots=True)
class LogWriter:
    """Brings Secrets and log pods to what followers are to know.

    Parameters
    ----------
    kube
        The API server.
    image
        The operator's own.
    pods
        Cache of the pods; what it shows is read again before anything is deleted.
    """

    kube: Kube
    image: Image
    pods: Store

    async def read(self, job: SlurmJob) -> Job | None:
        """What the Secret has; None if it is missing, or was changed by somebody."""
        name = log_pod.name_of(job.name)
        secret = await own_objects.find(self.kube, SECRETS, job, name)
        if secret is None:
            return None
        try:
            content = base64.b64decode((secret.get("data") or {}).get(job_file.NAME) or "", validate=True)
            return job_file.parse(content, name)
        except (InvalidJobFile, binascii.Error):
            return None

    async def write(self, job: SlurmJob, file: Job, memory: LogMemory, now: float) -> LogsReport | None:
        """Write the Secret first, then the pod, whose change makes the kubelet read the Secret.

        Returns
        -------
        LogsReport or None
            What is to be said if there is no pod for a while.
        """
        name = log_pod.name_of(job.name)
        known = self.pods.get(job.namespace, name)
        is_due = memory.starts.is_due(known, now) or (known is not None and pod_state.has_ended(known))
        if file == memory.written and memory.is_written and not is_due:
            return None
        losses, text = memory.losses, job_file.text(file)
        memory.starts.looked(now)
        await own_objects.put_secret(self.kube, job, log_pod.secret(job, text))
        pod = await own_objects.find(self.kube, PODS, job, name)
        memory.written, memory.is_written = file, False
        mark = bodies.mark(text)
        if pod is not None and pod_state.has_ended(pod):
            if file.state is JobState.ENDED and own_objects.has(pod, mark):
                return None
            # One that ended before it was told of the end of its job has not shown all.
            pause = memory.ends.pause(pod, now) if file.state is not JobState.ENDED else 0.0
            if pause > 0 or pod["metadata"].get("deletionTimestamp"):
                return log_plan.pod_ended(pod, max(pause, log_plan.RETRY_S))
            await own_objects.delete(self.kube, PODS, pod)
            pod = None
        if pod is None:
            memory.starts = PodStarts()
            memory.starts.looked(now)
            uid, gid = (memory.facts.uid, memory.facts.gid) if memory.facts is not None else (None, None)
            _ = await self.kube.create(PODS, log_pod.pod(job, text, self.image, uid, gid))
        elif not own_objects.has(pod, mark):
            await own_objects.change(self.kube, PODS, pod, mark)
        # It may have gone right after it was looked at.
        memory.is_written = memory.losses == losses
        return None


def _still(facts: Facts | None, job: SlurmJob) -> Facts | None:
    """What was known of the job, if it is the same one; a submission after it has another number."""
    return facts if facts is not None and facts.job.partition("_")[0] == str(job.status.job_id) else None


def _is_long_over(job: SlurmJob, now: float) -> bool:
    ended = job.status.end_time
    return ended is None or now - ended.timestamp() > GIVE_UP_S
