"""The submission of a job, with what comes before it and after: volumes, files, Slurm's answer, refusals.

What is begun is written into the status before Slurm is asked; see `plan` for how an answer that was lost is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_api.v1alpha1.slurmjob.kind import JobSubmission, SlurmJob, SlurmJobStatus
from slinky_operator.jobs.translation import Submission
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.metrics.job_changes import ACCEPTED, NOT_SENT, REFUSED, UNANSWERED, JobChanges
from slinky_operator.reconcile.text import cut
from slinky_operator.runtime.controller import Result
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.memory import Lacking, Memory
from slinky_operator.slurmjob.execute.reports import LONGEST, Reports
from slinky_operator.slurmjob.execute.resubmission import Resubmissions
from slinky_operator.slurmjob.execute.slurm_access import KEY_VALID_S, KeyUnknown, SlurmAccess
from slinky_operator.slurmjob.model import job_files, output_path, report, requests
from slinky_operator.slurmjob.model.news import Note, note_of
from slinky_operator.slurmjob.model.slurm_records import arrays
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import late_calls
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.steps import DryRun, Plan, Prepare, Request, Submit
from slinky_operator.slurmjob.pods.copy_upkeep import CopyUpkeep
from slinky_operator.slurmjob.polling.queues import Queues
from slurm_client.errors import SlurmError

logger = logging.getLogger(__name__)

SOON_S: Final = 0.2
"""Seconds until the pass that goes on where this one has ended."""

LACKING_S: Final = (15.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds until the next look whether the volumes of a job exist now: after the first look, the second and so on."""

RARELY: Final = timedelta(minutes=40)
"""Pause from which on a refused job is called one that may never run: a pause of an hour, and a quarter shorter."""

RARE: Final = (
    "; a job refused this often may never run. Correct the cause and set suspend to true and back to false, which "
    "submits the job at once, or delete the SlurmJob"
)

MOST_FAILED: Final = 100
"""Numbers of earlier jobs that are kept, the last ones."""

BEGINNING_S: Final = 10.0
"""Seconds that the write before a submission may take: `late_calls.SETTLED` counts from its beginning."""


