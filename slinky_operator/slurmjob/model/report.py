"""The status of a SlurmJob, and what is worth an Event. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from slinky_api.conditions import Reason, SlurmJobCondition, find, merge
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.jobs.phases import Phase
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.parts import condition
from slinky_operator.slurmjob.model.news import Conclusion, FilesReport, LogsReport, News, NoNews, Note, Record
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import attempts

WAITING: Final = "Waiting"
"""State of a job that Slurm does not have yet."""

_HINTS: Final = (
    ("PartitionDown", "its partition is not UP and starts no jobs"),
    ("PartitionInactive", "its partition is not UP and starts no jobs"),
    ("PartitionTimeLimit", "it requests more time than its partition allows"),
    ("Assoc", "a limit of its account or user is reached"),
    ("QOS", "a limit of its QOS is reached"),
    ("ReqNodeNotAvail", "nodes that it needs are not available"),
)
"""First letters of Slurm's words for why a job waits that may need help, and what they mean."""

LONGEST_SUMMARY: Final = 200
LONGEST_MESSAGE: Final = 2000

_WAITS: Final = frozenset({Reason.CLUSTER_NOT_FOUND, Reason.CLUSTER_NOT_READY, Reason.SLURM_UNREACHABLE})
"""Reasons that are no news about a job that Slurm has."""


def status(snapshot: Snapshot, news: News) -> SlurmJobStatus:
    """Build the status that shows the news."""
    job = snapshot.job
    if isinstance(news, Conclusion):
        return _over(snapshot, news)
    if isinstance(news, Record):
        return _seen(job, news, snapshot.now)
    if isinstance(news, NoNews):
        return job.status.model_copy(update={"observed_generation": job.metadata.generation})
    return _noted(snapshot, news)


def _noted(snapshot: Snapshot, note: Note) -> SlurmJobStatus:
    job, stored, (reason, message) = snapshot.job, snapshot.job.status, note
    if stored.job_id is not None:
        # What was last known stays shown.
        known = find(stored.conditions, SlurmJobCondition.SUBMITTED)
        return _update(
            job,
            snapshot.now,
            {"summary": cut(message, LONGEST_SUMMARY)},
            (SlurmJobCondition.SUBMITTED, "True", reason, message),
            *((one.type, one.status, one.reason, one.message) for one in stored.conditions if one != known),
        )
    return _update(
        job,
        snapshot.now,
        {"state": WAITING, "reason": str(reason), "summary": cut(message, LONGEST_SUMMARY)},
        (SlurmJobCondition.SUBMITTED, _without_number(stored, reason), reason, message),
        (SlurmJobCondition.RUNNING, "False", reason, message),
        (SlurmJobCondition.FINISHED, "False", reason, message),
    )


_UNKNOWN: Final = frozenset({Reason.SUBMITTING, Reason.SUBMISSION_UNKNOWN})


def _without_number(stored: SlurmJobStatus, reason: Reason) -> str:
    """Status of `Submitted` without the number of a job: what was begun, and has no answer, may be in Slurm."""
    begun = stored.submission
    is_open = begun is not None and begun.answered_at is None
    return "Unknown" if is_open or reason in _UNKNOWN else "False"


def _over(snapshot: Snapshot, news: Conclusion) -> SlurmJobStatus:
    """Status of a job that counts as ended although Slurm has not said so."""
    job, note = snapshot.job, news.note
    changes: dict[str, Any] = {
        "state": news.state,
        "reason": str(note.reason),
        "summary": cut(note.message, LONGEST_SUMMARY),
    }
    said = [(SlurmJobCondition.RUNNING, "False", *note), (SlurmJobCondition.FINISHED, "True", *note)]
    if job.status.job_id is None:
        said.append((SlurmJobCondition.SUBMITTED, "Unknown" if note.reason in _UNKNOWN else "False", *note))
    else:
        # What was said while its end was looked for is over too.
        words = f"Slurm had accepted it as job {job.status.job_id}"
        said.append((SlurmJobCondition.SUBMITTED, "True", Reason.SUBMITTED, words))
    prepared = find(job.status.conditions, SlurmJobCondition.PREPARED)
    if prepared is not None and prepared.status != "True":
        said.append((SlurmJobCondition.PREPARED, "False", *note))
    if news.seen is not None:
        changes |= {"array": news.seen.array, "tasks": news.seen.tasks, "end_time": news.seen.end_time}
    if news.exit_code is not None:
        changes["exit_code"] = news.exit_code
    if news.request is not None:
        changes["request"] = news.request
        changes["user"] = snapshot.granted.user if isinstance(snapshot.granted, tenants.Grant) else None
    return _update(job, snapshot.now, changes, *said)


