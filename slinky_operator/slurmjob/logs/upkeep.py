"""Keeps pod and Secret with the output of SlurmJobs: made when a job starts, changed as it goes on, ended with it.

What has been written to the Secret counts where Slurm does not know any more: who has lost his memory reads it there.
An API server that refuses the pod (a quota, an admission rule) keeps nothing else of the job from its course. A pod
that ends before its job is replaced; Secrets are not watched, so that of a pod which does not start is looked for.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobLogStatus, SlurmJob, SlurmJobStatus
from slinky_operator.joblogs import job_file
from slinky_operator.joblogs.job_file import InvalidJobFile, Job, JobState
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SECRETS
from slinky_operator.reconcile.secrets import OLD, OLD_IN_TROUBLE, SecretReader
from slinky_operator.slurm import naming
from slinky_operator.slurmjob import own_objects
from slinky_operator.slurmjob.logs import bodies, pod_life, streams
from slinky_operator.slurmjob.logs.bodies import Image
from slinky_operator.slurmjob.logs.facts import End, Facts, end_of, of
from slinky_operator.slurmjob.logs.nodes import Nodes
from slinky_operator.slurmjob.logs.pod_life import PodEnds, PodStarts
from slinky_operator.slurmjob.logs.streams import Misses, Surroundings, Way
from slinky_operator.slurmjob.model.pod_reports import LogsReport
from slinky_operator.slurmjob.own_objects import Kube, NotOurs
from slurm_client.models import Job as SlurmRecord

RETRY_S: Final = 5.0
"""Seconds until the next look for what is not there yet."""

REFUSED_S: Final = 60.0
"""Seconds until a pod that the API server has refused is tried again."""

GIVE_UP_S: Final = 900.0
"""Seconds after the end of a job for which its output is tried to be reached."""


async def server_key(secrets: SecretReader, cluster: Cluster) -> bytes:
    """The key of a Cluster's job log servers; empty if it is not known. It is in no other namespace."""
    name = naming.job_logs_key(cluster.name)
    for age in (OLD, OLD_IN_TROUBLE):
        source = (await secrets.read(cluster.namespace, (name,), older_than=age))[name]
        if source.exists and source.cluster_uid == cluster.uid:
            return source.data.get(naming.JOB_LOGS_KEY, b"")
    return b""