class Submitter:
    """Submits jobs.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    reports, recorder
        The status, and Events.
    queues
        The jobs of Clusters.
    copies
        Keeps the pods that copy files.
    changes
        Counts what has happened, for metrics.
    resubmissions
        When jobs that were refused are submitted again.
    now
        The wall clock.
    """

    def __init__(
        self,
        access: SlurmAccess,
        reports: Reports,
        recorder: Recorder,
        queues: Queues,
        copies: CopyUpkeep,
        changes: JobChanges,
        resubmissions: Resubmissions,
        now: Callable[[], datetime],
    ) -> None:
        self._access = access
        self._reports = reports
        self._recorder = recorder
        self._queues = queues
        self._copies = copies
        self._changes = changes
        self._resubmissions = resubmissions
        self._now = now

    async def begin(self, obj: Object, snapshot: Snapshot, step: Prepare | Submit | DryRun, memory: Memory) -> Result:
        """Submit the job, prepare that, or show the request; without the volumes that it needs nothing is done."""
        is_first = not isinstance(step, Submit) or step.attempt == 0
        lacking = await self._lacking(snapshot, memory) if is_first else None
        if lacking is not None:
            words = f"{lacking.names}: create it, or create a SlurmJob that names another one"
            _ = await self._reports.show(obj, snapshot, Note(Reason.VOLUME_NOT_FOUND, words), memory)
            return Result((lacking.until - snapshot.now).total_seconds())
        if isinstance(step, DryRun):
            return await self._dry_run(obj, snapshot, step.request, memory)
        if isinstance(step, Prepare):
            return await self._prepare(obj, snapshot, step.request, memory)
        return await self._submit(obj, snapshot, step, memory)

    async def _dry_run(self, obj: Object, snapshot: Snapshot, request: Request, memory: Memory) -> Result:
        shown = await ended(self._access, snapshot.job, request)
        note, wake = note_of(shown.news), shown.wake
        if note is not None and note.reason is Reason.SUBMISSION_REFUSED:
            wake = (self._refuse(snapshot.job, memory, passing=True) - self._now()).total_seconds()
        _ = await self._reports.show(obj, snapshot, shown.news, memory)
        return Result(wake)

    async def _lacking(self, snapshot: Snapshot, memory: Memory) -> Lacking | None:
        """The volumes that the job lacks; they are looked for ever more rarely, whatever brings a pass meanwhile."""
        known = memory.lacking
        if known is not None and snapshot.now < known.until:
            return known
        names = await self._copies.lacking(snapshot.job)
        looks = known.looks if known is not None else 0
        pause = timedelta(seconds=LACKING_S[min(looks, len(LACKING_S) - 1)])
        memory.lacking = Lacking(names, snapshot.now + pause, looks + 1) if names else None
        return memory.lacking

    async def _prepare(self, obj: Object, snapshot: Snapshot, request: Request, memory: Memory) -> Result:
        """Let files be copied to the nodes; the job is submitted in a pass after that."""
        told = await self._copies.prepare(
            snapshot.job, request.grant, request.submission.job, request.cluster, self._now()
        )
        status, _, message = told.condition
        if status == "True":
            note = Note(Reason.PREPARING, "the files of spec.prepare have been copied")
        elif told.wake is None:
            note = Note(
                Reason.PREPARE_FAILED,
                f"{message}; the job is not submitted: correct the cause and create the SlurmJob again",
            )
        else:
            note = Note(Reason.PREPARING, message)
        _ = await self._reports.show(obj, snapshot, note, memory, told)
        return Result(SOON_S if status == "True" else told.wake)

    async def _submit(self, obj: Object, snapshot: Snapshot, step: Submit, memory: Memory) -> Result:
        """Begin in the status, ask Slurm, and write down what it has said."""
        job, request = snapshot.job, step.request
        submission, user = request.submission, request.grant.user
        client = self._access.client(request.cluster)
        try:
            key = await self._access.key(request.cluster)
        except KeyUnknown as error:
            _ = await self._reports.show(obj, snapshot, Note(Reason.KEY_PENDING, str(error)), memory)
            return Result(KEY_VALID_S)
        if client is None:
            return Result(SOON_S)
        try:
            # What is left of the time of a job that has started is reckoned by the clock of its start.
            clock = await slurm_calls.clock(client) if step.again else self._now()
        except SlurmError as error:
            words = cut(str(error), LONGEST)
            note = Note(Reason.SLURM_UNREACHABLE, f"Slurm does not tell its time: {words}")
            _ = await self._reports.show(obj, snapshot, note, memory)
            return Result(RETRY_S)
        started = self._now().replace(microsecond=0)
        lost = late_calls.unanswered_at(job.status.submission, is_lost=step.failed is None)
        name = submission.job.name or job.name
        begun = JobSubmission(attempt=step.attempt, started_at=started, unanswered_at=lost, name=name, again=step.again)
        failed = (*(job.status.failed_attempts or ()), *([step.failed] if step.failed is not None else []))[
            -MOST_FAILED:
        ]
        changes = {
            "submission": begun,
            "job_id": None,
            "user": user,
            "failed_attempts": failed or None,
            "held": None,
            "exit_code": None,
            "signal": None,
            # Of one that is submitted for its nodes: when its time has begun.
            "start_time": job.status.start_time if step.again else None,
            "end_time": None,
            "nodes": None,
            "restarts": None,
            "allocation": job.status.allocation if step.again else None,
            "array": None,
            "tasks": arrays.begun(submission.array),
            "logs": output_path.begun(snapshot.logs, job.status, is_again=step.failed is not None),
            "files": job_files.begun(job.status),
        }
        status = job.status.model_copy(update=changes)
        # For the version that was read: another process that has begun it, or this one, is never overlooked.
        answer = await self._reports.patch(obj, job.status, status, memory, obj["metadata"]["resourceVersion"])
        if (self._now() - started).total_seconds() > BEGINNING_S:
            # Others may look for the job before this call has ended: it is asked for once that is settled.
            logger.info("%s/%s: its submission began too slowly, and waits", job.namespace, job.name)
            return Result(RETRY_S)
        memory.missing_since = None
        if step.again:
            wanted = requests.wanted_again(job, submission, step.attempt, clock)
        else:
            wanted = requests.wanted(job, submission, request.ready, step.attempt)
        try:
            submitted = await slurm_calls.submit(client, user, key, wanted)
        except SlurmError as error:
            return await self._not_submitted(answer, snapshot, status, error, memory)
        self._changes.submission(ACCEPTED)
        memory.refusals, memory.refused_until, memory.refused_generation = 0, None, None
        self._tell_submission(obj, submitted.id, submission, [submitted.message, *map(str, submitted.warnings)])
        taken = status.model_copy(
            update={
                "job_id": submitted.id,
                "state": "Pending",
                "reason": str(Reason.SUBMITTED),
                "summary": "",
                "submission": begun.model_copy(update={"answered_at": self._now()}),
                "submit_time": self._now().replace(microsecond=0),
                "conditions": report.submitted(job, submitted.id, self._now()),
                "observed_generation": job.metadata.generation,
            }
        )
        _ = await self._reports.patch(answer, status, taken, memory)
        self._queues.changed(request.cluster.uid, job.namespace, submitted.id)
        return Result()

    async def _not_submitted(
        self, obj: Object, snapshot: Snapshot, begun: SlurmJobStatus, error: SlurmError, memory: Memory
    ) -> Result:
        """Slurm has refused, or its answer is not known."""
        job = snapshot.job
        words = cut(slurm_calls.told(error, is_external=job.spec.external is not None), LONGEST)
        is_refusal = slurm_calls.is_refusal(error)
        if not is_refusal and not slurm_calls.was_not_sent(error):
            self._changes.submission(UNANSWERED)
            logger.info("%s/%s: the answer to its submission is not known: %s", job.namespace, job.name, words)
            shown = Note(Reason.SUBMITTING, f"Slurm's answer to the submission was lost: {words}")
            unknown = job.model_copy(update={"status": begun})
            _ = await self._reports.show(obj, replace(snapshot, job=unknown), shown, memory)
            return Result(1.0)
        self._changes.submission(REFUSED if is_refusal else NOT_SENT)
        pause, note = RETRY_S, Note(Reason.SLURM_UNREACHABLE, f"Slurm does not answer: {words}")
        memory.refused_until = self._now() + timedelta(seconds=pause)
        if is_refusal:
            until = self._refuse(job, memory, passing=slurm_calls.may_pass(error))
            pause = (until - self._now()).total_seconds()
            told = until.replace(microsecond=0).isoformat()
            message = f"Slurm refused the job ({memory.refusals}), next attempt {told}: {words}"
            if timedelta(seconds=pause) >= RARELY:
                message += RARE
            note = Note(Reason.SUBMISSION_REFUSED, message)
            self._recorder.warning(obj, Reason.SUBMISSION_REFUSED, words)
        # What was begun before, and has no answer, may still lead to a job.
        before = job.status.model_copy(update={"user": begun.user})
        refused = job.model_copy(update={"status": before})
        wanted = report.status(replace(snapshot, job=refused), note)
        _ = await self._reports.patch(obj, begun, wanted, memory)
        return Result(pause)

    def _refuse(self, job: SlurmJob, memory: Memory, *, passing: bool) -> datetime:
        """Note a refusal; returns when the job is submitted again."""
        pause = self._resubmissions.pause(memory.refusals, passing=passing)
        memory.refusals += 1
        memory.refused_generation = job.metadata.generation
        memory.refused_until = self._resubmissions.reserve(job.namespace, self._now(), pause)
        return memory.refused_until

    def _tell_submission(self, obj: Object, job_id: int, submission: Submission, slurms: list[str]) -> None:
        # Slurm says the same several times, at times with some words before it.
        own = [one for one in dict.fromkeys(slurms) if not any(one in other for other in slurms if other != one)]
        notes = [*map(str, submission.conflicts), *submission.without_effect, *filter(None, own)]
        words = cut("; ".join([f"Slurm accepted job {job_id}", *notes]), LONGEST)
        if notes:
            self._recorder.warning(obj, EventReason.JOB_SUBMITTED, words)
        else:
            self._recorder.normal(obj, EventReason.JOB_SUBMITTED, words)


