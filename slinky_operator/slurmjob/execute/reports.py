"""What is written to a SlurmJob: its status, with Events of what has happened. What it says is decided in `report`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.events import EventReason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.metrics.job_changes import JobChanges
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.status_writer import StatusWriter, patch_between
from slinky_operator.slurmjob.execute.memory import Memory
from slinky_operator.slurmjob.model import job_files, metric_changes, report
from slinky_operator.slurmjob.model.news import Conclusion, FilesReport, News, Record, note_of
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import attempts
from slinky_operator.slurmjob.pods.copy_upkeep import CopyUpkeep
from slinky_operator.slurmjob.pods.log_upkeep import LogUpkeep

LONGEST: Final = 1000
"""Characters of Slurm's words in a condition or an Event."""

MOST_WARNINGS: Final = 32
"""Events of one job that waits."""

_NEEDS_NO_HELP: Final = frozenset(
    {
        Reason.SUSPENDED,
        Reason.DEPENDENCY_NOT_SUBMITTED,
        Reason.DEPENDENCY_NOT_FINISHED,
        Reason.SUBMITTING,
        Reason.KEY_PENDING,
        Reason.PREPARING,
        Reason.CANCELLED,
        Reason.REQUEST_SHOWN,
        Reason.COMPLETED,
        Reason.NON_ZERO_EXIT_CODE,
    }
)
"""Reasons that need nobody's help."""

_EVENTS: Final[Mapping[Reason, EventReason]] = {
    Reason.CANCELLED: EventReason.JOB_CANCELLED,
    Reason.COMPLETED: EventReason.JOB_CANCELLED,
    Reason.NON_ZERO_EXIT_CODE: EventReason.JOB_CANCELLED,
}
"""Reasons of conditions that have another one in Events."""

_WARNED: Final = frozenset(
    {
        Reason.HOLD_REFUSED,
        Reason.RELEASE_REFUSED,
        Reason.CANCEL_REFUSED,
        Reason.ACCOUNTING_DOWN,
        Reason.ALLOCATION_TOO_LARGE,
        Reason.COMPONENT_ENDED,
    }
)
"""Reasons that are worth an Event although Slurm has the job, or had it."""


class Reports:
    """Writes statuses and Events of SlurmJobs.

    Parameters
    ----------
    kube, recorder
        The API server, and Events.
    logs, copies
        Keep the pods of SlurmJobs: what they do is a part of the status.
    changes
        Counts what has happened, for metrics.
    own_writes
        Told of each write, which the cache may not show yet.
    now
        The wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Recorder,
        logs: LogUpkeep,
        copies: CopyUpkeep,
        changes: JobChanges,
        own_writes: Expectations,
        now: Callable[[], datetime],
    ) -> None:
        self._kube = kube
        self._recorder = recorder
        self._logs = logs
        self._copies = copies
        self._changes = changes
        self._own_writes = own_writes
        self._now = now
        self._status = StatusWriter(SLURMJOBS, kube)

    async def show(
        self, obj: Object, snapshot: Snapshot, news: News, memory: Memory, prepared: FilesReport | None = None
    ) -> float | None:
        """Write the status, and report what has happened; return in how many seconds output or files need a pass.

        Parameters
        ----------
        news
            What the status shows.
        prepared
            What is to be said of the files that are copied before the job.
        """
        stored = SlurmJobStatus.model_validate(obj.get("status") or {})
        wanted = report.status(snapshot, news)
        # Before the status: what it says of an end is not looked at again.
        records = snapshot.looked.records if snapshot.looked is not None else ()
        wanted = report.with_files(snapshot.job, wanted, prepared, self._now())
        wanted = job_files.kept(snapshot.job, wanted, records)
        told = await self._logs.follow(snapshot.job, wanted, records, snapshot.cluster, self._now())
        wanted = report.with_logs(snapshot.job, wanted, told, self._now())
        collected = await self._copies.collect(snapshot.job, wanted, snapshot.cluster, self._now())
        wanted = report.with_files(snapshot.job, wanted, collected, self._now())
        if isinstance(news, Conclusion):
            # For the version that was read: another process may have submitted the job.
            _ = await self.patch(obj, stored, wanted, memory, obj["metadata"]["resourceVersion"])
        self._tell(obj, stored, wanted, snapshot, news, collected)
        waits = report.waits(stored, wanted)
        if waits is not None and waits[0] not in memory.warned and len(memory.warned) < MOST_WARNINGS:
            memory.warned.add(waits[0])
            self._recorder.warning(obj, EventReason.JOB_WAITS, cut(waits[1], LONGEST))
        if not isinstance(news, Conclusion):
            written = await self._status.write(obj, obj.get("status") or {}, wanted.to_dict())
            if written is not None:
                self._own_writes.expect_version(snapshot.job.uid, written.answer)
                metric_changes.count(self._changes, stored, wanted, memory.ready_since, self._now())
        return min((one.wake for one in (told, collected) if one is not None and one.wake is not None), default=None)

    def _tell(
        self,
        obj: Object,
        stored: SlurmJobStatus,
        wanted: SlurmJobStatus,
        snapshot: Snapshot,
        news: News,
        collected: FilesReport | None,
    ) -> None:
        """Emit Events of what has happened between two statuses."""
        if isinstance(news, Record) and news.is_followed:
            self._recorder.warning(obj, *attempts.words(snapshot.job, news.seen))
        trouble = report.trouble(stored, collected)
        if trouble is not None:
            self._recorder.warning(obj, trouble[0], cut(trouble[1], LONGEST))
        if report.end(stored) is None:
            ended = report.end(wanted)
            if ended is not None:
                emit = self._recorder.normal if ended[0] else self._recorder.warning
                emit(obj, EventReason.JOB_ENDED, ended[1])
        before = find(stored.conditions, SlurmJobCondition.SUBMITTED)
        note = note_of(news)
        if note is None or (before is not None and before.reason == note.reason):
            return
        if wanted.job_id is None or note.reason in _WARNED:
            emit = self._recorder.normal if note.reason in _NEEDS_NO_HELP else self._recorder.warning
            emit(obj, _EVENTS.get(note.reason, note.reason), cut(note.message, LONGEST))

    async def patch(
        self, obj: Object, stored: SlurmJobStatus, wanted: SlurmJobStatus, memory: Memory, version: str | None = None
    ) -> Object:
        """Write a status between two calls to Slurm; return the object as it is then.

        Parameters
        ----------
        version
            Of the object that was read, if a write of others since then must not be overlooked.

        Raises
        ------
        KubeError
            The API server failed, has no such object, or another version of it.
        """
        metadata = obj["metadata"]
        answer = await self._kube.patch_status(
            SLURMJOBS,
            metadata["name"],
            patch_between(stored.to_dict(), wanted.to_dict()),
            metadata["namespace"],
            resource_version=version,
            uid=metadata["uid"],
        )
        self._own_writes.expect_version(obj["metadata"]["uid"], answer)
        metric_changes.count(self._changes, stored, wanted, memory.ready_since, self._now())
        return answer
