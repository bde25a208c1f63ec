"""What Slurm's record says of the part of a job whose output is shown: the job, or one task of an array. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs.phases import Phase, shown
from slinky_operator.pod_programs.joblogs.follower.job_file import JobState
from slurm_client.models import Job

UNKNOWN_END: Final = 255
"""Exit code of a follower if Slurm has forgotten how the job ended."""

FAILED: Final = 1
"""The same if the job failed, and Slurm names neither exit code nor signal."""

LONGEST_NAME: Final = 253
"""Characters of the name of a node, as of any host."""

LONGEST_PATH: Final = 4095
"""Characters of a path, as Linux takes it."""

_NO_FILE: Final = frozenset({"", "/dev/null"})


@dataclass(frozen=True, slots=True)
class End:
    """How a job has ended."""

    exit_code: int = 0
    signal: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """A job, or a task, as Slurm has it.

    Parameters
    ----------
    job
        Number, with that of the task.
    node
        Where its script runs or ran; empty before.
    uid, gid
        Of its user, from Slurm's record.
    restarts
        How often Slurm has run it again.
    files
        Paths by stream; none for what goes nowhere, or where another stream goes.
    end
        None while it has not ended.
    """

    job: str
    state: JobState
    node: str
    uid: int | None
    gid: int | None
    restarts: int
    files: tuple[tuple[str, str], ...]
    end: End | None = None


def of(records: Sequence[Job], task: int | None) -> Facts | None:
    """Read the record of a job, or of a task; None if there is none.

    Parameters
    ----------
    records
        All of the job.
    task
        Of an array; None for a job that is none.
    """
    fitting = [record for record in records if record.array_task_id == task and not record.het_job_offset]
    if not fitting:
        return None
    job = fitting[0]
    seen = shown(
        job.state, exit_code=job.exit_code, slurms_reason=job.state_reason, hold=job.hold, restarts=job.restarts
    )
    if seen.is_finished:
        state = JobState.ENDED
    else:
        state = JobState.PENDING if seen.phase is Phase.PENDING else JobState.RUNNING
    number = str(job.array_job_id or job.id)
    return Facts(
        job=number if task is None else f"{number}_{task}",
        state=state,
        node=_bounded(job.batch_host or (job.nodes[0] if job.nodes else ""), LONGEST_NAME),
        uid=job.user_id,
        gid=job.group_id,
        restarts=job.restarts,
        files=_files(job),
        end=_end(seen.phase, seen.exit_code, seen.signal) if seen.is_finished else None,
    )


def _files(job: Job) -> tuple[tuple[str, str], ...]:
    output = _bounded(job.standard_output_expanded, LONGEST_PATH)
    error = _bounded(job.standard_error_expanded, LONGEST_PATH)
    found = {"stdout": output} | ({"stderr": error} if error != output else {})
    return tuple((stream, path) for stream, path in found.items() if path not in _NO_FILE)


def _bounded(text: str, longest: int) -> str:
    """A text of Slurm; nothing for one that is too long for a file's or a node's name."""
    return text if len(text) <= longest else ""


def _end(phase: str, exit_code: int | None, signal: int | None) -> End:
    code = exit_code or 0
    return End(code or (FAILED if phase == Phase.FAILED and not signal else 0), signal or 0)


def end_of(status: SlurmJobStatus) -> End | None:
    """How a whole job has ended, as its object shows it; None if it has not."""
    finished = find(status.conditions, SlurmJobCondition.FINISHED)
    if finished is None or finished.status != "True":
        return None
    if finished.reason == Reason.END_NOT_SEEN:
        return End(UNKNOWN_END)
    return _end(status.state, status.exit_code, status.signal)