def submitted(job: SlurmJob, job_id: int, now: datetime) -> tuple[Condition, ...]:
    """Conditions of a job that Slurm has just taken."""
    words = f"Slurm has accepted it as job {job_id}"
    status = _update(
        job,
        now,
        {},
        (SlurmJobCondition.SUBMITTED, "True", Reason.SUBMITTED, words),
        (SlurmJobCondition.RUNNING, "False", Reason.SUBMITTED, words),
        (SlurmJobCondition.FINISHED, "False", Reason.SUBMITTED, words),
    )
    return status.conditions


def invalid(job: SlurmJobStatus, message: str, generation: int, now: datetime) -> SlurmJobStatus:
    """Status of an object that cannot be read; what was known of its job stays."""
    words = cut(message, LONGEST_MESSAGE)
    refused = condition(SlurmJobCondition.SUBMITTED, Reason.INVALID_SPEC, words, holds=job.job_id is not None)
    refused = refused.model_copy(update={"observed_generation": generation})
    others = [one for one in job.conditions if one.type != SlurmJobCondition.SUBMITTED]
    changes: dict[str, Any] = {
        "summary": cut(message, LONGEST_SUMMARY),
        "conditions": merge(job.conditions, [refused, *others], now),
        "observed_generation": generation,
    }
    if job.job_id is None:
        changes |= {"state": WAITING, "reason": str(Reason.INVALID_SPEC)}
    return job.model_copy(update=changes)


def _seen(job: SlurmJob, news: Record, now: datetime) -> SlurmJobStatus:
    seen, shown = news.seen, news.seen.shown
    is_waiting = shown.phase is Phase.PENDING
    is_over = shown.is_finished and not news.is_followed
    changes: dict[str, Any] = {
        "state": shown.phase.value,
        "reason": shown.reason.value,
        "summary": cut(shown.message, LONGEST_SUMMARY),
        "job_id": seen.job_id,
        "user": seen.user or job.status.user,
        "account": seen.account or None,
        "partition": seen.partition or None,
        "nodes": seen.nodes or None,
        "slurm_reason": seen.slurm_reason if seen.slurm_reason not in {"", "None"} else None,
        "submit_time": seen.submit_time,
        "expected_start_time": seen.start_time if is_waiting else None,
        "start_time": None if is_waiting else seen.start_time,
        "end_time": seen.end_time if shown.is_finished else None,
        "deadline": seen.deadline if job.spec.external is not None else None,
        "exit_code": shown.exit_code,
        "signal": shown.signal,
        "restarts": seen.restarts or None,
        "array": seen.array,
        "tasks": seen.tasks,
        "output": seen.output or job.status.output,
        "held": _held(job, news),
        "allocation": news.allocation if news.allocation is not None else job.status.allocation,
    }
    message = cut(shown.message, LONGEST_MESSAGE)
    submitted = (SlurmJobCondition.SUBMITTED, "True", Reason.SUBMITTED, f"Slurm has accepted it as job {seen.job_id}")
    running = "True" if shown.phase is Phase.RUNNING else "False"
    finished = ("True" if is_over else "False", shown.reason.value, message)
    if news.is_followed and job.status.submission is not None:
        reason, words = attempts.words(job, seen)
        finished = ("False", str(reason), words)
        submission = job.status.submission.model_copy(update={"failure": attempts.failure_of(seen)})
        changes |= {"state": WAITING, "reason": str(reason), "submission": submission}
        changes |= {"summary": cut(words, LONGEST_SUMMARY)}
    elif not shown.is_finished and job.status.submission is not None and job.status.submission.failure is not None:
        # The job that had failed is in Slurm's queue again.
        changes |= {"submission": job.status.submission.model_copy(update={"failure": None})}
    if news.note is not None:
        submitted = (SlurmJobCondition.SUBMITTED, "True", *news.note)
        changes |= {"summary": cut(news.note.message, LONGEST_SUMMARY)}
    return _update(
        job,
        now,
        changes,
        submitted,
        (SlurmJobCondition.RUNNING, running, shown.reason.value, message),
        (SlurmJobCondition.FINISHED, *finished),
    )


