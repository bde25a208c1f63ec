"""What the list of a Cluster's jobs shows of one SlurmJob: the job that counts, and those that came late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from slinky_api.conditions import SlurmJobCondition, is_true
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobSubmission, SlurmJob
from slinky_operator.kube.cache.store import Store
from slinky_operator.slurmjob.model import dependencies
from slinky_operator.slurmjob.model.slurm_records import marks, reading, records
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Looked
from slinky_operator.slurmjob.model.stages import late_calls
from slinky_operator.slurmjob.polling.queues import Queue, Queues
from slurm_client.models import Job

NUMBER: Final = "number"
"""Index of the SlurmJob cache over `number_in`: the jobs that SlurmJobs have, or had."""


def number_in(cluster: str, number: object) -> str:
    """Index value of the job of a Cluster, `<namespace>/<name>`."""
    return f"{cluster}#{number}"


class JobList:
    """Finds the jobs of SlurmJobs.

    Parameters
    ----------
    queues
        The jobs of Clusters.
    jobs
        Cache of SlurmJobs, with the index `NUMBER`.
    now
        The wall clock.
    """

    def __init__(self, queues: Queues, jobs: Store, now: Callable[[], datetime]) -> None:
        self._queues = queues
        self._jobs = jobs
        self._now = now

    async def looked(self, cluster: Cluster, job: SlurmJob) -> Looked | None:
        """What the list of jobs shows; a job is missing only if the whole list has been looked through."""
        status = job.status
        begun = status.submission
        if begun is None or is_true(status.conditions, SlurmJobCondition.FINISHED):
            return None
        queue, at = self._list(cluster)
        if queue is None or at is None:
            return None
        mark, user = Mark(job.uid, begun.attempt), status.user or ""
        marked = queue.records(mark, user)
        found = self._own(job, begun, marked)
        if not found and begun.started_at is not None and at > begun.started_at:
            marked = queue.all_records(mark, user)
            found = self._own(job, begun, marked)
        key = job.namespace, "records", job.uid
        seen = await reading.seen(key, records.of_queue, found, status.array, status.tasks)
        claimed = min(map(marks.number_of, marked), default=None) if status.job_id is None and not found else None
        return Looked(at, seen, tuple(found), claimed)

    def _own(self, job: SlurmJob, begun: JobSubmission, marked: Sequence[Job]) -> tuple[Job, ...]:
        number = job.status.job_id
        # Numbers come again after slurmctld has lost its state: those of SlurmJobs that have ended mean nothing here.
        unknown = ((marks.number_of(one), one.submit_time) for one in marked) if number is None else ()
        others = self._of_others(job, unknown, ended=False)
        return marks.own_records(marked, number, begun.started_at, others)

    def _list(self, cluster: Cluster) -> tuple[Queue | None, datetime | None]:
        """The jobs of a Cluster, and when they were asked for; None while they are not known whole."""
        queue = self._queues.get(cluster.uid)
        return queue, queue.asked_at(self._now()) if queue is not None else None

    def second_jobs(
        self, cluster: Cluster, job: SlurmJob, looked: Looked | None
    ) -> tuple[datetime | None, tuple[Seen, ...]]:
        """When the list was asked for, and the second jobs in it."""
        queue, at = self._list(cluster)
        begun = job.status.submission
        if queue is None or at is None or begun is None:
            return None, ()
        is_leaving = job.deleting or is_true(job.status.conditions, SlurmJobCondition.FINISHED)
        list_of = queue.all_records if is_leaving else queue.records
        marks = (Mark(job.uid, attempt) for attempt in range(begun.attempt + 1))
        marked = [one for mark in marks for one in list_of(mark, job.status.user or "")]
        chosen = looked.seen.job_id if looked is not None and looked.seen is not None else None
        found = late_calls.second_jobs(marked, job, chosen, late_calls.settled(cluster))
        # A job whose mark was changed is lost to its SlurmJob, which then ends before it.
        others = self._of_others(job, ((one.job_id, one.submit_time) for one in found), ended=True)
        return at, tuple(one for one in found if one.job_id not in others)

    def _of_others(
        self, job: SlurmJob, submitted: Iterable[tuple[int, datetime | None]], *, ended: bool
    ) -> frozenset[int]:
        """Which of these jobs are those of other SlurmJobs of the Cluster; with or without those that have ended.

        Parameters
        ----------
        submitted
            Numbers, and when their jobs were submitted. One that came after the job that another SlurmJob had under
            the same number is not that: slurmctld has lost its state meanwhile.
        """

        def is_of_another(number: int, at: datetime | None) -> bool:
            for other in self._jobs.find(NUMBER, number_in("/".join(job.cluster_key), number)):
                is_open = ended or not dependencies.has_ended(other)
                if other["metadata"].get("uid") != job.uid and is_open and not marks.is_newer(at, other):
                    return True
            return False

        return frozenset(number for number, at in submitted if is_of_another(number, at))
