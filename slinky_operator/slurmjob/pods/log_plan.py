"""What the followers of a job's output get next, and what is shown of their pod. Pure.

What has been written to the Secret counts where Slurm does not know any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import JobLogPlace, JobLogStatus, SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs.follower.job_file import Job, JobState
from slinky_operator.slurmjob.model.news import LogsReport
from slinky_operator.slurmjob.pods import log_pod, pod_state, routes
from slinky_operator.slurmjob.pods.log_facts import End, Facts
from slinky_operator.slurmjob.pods.routes import Route

RETRY_S: Final = 5.0
"""Seconds until the next look for what is not there yet."""

_STDOUT: Final = "stdout"

Routes = tuple[tuple[str, Route], ...]
"""How each stream is reached."""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """What is known of a job and of the pod with its output.

    Parameters
    ----------
    job
        The SlurmJob, with the status that is about to be written.
    written
        What its Secret has; None if there is none.
    facts
        What Slurm says of the part of the job that is shown, or has said last; None if nothing.
    end
        How the whole job has ended; None if it has not.
    may_end
        Whether no other submission follows.
    now
        Seconds since the epoch.
    """

    job: SlurmJob
    written: Job | None
    facts: Facts | None
    end: End | None
    may_end: bool
    now: float


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What is done, and shown.

    Parameters
    ----------
    report
        What is shown once that is done.
    file
        What Secret and pod are to have; None if nothing is written.
    """

    report: LogsReport
    file: Job | None = None


def facts_of(snapshot: LogSnapshot) -> Facts | None:
    """What is known of the part of the job: it has ended with the whole."""
    facts, end = snapshot.facts, snapshot.end
    if facts is not None and facts.end is None and end is not None:
        return replace(facts, state=JobState.ENDED, end=end)
    return facts


def is_to_be_reached(snapshot: LogSnapshot) -> bool:
    """Whether the routes to the job's files matter now."""
    written, facts = snapshot.written, facts_of(snapshot)
    if facts is None or not _is_placed(snapshot, facts) or (written is not None and written.state is JobState.ENDED):
        return False
    return not (facts.state is JobState.PENDING and written is not None)


def _is_placed(snapshot: LogSnapshot, facts: Facts) -> bool:
    """Whether Slurm has said where the job runs or ran, and that is worth a pod."""
    return bool(facts.node) and (facts.end is None or snapshot.may_end or snapshot.written is not None)


def plan(snapshot: LogSnapshot, reached: Routes, retry: float | None) -> LogPlan:
    """Decide on the next step.

    Parameters
    ----------
    snapshot
        What is known.
    reached
        The routes to the files, where `is_to_be_reached`.
    retry
        Seconds until routes are looked for again; None if no other will come.
    """
    written, facts = snapshot.written, facts_of(snapshot)
    if written is not None and written.state is JobState.ENDED:
        return _complete(snapshot, written, ())
    if facts is None or not _is_placed(snapshot, facts):
        return _without_record(snapshot)
    if facts.state is JobState.PENDING and written is not None:
        # What the earlier run has written can still be read.
        file = replace(written, state=JobState.PENDING)
    else:
        file = _file(snapshot, facts, reached)
    if written is None and not file.streams:
        why = _unreached(reached) or "the job writes no output to a file"
        is_complete = facts.end is not None and retry is None
        return LogPlan(LogsReport(("False", Reason.OUTPUT_OUT_OF_REACH, why), retry, is_complete))
    if file.state is JobState.ENDED:
        return _complete(snapshot, file, reached)
    return LogPlan(_shown(snapshot, reached, retry), file)


def _without_record(snapshot: LogSnapshot) -> LogPlan:
    """Slurm has no record with a node: the job has not started, or is forgotten."""
    written, end = snapshot.written, snapshot.end
    if end is None:
        if written is not None:
            return LogPlan(LogsReport(("True", Reason.LOGS_SHOWN, _command(snapshot.job))))
        return LogPlan(LogsReport(("Unknown", Reason.JOB_NOT_STARTED, "the job has not started")))
    if written is None:
        words = "the job has ended, and Slurm has no record of its node"
        return LogPlan(LogsReport(("False", Reason.JOB_NOT_STARTED, words), is_complete=True))
    ended = replace(written, state=JobState.ENDED, exit_code=end.exit_code, signal=end.signal)
    return _complete(snapshot, ended, ())