@dataclass(slots=True)
class _Memory:
    """What is remembered of one SlurmJob."""

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
class Upkeep:
    """Keeps the pods of all SlurmJobs.

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
        Cache of the pods with output; what it says is looked at again before anything is deleted.
    """

    kube: Kube
    secrets: SecretReader
    nodes: Nodes
    image: Image
    pods: Store
    _memory: dict[str, _Memory] = field(default_factory=dict)

    def forget(self, uid: str) -> None:
        """Forget a SlurmJob that is gone."""
        _ = self._memory.pop(uid, None)

    def pod_gone(self, uid: str) -> None:
        """The pod of a SlurmJob is gone: it is made again in the next pass, while the job goes on."""
        memory = self._memory.get(uid)
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
        job, now = job.model_copy(update={"status": status}), moment.timestamp()
        attempt = status.submission.attempt if status.submission is not None else 0
        memory = self._memory.setdefault(job.uid, _Memory())
        memory.facts = of(records, logs.task) or _still(memory.facts, job)
        may_end = end is not None or attempt >= job.spec.backoff_limit
        told = await self._attempted(job, cluster, memory, end, may_end=may_end, now=now)
        if told.wake is not None and end is not None and _is_long_over(job, now):
            told = replace(told, wake=None, is_complete=True)
        if told.is_complete:
            self.forget(job.uid)
        return told

    async def _if_gone(self, job: SlurmJob, status: SlurmJobStatus) -> LogsReport | None:
        """Say that the pod is gone which showed the output of a job that has ended: it is not made again.

        A pod that somebody deletes after the end is not wanted any more, and its node may be gone.
        """
        known = find(status.conditions, SlurmJobCondition.LOGS_AVAILABLE)
        name = bodies.name_of(job.name)
        if known is None or known.status != "True" or self.pods.get(job.namespace, name) is not None:
            return None
        # A cache may not have yet what was just made.
        try:
            if await own_objects.find(self.kube, PODS, job, name) is not None:
                return None
        except NotOurs as error:
            return LogsReport(("False", Reason.LOG_POD_GONE, str(error)), is_complete=True)
        words = f"pod {name} was deleted after the end of the job, and is not made again"
        where = f"; the output was in {status.output} on node {status.nodes}" if status.output and status.nodes else ""
        return LogsReport(("False", Reason.LOG_POD_GONE, words + where), is_complete=True)

    async def _attempted(
        self, job: SlurmJob, cluster: Cluster | None, memory: _Memory, end: End | None, *, may_end: bool, now: float
    ) -> LogsReport:
        try:
            return await self._follow(job, cluster, memory, end, may_end=may_end, now=now)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest, NotOurs) as error:
            memory.written, memory.is_written = None, False
            # An earlier SlurmJob of the same name may just be being collected.
            wake = RETRY_S if isinstance(error, NotOurs) else REFUSED_S
            return LogsReport(("False", Reason.LOG_POD_REFUSED, str(error)), wake)

    async def _follow(
        self, job: SlurmJob, cluster: Cluster | None, memory: _Memory, end: End | None, *, may_end: bool, now: float
    ) -> LogsReport:
        if memory.written is None:
            memory.written = await self._read(job)
        before, facts = memory.written, memory.facts
        if facts is not None and facts.end is None and end is not None:
            # The whole job has ended, and its part with it.
            facts = replace(facts, state=JobState.ENDED, end=end)
        if before is not None and before.state is JobState.ENDED:
            _ = await self._write(job, before, facts, memory, now)
            return self._complete(job, before, ())
        if facts is None or not facts.node or (facts.end is not None and not may_end and before is None):
            return await self._without_record(job, before, facts, end, now)
        if facts.state is JobState.PENDING and before is not None:
            # What the earlier run has written can still be read.
            ways: tuple[tuple[str, Way], ...] = ()
            wanted = replace(before, state=JobState.PENDING)
        else:
            ways = await self._ways(job, cluster, facts, now)
            wanted = _wanted(job, facts, ways, before, may_end=may_end)
        retry = memory.misses.retry(now, may_come=any(found.may_come for _, found in ways))
        if before is None and not wanted.streams:
            return _out_of_reach(ways, retry, is_over=facts.end is not None)
        waits = await self._write(job, wanted, facts, memory, now)
        if wanted.state is JobState.ENDED:
            return self._complete(job, wanted, ways)
        told = waits or _shown(job, ways, retry, now)
        look = memory.starts.next_look(self.pods.get(job.namespace, bodies.name_of(job.name)), now)
        return replace(told, wake=min(one for one in (told.wake, look) if one is not None))

    async def _without_record(
        self, job: SlurmJob, before: Job | None, facts: Facts | None, end: End | None, now: float
    ) -> LogsReport:
        """Slurm has no record with a node: the job has not started, or is forgotten."""
        if end is None:
            if before is not None:
                return LogsReport(("True", Reason.LOGS_SHOWN, _where(job)))
            return LogsReport(("Unknown", Reason.JOB_NOT_STARTED, "the job has not started"))
        if before is None:
            words = "the job has ended, and Slurm does not say where it ran"
            return LogsReport(("False", Reason.JOB_NOT_STARTED, words), is_complete=True)
        ended = replace(before, state=JobState.ENDED, exit_code=end.exit_code, signal=end.signal)
        _ = await self._write(job, ended, facts, self._memory[job.uid], now)
        return self._complete(job, ended, ())

    def _complete(self, job: SlurmJob, written: Job, ways: tuple[tuple[str, Way], ...]) -> LogsReport:
        why = _why(ways)
        status = "False" if why or not written.streams else "True"
        reason = Reason.OUTPUT_OUT_OF_REACH if status == "False" else Reason.LOGS_SHOWN
        words = why or (_where(job) if written.streams else "the output could not be read before the job ended")
        return LogsReport((status, reason, words), is_complete=True)

    async def _ways(
        self, job: SlurmJob, cluster: Cluster | None, facts: Facts, now: float
    ) -> tuple[tuple[str, Way], ...]:
        volume = job.spec.logs.volume if job.spec.logs is not None else None
        pod, key = None, b""
        if cluster is not None and any(streams.needs_server(path, volume) for _, path in facts.files):
            found = self.nodes.of(cluster, facts.node)
            alive = [one for one in found if not one["metadata"].get("deletionTimestamp")] or found
            pod = alive[0] if alive else None
            key = await server_key(self.secrets, cluster)
        around = Surroundings(cluster, pod, key, volume, now, job.uid)
        return tuple((stream, streams.way(path, facts, around)) for stream, path in facts.files)

    async def _read(self, job: SlurmJob) -> Job | None:
        """What the Secret says; None if it is missing, or was changed by somebody."""
        found = await own_objects.find(self.kube, SECRETS, job, bodies.name_of(job.name))
        if found is None:
            return None
        try:
            content = base64.b64decode((found.get("data") or {}).get(job_file.NAME) or "", validate=True)
            return job_file.parse(content, bodies.name_of(job.name))
        except (InvalidJobFile, binascii.Error):
            return None

    async def _write(
        self, job: SlurmJob, wanted: Job, facts: Facts | None, memory: _Memory, now: float
    ) -> LogsReport | None:
        """Write the Secret first, then the pod, whose change makes the kubelet read the Secret.

        Returns
        -------
        LogsReport or None
            What is to be said if there is no pod for a while.
        """
        known = self.pods.get(job.namespace, bodies.name_of(job.name))
        is_to_be_seen = memory.starts.is_due(known, now) or (known is not None and pod_life.has_ended(known))
        if wanted == memory.written and memory.is_written and not is_to_be_seen:
            return None
        losses, text = memory.losses, job_file.text(wanted)
        memory.starts.looked(now)
        await self._put_secret(job, text)
        pod = await own_objects.find(self.kube, PODS, job, bodies.name_of(job.name))
        memory.written, memory.is_written = wanted, False
        mark: dict[str, Any] = {"metadata": {"annotations": {labels.ANNOTATION_JOB_FILE: bodies.digest(text)}}}
        if pod is not None and pod_life.has_ended(pod):
            if wanted.state is JobState.ENDED and _has(pod, mark):
                return None
            # One that ended before it was told of the end of its job has not shown all.
            pause = memory.ends.pause(pod, now) if wanted.state is not JobState.ENDED else 0.0
            if pause > 0 or pod["metadata"].get("deletionTimestamp"):
                return _ended(pod, max(pause, RETRY_S))
            await own_objects.delete(self.kube, PODS, pod)
            pod = None
        if pod is None:
            memory.starts = PodStarts()
            memory.starts.looked(now)
            uid, gid = (facts.uid, facts.gid) if facts is not None else (None, None)
            _ = await self.kube.create(PODS, bodies.pod(job, text, self.image, uid, gid))
        elif not _has(pod, mark):
            await own_objects.change(self.kube, PODS, pod, mark)
        # It may have gone right after it was looked at.
        memory.is_written = memory.losses == losses
        return None

    async def _put_secret(self, job: SlurmJob, text: str) -> None:
        found = await own_objects.find(self.kube, SECRETS, job, bodies.name_of(job.name))
        if found is None:
            _ = await self.kube.create(SECRETS, bodies.secret(job, text))
            return
        patch = {"data": bodies.data(text)}
        if not _has(found, patch):
            await own_objects.change(self.kube, SECRETS, found, patch)