async def ended(access: SlurmAccess, job: SlurmJob, request: Request) -> Plan:
    """What a dry run has come to: its request, or why there is none yet.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    job
        The SlurmJob.
    request
        What would be submitted of it.
    """
    client = access.client(request.cluster)
    if client is None:
        return Plan(wake=RETRY_S)
    try:
        _ = await access.key(request.cluster)
        wanted = requests.wanted(job, request.submission, request.ready, 0)
        slurm_calls.check_release(client, wanted[0])
        sent = await client.submission_request(wanted if len(wanted) > 1 else wanted[0], timeout=slurm_calls.TIMEOUT)
    except KeyUnknown as error:
        return Plan(news=Note(Reason.KEY_PENDING, str(error)), wake=KEY_VALID_S)
    except slurm_calls.REFUSALS as error:
        why = slurm_calls.told(error, is_external=job.spec.external is not None)
        words = f"the job cannot be submitted to this Slurm: {cut(why, LONGEST)}"
        # It is tried again like a job that Slurm has refused: another Slurm may answer by then.
        return Plan(news=Note(Reason.SUBMISSION_REFUSED, words))
    except SlurmError as error:
        words = f"Slurm does not answer: {cut(str(error), LONGEST)}"
        return Plan(news=Note(Reason.SLURM_UNREACHABLE, words), wake=RETRY_S)
    return requests.ended(requests.shown(sent), request.submission)