def _complete(snapshot: LogSnapshot, file: Job, reached: Routes) -> LogPlan:
    """The pod has been informed of the end: nothing more is done."""
    why = _unreached(reached)
    status = "False" if why or not file.streams else "True"
    reason = Reason.OUTPUT_OUT_OF_REACH if status == "False" else Reason.LOGS_SHOWN
    shown = _command(snapshot.job) if file.streams else "no output could be read before the job ended"
    return LogPlan(LogsReport((status, reason, why or shown), is_complete=True), file)


def _file(snapshot: LogSnapshot, facts: Facts, reached: Routes) -> Job:
    """What followers are to know; a file that cannot be reached now stays where it was, unless it begins again."""
    written, status = snapshot.written, snapshot.job.status.logs or JobLogStatus()
    attempt = status.starts + facts.restarts
    places = dict(written.streams) if written is not None and written.attempt == attempt else {}
    places |= {stream: route.place for stream, route in reached if route.place is not None}
    end, state = facts.end or End(), facts.state
    if state is JobState.ENDED and not snapshot.may_end:
        end, state = End(), JobState.RUNNING
    return Job(facts.job, state, attempt, facts.node, end.exit_code, end.signal, places)


def _shown(snapshot: LogSnapshot, reached: Routes, retry: float | None) -> LogsReport:
    why, job = _unreached(reached), snapshot.job
    condition = ("False", Reason.OUTPUT_OUT_OF_REACH, why) if why else ("True", Reason.LOGS_SHOWN, _command(job))
    return LogsReport(condition, routes.renewed_in(job.uid, snapshot.now) if retry is None else retry)


def pod_ended(pod: Object, pause: float) -> LogsReport:
    """What is shown of a pod that has ended before its job, until another takes its place."""
    words = f"pod {pod['metadata']['name']} ended before its job: {pod_state.end_message(pod)}"
    is_there = pod["metadata"].get("deletionTimestamp")
    words += f"; the operator creates another one {'once it is gone' if is_there else 'within 10 min'}"
    return LogsReport(("False", Reason.LOG_POD_ENDED, words), pause)


def pod_gone(job: SlurmJob) -> LogsReport:
    """What is shown once somebody has deleted the pod of a job that has ended: it is not made again."""
    status = job.status
    words = f"pod {log_pod.name_of(job.name)} was deleted after the job ended; the operator does not create it again"
    where = f"; the output was in {status.output} on node {status.nodes}" if status.output and status.nodes else ""
    return LogsReport(("False", Reason.LOG_POD_GONE, words + where), is_complete=True)


def _command(job: SlurmJob) -> str:
    return f"kubectl logs {log_pod.name_of(job.name)} -c stdout"


def _unreached(reached: Routes) -> str:
    return "; ".join(f"{stream}: {route.why}" for stream, route in reached if route.place is None)


def without_pod(logs: JobLogStatus, facts: Facts | None, end: End | None) -> LogsReport:
    """Say where the output of a job is that no pod shows: it stays in the status, as Slurm forgets jobs.

    Parameters
    ----------
    logs
        What is known of it.
    facts
        What Slurm says of the job; None if it has no record.
    end
        How the job has ended; None if it has not.
    """
    place = logs.place
    if facts is not None and facts.node:
        path = dict(facts.files).get(_STDOUT, "")
        place = JobLogPlace(
            job=facts.job,
            node=facts.node,
            uid=facts.uid,
            gid=facts.gid,
            path=path,
            starts=logs.starts + facts.restarts,
        )
    return LogsReport(_of_place(place, end), is_complete=end is not None, place=place)


def _of_place(place: JobLogPlace | None, end: End | None) -> tuple[str, Reason, str]:
    if place is None and end is None:
        return "Unknown", Reason.JOB_NOT_STARTED, "the job has not started"
    if place is None:
        return "False", Reason.JOB_NOT_STARTED, "the job has ended, and Slurm has no record of its node"
    if not place.path:
        return "False", Reason.OUTPUT_OUT_OF_REACH, "the job writes no output to a file"
    if not routes.needs_server(place.path, None):
        words = f"{place.path} on node {place.node} is not in the folder of the job log server"
        return "False", Reason.OUTPUT_OUT_OF_REACH, words
    return "True", Reason.LOGS_SHOWN, f"the output is {place.path} on node {place.node}"