def _still(facts: Facts | None, job: SlurmJob) -> Facts | None:
    """What was known of the job, if it is the same one; a submission after it has another number."""
    return facts if facts is not None and facts.job.partition("_")[0] == str(job.status.job_id) else None


def _is_long_over(job: SlurmJob, now: float) -> bool:
    ended = job.status.end_time
    return ended is None or now - ended.timestamp() > GIVE_UP_S


def _has(found: Object, patch: Object) -> bool:
    return all(
        _has(found.get(key) or {}, value) if isinstance(value, dict) else found.get(key) == value
        for key, value in patch.items()
    )


def _wanted(
    job: SlurmJob, facts: Facts, ways: tuple[tuple[str, Way], ...], before: Job | None, *, may_end: bool
) -> Job:
    """What followers are to know; a file that cannot be reached now stays where it was, unless it begins again."""
    status = job.status.logs or JobLogStatus()
    attempt = status.starts + facts.restarts
    is_same = before is not None and before.attempt == attempt
    places = dict(before.streams) if before is not None and is_same else {}
    places |= {stream: found.place for stream, found in ways if found.place is not None}
    end, state = facts.end or End(), facts.state
    if state is JobState.ENDED and not may_end:
        end, state = End(), JobState.RUNNING
    return Job(facts.job, state, attempt, facts.node, end.exit_code, end.signal, places)


def _ended(pod: Object, pause: float) -> LogsReport:
    words = f"pod {pod['metadata']['name']} has ended before its job: {pod_life.why(pod)}"
    is_kept = pod["metadata"].get("deletionTimestamp")
    words += f"; another one is made {'once it is gone' if is_kept else 'within 10 min'}"
    return LogsReport(("False", Reason.LOG_POD_ENDED, words), pause)


def _where(job: SlurmJob) -> str:
    return f"kubectl logs {bodies.name_of(job.name)} -c stdout"


def _why(ways: tuple[tuple[str, Way], ...]) -> str:
    return "; ".join(f"{stream}: {found.why}" for stream, found in ways if found.place is None)


def _out_of_reach(ways: tuple[tuple[str, Way], ...], retry: float | None, *, is_over: bool) -> LogsReport:
    why = _why(ways) or "the job writes its output nowhere"
    return LogsReport(("False", Reason.OUTPUT_OUT_OF_REACH, why), retry, is_over and retry is None)


def _shown(job: SlurmJob, ways: tuple[tuple[str, Way], ...], retry: float | None, now: float) -> LogsReport:
    why = _why(ways)
    condition = ("False", Reason.OUTPUT_OUT_OF_REACH, why) if why else ("True", Reason.LOGS_SHOWN, _where(job))
    return LogsReport(condition, streams.renewed_in(job.uid, now) if retry is None else retry)
