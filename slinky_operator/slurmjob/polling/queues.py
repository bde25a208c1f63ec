"""One poll of the jobs of each Cluster, for all SlurmJobs in it.

The poll runs while some SlurmJob of the Cluster has not ended, or has ended a moment ago (`ended_jobs`). It asks
slurmctld whether anything has changed, which is cheap, and reads what has; only records with a mark are kept. The
SlurmJobs that a change concerns are queued by uid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob.ended_jobs import Cancelling, EndedJobs
from slinky_operator.slurmjob.model.slurm_records import marks
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.polling.young_jobs import YoungJobs
from slinky_operator.slurmjob.rescheduling import Rescheduling
from slurm_client import SlurmClient
from slurm_client.models import Job
from slurm_client.slices import sliced
from slurm_client.watch import SYNCED, Reader

logger = logging.getLogger(__name__)

AGAIN_S: Final = 5.0
"""Seconds until a poll that has failed is begun again."""

CHECK_S: Final = 30.0
"""Seconds between two questions whether anybody needs the poll."""


class Entry(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    client: SlurmClient

    @property
    def closed(self) -> bool:
        """Whether another has taken its place."""
        ...


class Clients(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Entry | None:
        """The Slurm of a Cluster."""
        ...


@dataclass(slots=True)
class Queue:
    """What is known of the marked jobs of one Cluster."""

    entry: Entry
    jobs: dict[Mark, dict[str, Job]] = field(default_factory=dict)
    """Records by mark and key."""
    untold: set[str] = field(default_factory=set)
    """Uids of SlurmJobs whose jobs may have gone while nobody looked."""
    is_complete: bool = False
    reader: Reader[Job] | None = None
    cancelling: Cancelling | None = None
    """Of jobs that had ended."""
    young: YoungJobs | None = None
    """Those that were just submitted."""
    task: asyncio.Task[None] | None = None

    def records(self, mark: Mark, user: str) -> tuple[Job, ...]:
        """The records of one submission; those of another user are a forgery."""
        return tuple(job for job in self.jobs.get(mark, {}).values() if job.user == user)

    def all_records(self, mark: Mark, user: str) -> tuple[Job, ...]:
        """The same as the list was last confirmed, of which some events may not have been read yet.

        To be asked before anything is concluded from a job that is missing; it looks at every job of the Cluster only
        while events wait.
        """
        if self.reader is not None and not self.reader.pending():
            return self.records(mark, user)
        jobs = self.entry.client.job_watch.objects.values()
        return tuple(job for job in jobs if job.extra == mark.text and job.user == user)

    def asked_at(self, now: datetime) -> datetime | None:
        """When the list was last confirmed by slurmctld; None while it is not known whole."""
        age = self.entry.client.job_watch.status.age
        return None if not self.is_complete or age is None else now - timedelta(seconds=age)

    def looked_at(self, now: datetime) -> datetime | None:
        """The same once all events of that list have been read."""
        return self.asked_at(now) if self.reader is not None and not self.reader.pending() else None


class Queues:
    """The queues of all Clusters with SlurmJobs.

    Parameters
    ----------
    clients
        The Slurm of every Cluster.
    is_needed
        Whether a Cluster, by uid, has SlurmJobs that have not ended.
    ended
        Those that have.
    """

    def __init__(self, clients: Clients, is_needed: Callable[[str], bool], ended: EndedJobs) -> None:
        self._clients = clients
        self._is_needed = is_needed
        self._ended = ended
        self._queues: dict[str, Queue] = {}
        self._wake: list[Callable[[str], None]] = []

    def subscribe(self, wake: Callable[[str], None]) -> None:
        """Call `wake` with the uid of each SlurmJob whose job has changed."""
        self._wake.append(wake)

    def get(self, cluster_uid: str) -> Queue | None:
        """What is known of a Cluster's jobs; begins to look if nobody does. None without a connection."""
        entry = self._clients.get(cluster_uid)
        if entry is None:
            return None
        queue = self._queues.get(cluster_uid)
        if queue is None or queue.entry is not entry or queue.task is None or queue.task.done():
            if queue is not None and queue.task is not None:
                queue.task.cancel()
            queue = self._queues[cluster_uid] = Queue(entry)
            queue.task = asyncio.get_running_loop().create_task(
                self._run(cluster_uid, queue), name=f"jobs of {cluster_uid}"
            )
        return queue

    def ended(self, cluster_uid: str, obj: Object, at: datetime) -> None:
        """Cancel the job of a SlurmJob, should slurmctld have it again although it had ended at a time."""
        if not self._ended.note(cluster_uid, obj, at):
            return
        queue = self.get(cluster_uid)
        if queue is None or queue.cancelling is None:
            return
        attempt = ((obj.get("status") or {}).get("submission") or {}).get("attempt") or 0
        for record in queue.jobs.get(Mark(str(obj["metadata"].get("uid")), attempt), {}).values():
            queue.cancelling.seen(record)

    def resume(self, cluster_uid: str) -> None:
        """Look for jobs that had ended as soon as there is a connection."""
        if self._ended.is_waiting(cluster_uid):
            _ = self.get(cluster_uid)

    def forget(self, cluster_uid: str) -> None:
        """A Cluster is gone."""
        self._ended.forget(cluster_uid)

    def changed(self, cluster_uid: str, namespace: str, number: int) -> None:
        """Look at once at a job that is new, or was cancelled, held or released.

        By itself where the list is long, or each of these would cost a whole one.
        """
        queue = self.get(cluster_uid)
        if queue is not None and queue.young is not None and queue.is_complete and queue.young.add(namespace, number):
            return
        self.poll_now(cluster_uid)

    def poll_now(self, cluster_uid: str) -> None:
        """Look at once: something was changed."""
        queue = self._queues.get(cluster_uid)
        if queue is not None:
            queue.entry.client.job_watch.poke()

    async def _run(self, cluster_uid: str, queue: Queue) -> None:
        client = queue.entry.client
        rescheduling = Rescheduling(client, lambda: (job for found in queue.jobs.values() for job in found.values()))
        queue.cancelling = cancelling = Cancelling(cluster_uid, client, self._ended)
        queue.young = young = YoungJobs(client.job_watch)
        watching = asyncio.create_task(self._watch(queue, rescheduling, cancelling))
        try:
            while not queue.entry.closed and (self._is_needed(cluster_uid) or self._ended.is_waiting(cluster_uid)):
                _ = await asyncio.wait({watching}, timeout=CHECK_S)
                looked_at = queue.looked_at(datetime.now(UTC))
                if looked_at is not None:
                    self._ended.looked(cluster_uid, looked_at)
                if watching.done():
                    error = None if watching.cancelled() else watching.exception()
                    logger.warning("the list of jobs of Cluster %s is read again: %s", cluster_uid, error or "it ended")
                    queue.is_complete = False
                    await asyncio.sleep(AGAIN_S)
                    watching = asyncio.create_task(self._watch(queue, rescheduling, cancelling))
        finally:
            watching.cancel()
            rescheduling.stop()
            cancelling.stop()
            young.stop()
            if self._queues.get(cluster_uid) is queue:
                del self._queues[cluster_uid]

    async def _watch(self, queue: Queue, rescheduling: Rescheduling, cancelling: Cancelling) -> None:
        """Follow the list until the client is closed; outages are waited for."""
        # What goes while nobody looks is concerned too, and no event will say so.
        queue.untold |= {mark.uid for mark in queue.jobs}
        queue.jobs.clear()
        async with queue.entry.client.job_watch.reader(mark=True) as events:
            queue.reader = events
            async for event in events:
                if event is SYNCED:
                    queue.is_complete = True
                    # Of thousands others have their turn in between.
                    async for uid in sliced(queue.untold | {mark.uid for mark in queue.jobs}):
                        self._tell((uid,))
                    queue.untold.clear()
                    continue
                uids = set()
                for job, is_new in ((event.old, False), (event.new, True)):
                    mark = marks.read(job.extra) if job is not None else None
                    if job is None or mark is None:
                        continue
                    uids.add(mark.uid)
                    _keep(queue.jobs, mark, event.key, job if is_new else None)
                    if is_new:
                        cancelling.seen(job)
                if queue.is_complete:
                    self._tell(uids)
                if uids:
                    rescheduling.changed(event.old, event.new)

    def _tell(self, uids: Iterable[str]) -> None:
        for uid in uids:
            for wake in self._wake:
                wake(uid)


def _keep(jobs: dict[Mark, dict[str, Job]], mark: Mark, key: str, job: Job | None) -> None:
    records = jobs.setdefault(mark, {})
    if job is not None:
        records[key] = job
    else:
        _ = records.pop(key, None)
    if not records:
        del jobs[mark]
