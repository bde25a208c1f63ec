"""Writes the Secret and the pod with the output of a SlurmJob, and remembers what it has written."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS, SECRETS
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.pod_programs.joblogs.follower.job_file import InvalidJobFile, Job, JobState
from slinky_operator.slurmjob.model.news import LogsReport
from slinky_operator.slurmjob.pods import bodies, log_plan, log_pod, own_objects, pod_state
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.log_facts import Facts
from slinky_operator.slurmjob.pods.pod_state import PodEnds, PodStarts
from slinky_operator.slurmjob.pods.routes import Misses


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