def _held(job: SlurmJob, news: Record) -> bool | None:
    """Whether the operator holds the job."""
    if news.seen.is_finished or news.is_held is False:
        return None
    return True if news.is_held else job.status.held


def _update(
    job: SlurmJob, now: datetime, changes: dict[str, Any], *conditions: tuple[str, str, str, str]
) -> SlurmJobStatus:
    given = {str(kind) for kind, *_ in conditions}
    others = [one for one in job.status.conditions if one.type not in given]
    merged = merge(job.status.conditions, [*(_condition(job, one) for one in conditions), *others], now)
    return job.status.model_copy(
        update={**changes, "conditions": merged, "observed_generation": job.metadata.generation}
    )


def _condition(job: SlurmJob, said: tuple[str, str, str, str]) -> Condition:
    """Make a condition of type, status, reason and message."""
    kind, status, reason, message = said
    return Condition.model_validate(
        {
            "type": str(kind),
            "status": status,
            "reason": str(reason),
            "message": cut(message, LONGEST_MESSAGE),
            "observedGeneration": job.metadata.generation,
        }
    )


def with_logs(job: SlurmJob, status: SlurmJobStatus, told: LogsReport | None, now: datetime) -> SlurmJobStatus:
    """Add what is to be said of the pod with the output; what was said before stays if there is nothing new."""
    kind = SlurmJobCondition.LOGS_AVAILABLE
    known = find(job.status.conditions, kind)
    if told is not None:
        value, reason, message = told.condition
        logs = status.logs
        if reason is Reason.OUTPUT_OUT_OF_REACH and logs is not None and logs.not_served:
            message = f"{message}; the operator set no output file for the job: {logs.not_served}"
        known = _condition(job, (kind, value, reason, message))
        if logs is not None:
            changes = {"place": told.place or logs.place, "is_complete": told.is_complete or logs.is_complete}
            status = status.model_copy(update={"logs": logs.model_copy(update=changes)})
    if known is None:
        return status
    wanted = [one for one in status.conditions if one.type != kind]
    return status.model_copy(update={"conditions": merge(job.status.conditions, [*wanted, known], now)})


def with_files(job: SlurmJob, status: SlurmJobStatus, told: FilesReport | None, now: datetime) -> SlurmJobStatus:
    """Add what is to be said of the job's files."""
    if told is None:
        return status
    value, reason, message = told.condition
    known = _condition(job, (told.kind, value, reason, message))
    others = [one for one in status.conditions if one.type != told.kind]
    merged = merge(job.status.conditions, [*others, known], now)
    return status.model_copy(update={"files": told.files, "conditions": merged})


def trouble(stored: SlurmJobStatus, told: FilesReport | None) -> tuple[Reason, str] | None:
    """What an Event says of results that are not collected, when that begins and when it stays so; None otherwise."""
    if told is None or told.condition[0] != "False":
        return None
    _, reason, message = told.condition
    before = find(stored.conditions, told.kind)
    return (reason, message) if before is None or before.reason != reason or told.wake is None else None


def waits(stored: SlurmJobStatus, wanted: SlurmJobStatus) -> tuple[str, str] | None:
    """What an Event says of a job that may need help to start: Slurm's word, and a sentence; None if it is no news."""
    words = wanted.slurm_reason or ""
    word, is_same = words.partition(",")[0], stored.job_id == wanted.job_id
    if wanted.state != Phase.PENDING.value or (is_same and word == (stored.slurm_reason or "").partition(",")[0]):
        return None
    hint = next((hint for prefix, hint in _HINTS if word.startswith(prefix)), None)
    return (word, f"job {wanted.job_id} waits in the queue ({words}): {hint}") if hint is not None else None


def end(status: SlurmJobStatus) -> tuple[bool, str] | None:
    """What the Event about the end of a job says: whether it went well, and the words; None if none has ended."""
    condition = find(status.conditions, SlurmJobCondition.FINISHED)
    if condition is None or condition.status != "True" or status.job_id is None:
        return None
    return status.state == Phase.SUCCEEDED.value, f"job {status.job_id}: {condition.message}"


def left_behind(status: SlurmJobStatus) -> str:
    """What the Event about a job says that nobody can cancel."""
    if status.job_id is not None:
        return f"job {status.job_id} was not cancelled: its Cluster is gone"
    return (
        "Slurm's answer to the submission was lost and the Cluster is gone: a job may still run and was not cancelled"
    )
