"""What jobs without a script need of Slurm beside others: what they were given, and how their work ended on record.

When either is due is decided in `model.stages.external`. slurmctld is asked once for each start of a job; accounting is
told once for each end, after it is read back whose record the number has: numbers come again after slurmctld has lost
its state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.events import EventReason
from slinky_api.v1alpha1.slurmjob.kind import JobAllocation, JobEnd, JobSubmission, SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.reconcile.text import cut
from slinky_operator.runtime.controller import Result
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.memory import Memory
from slinky_operator.slurmjob.execute.reports import LONGEST, Reports
from slinky_operator.slurmjob.execute.slurm_access import SlurmAccess
from slinky_operator.slurmjob.model import requests
from slinky_operator.slurmjob.model.slurm_records import allocations
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.steps import AskAllocation, RecordEnd
from slurm_client import SlurmClient
from slurm_client.errors import NotSupported, SlurmError
from slurm_client.models import Job, JobRecord

logger = logging.getLogger(__name__)

PAUSES_S: Final = (2.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds until the next attempt to write into accounting, after the first failure, the second and so on."""

SOON_S: Final = 0.2
"""Seconds until the pass that goes on where this one has ended."""


class NotOnRecord(Exception):
    """slurmdbd does not have the end of the job, or has another job under its number."""


class AnotherJob(NotOnRecord):
    """What slurmdbd has under the number of the job is another job.

    Parameters
    ----------
    is_newer
        Whether that one was submitted later: slurmctld has forgotten the job and given its number again, and slurmdbd
        never changes the older record.
    """

    def __init__(self, job_id: int, *, is_newer: bool) -> None:
        super().__init__(f"what slurmdbd has under number {job_id} is another job")
        self.is_newer = is_newer


async def ask_allocation(
    access: SlurmAccess, snapshot: Snapshot, step: AskAllocation, memory: Memory, now: Callable[[], datetime]
) -> Snapshot:
    """Ask slurmctld what the job was given; without an answer it is asked again later."""
    client, begun, seen = access.client(snapshot.cluster), snapshot.job.status.submission, step.seen
    found = None
    try:
        if client is not None and begun is not None:
            parts = await client.job_parts(seen.job_id, timeout=slurm_calls.TIMEOUT)
            mark = Mark(snapshot.job.uid, begun.attempt)
            # A record of another start, or of another job, is no answer: the list of jobs will say more.
            if allocations.is_of(parts, mark, snapshot.job.status.user or "", seen):
                found = _given(snapshot, parts)
    except SlurmError as error:
        logger.info("%s/%s: its nodes are not known: %s", snapshot.job.namespace, snapshot.job.name, error)
    memory.allocation_again = None if found is not None else now() + timedelta(seconds=RETRY_S)
    return replace(snapshot, allocation=found, allocation_again=memory.allocation_again)


def _given(snapshot: Snapshot, parts: Sequence[Job]) -> tuple[JobAllocation, ...] | None:
    """What the records say that the job was given."""
    job = snapshot.job
    if job.status.submission is not None and job.status.submission.again:
        asked, stored = requests.shares(job), job.status.allocation or ()
        found = allocations.of_parts(parts, len(asked) if len(asked) > 1 else 0)
        return allocations.again(stored, found, asked) if found is not None else None
    external = job.spec.external
    return allocations.of_parts(parts, len(external.components or ()) if external is not None else 0)


class Ends:
    """Tells Slurm's accounting how the work of jobs has ended.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    reports, recorder
        The status, and Events.
    now
        The wall clock.
    """

    def __init__(self, access: SlurmAccess, reports: Reports, recorder: Recorder, now: Callable[[], datetime]) -> None:
        self._access = access
        self._reports = reports
        self._recorder = recorder
        self._now = now

    async def record(self, obj: Object, snapshot: Snapshot, step: RecordEnd, memory: Memory) -> Result:
        """Write it, and note that in the status; after `step.until` it is not tried again."""
        job, begun = snapshot.job, snapshot.job.status.submission
        client = self._access.client(snapshot.cluster)
        memory.record_since = memory.record_since or snapshot.now
        is_last = False
        try:
            if client is None or begun is None:
                raise NotOnRecord("there is no connection to its Slurm")  # noqa: TRY301 - one way to wait
            mark = Mark(job.uid, begun.attempt)
            await _told(client, step, mark, job, begun)
        except (SlurmError, NotOnRecord) as error:
            why = cut(str(error), LONGEST) or type(error).__name__
            is_last = isinstance(error, NotSupported) or (isinstance(error, AnotherJob) and error.is_newer)
            if not is_last and self._now() < step.until:
                pause = timedelta(seconds=PAUSES_S[min(memory.record_tries, len(PAUSES_S) - 1)])
                memory.record_tries += 1
                # The last attempt is not late: a SlurmJob that is deleted waits for it.
                memory.record_again = min(self._now() + pause, step.until)
                logger.info("%s/%s: its end is not on record: %s", job.namespace, job.name, why)
                return Result((memory.record_again - self._now()).total_seconds())
            code = step.end.exit_code
            words = (
                f"the exit code {code} of job {step.job_id} is not in Slurm's accounting, and the operator has given "
                f"up: {why}"
            )
            # The command changes the record of the other job.
            if not isinstance(error, AnotherJob):
                words += f". Write it with: sacctmgr modify job JobID={step.job_id} set DerivedExitCode={code}"
            self._recorder.warning(obj, EventReason.END_NOT_RECORDED, words)
            is_last = True
        recorded = job.status.model_copy(update={"recorded": not is_last})
        _ = await self._reports.patch(obj, job.status, recorded, memory)
        return Result(SOON_S)


async def _told(client: SlurmClient, step: RecordEnd, mark: Mark, job: SlurmJob, begun: JobSubmission) -> None:
    """Write the exit code and the comment, unless they are there.

    Raises
    ------
    NotOnRecord
        slurmdbd has no such job that has ended.
    SlurmError
        slurmdbd has not done it.
    """
    record = _latest(await client.db.job_records(step.job_id, timeout=slurm_calls.TIMEOUT))
    if record is None or not record.state.is_finished:
        raise NotOnRecord(f"slurmdbd has not been told yet that job {step.job_id} has ended")
    since = begun.started_at
    is_timely = since is None or (
        record.submit_time is not None and record.submit_time >= since - slurm_calls.TOLERANCE
    )
    if record.user != (job.status.user or "") or record.extra not in {"", mark.text} or not is_timely:
        submitted = job.status.submit_time
        is_newer = submitted is not None and record.submit_time is not None and record.submit_time > submitted
        raise AnotherJob(step.job_id, is_newer=is_newer)
    if _is_written(record, step.end):
        return
    _ = await client.db.update_job(
        step.job_id, derived_exit_code=step.end.exit_code, comment=step.end.comment, timeout=slurm_calls.TIMEOUT
    )


def _latest(records: Sequence[JobRecord]) -> JobRecord | None:
    """The record that slurmdbd changes of those with one number."""
    return max(records, key=lambda one: one.submit_time.timestamp() if one.submit_time else 0.0, default=None)


def _is_written(record: JobRecord, end: JobEnd) -> bool:
    known = record.derived_exit_code
    code = (known.return_code or 0) if known is not None else 0
    return code == end.exit_code and end.comment in {None, record.comment}
