"""States of Slurm as what a job object shows: a phase, a reason of its own for each end, and words.

Slurm says a state as a base word and flags beside it (`slurm_client.models.job.JobState`); the words of the data
parsers are all here. A state is the end only when nothing of the job is left on a node, and Slurm
will not run it again. Which record is the job's, from slurmctld or from slurmdbd, is left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slurm_client.models.job import FINISHED, ExitCode, JobState

LONGEST: Final = 200
"""Most characters of a word of Slurm's that is repeated."""


class Phase(StrEnum):
    """Where a job is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    ENDING = "Ending"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a job is in its phase."""

    QUEUED = "Queued"
    HELD = "Held"
    REQUEUED = "Requeued"
    REQUEUED_AND_HELD = "RequeuedAndHeld"
    SPECIAL_EXIT = "SpecialExit"
    RESERVATION_DELETED = "ReservationDeleted"
    DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
    LAUNCH_FAILED = "LaunchFailed"
    STARTING = "Starting"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    STOPPED = "Stopped"
    COMPLETING = "Completing"
    STAGING_OUT = "StagingOut"
    COMPLETED = "Completed"
    EXIT_CODE = "NonZeroExitCode"
    SIGNALED = "Signaled"
    FILE_NOT_OPENED = "FileNotOpened"
    FAILED = "Failed"
    TIMEOUT = "Timeout"
    DEADLINE = "Deadline"
    OUT_OF_MEMORY = "OutOfMemory"
    NODE_FAIL = "NodeFail"
    BOOT_FAIL = "BootFail"
    PREEMPTED = "Preempted"
    CANCELLED = "Cancelled"
    REVOKED = "Revoked"
    LOST = "Lost"
    UNKNOWN_STATE = "UnknownState"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a job object shows.

    Parameters
    ----------
    phase, reason
        Phase and reason.
    message
        One sentence for the user.
    exit_code, signal
        Of the script, once the job has ended; None where Slurm says none.
    """

    phase: Phase
    reason: Reason
    message: str
    exit_code: int | None = None
    signal: int | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended, and will not run again."""
        return self.phase in {Phase.SUCCEEDED, Phase.FAILED}


_ENDS: Final = {
    "BOOT_FAIL": (Reason.BOOT_FAIL, "a node did not boot"),
    "CANCELLED": (Reason.CANCELLED, "the job was cancelled"),
    "DEADLINE": (Reason.DEADLINE, "the job would not have ended before its deadline"),
    "NODE_FAIL": (Reason.NODE_FAIL, "a node of the job failed"),
    "OUT_OF_MEMORY": (Reason.OUT_OF_MEMORY, "the job used more memory than it had asked for"),
    "PREEMPTED": (Reason.PREEMPTED, "the job made room for another with a higher priority"),
    "TIMEOUT": (Reason.TIMEOUT, "the job reached its time limit"),
}
ENDS: Final = frozenset(
    {
        *(reason for reason, _ in _ENDS.values()),
        Reason.COMPLETED,
        Reason.EXIT_CODE,
        Reason.SIGNALED,
        Reason.FILE_NOT_OPENED,
        Reason.FAILED,
        Reason.LAUNCH_FAILED,
        Reason.REVOKED,
    }
)
"""Reasons of jobs that have ended."""

_NOT_OPENED: Final = 53
"""Signal of a job whose output or input slurmstepd cannot open as its user (24.11 and 26.05)."""

_LEAVING: Final = (
    ("COMPLETING", Reason.COMPLETING, "Slurm ends what is left of the job on its nodes"),
    ("STAGE_OUT", Reason.STAGING_OUT, "Slurm copies the job's files out of its burst buffer"),
)
_HOLDS: Final = {
    "REQUEUE_HOLD": (Reason.REQUEUED_AND_HELD, "the job ran, is to run again, and is held until somebody releases it"),
    "SPECIAL_EXIT": (
        Reason.SPECIAL_EXIT,
        "the job ended with an exit code that is special at this site, and is held until somebody releases it",
    ),
    "RESV_DEL_HOLD": (
        Reason.RESERVATION_DELETED,
        "the job's reservation was deleted, and the job is held until somebody releases it",
    ),
}
_HELD: Final = {
    "JobHeldUser": "the job is held by its user",
    "JobHeldAdmin": "the job is held by an administrator",
    "job_requeued_in_held_state": "the job is held",
}
_NEVER: Final = "DependencyNeverSatisfied"
_AGAIN: Final = frozenset({"REQUEUED", "REQUEUE_FED", "EXPEDITING"})
_STARTING: Final = frozenset({"CONFIGURING", "POWER_UP_NODE"})


def shown(
    state: JobState,
    *,
    exit_code: ExitCode | None = None,
    slurms_reason: str = "",
    hold: bool = False,
    restarts: int = 0,
    files: str = "",
) -> Shown:
    """Say what a job object shows for a state of Slurm.

    Parameters
    ----------
    state
        Base state and flags.
    exit_code
        How the script ended.
    slurms_reason
        Why it is pending, or ended as it did, in Slurm's word: ``Resources``, ``JobHeldUser``.
    hold
        Whether the record says that the job is held.
    restarts
        How often it was requeued; slurmctld takes the flags for that away before it runs again (24.11 and 26.05).
    files
        The job's output, error and input, where Slurm says them.
    """
    for flag, reason, message in _LEAVING:
        if flag in state:
            return Shown(Phase.ENDING, reason, message)
    runs_again = not state.flags.isdisjoint(_AGAIN | _HOLDS.keys())
    if state.base in FINISHED and not runs_again:
        return _end(state, exit_code, files)
    if state.base == "PENDING" or runs_again:
        again = restarts > 0 or not state.flags.isdisjoint(_AGAIN)
        return _pending(state, " ".join(slurms_reason[:LONGEST].split()), hold=hold, again=again)
    if state.base in {"RUNNING", "SUSPENDED"}:
        return _running(state)
    word = " ".join(str(state)[:LONGEST].split())
    return Shown(Phase.UNKNOWN, Reason.UNKNOWN_STATE, f"Slurm's state {word} is not known here")


def _end(state: JobState, exit_code: ExitCode | None, files: str) -> Shown:
    code = exit_code.return_code if exit_code else None
    signal = (exit_code.signal or None) if exit_code else None
    if state.base in _ENDS:
        reason, message = _ENDS[state.base]
        if "REVOKED" in state:
            reason, message = Reason.REVOKED, "the job runs in another cluster of the federation"
        return Shown(Phase.FAILED, reason, message, code, signal)
    if signal:
        return Shown(Phase.FAILED, *_signaled(signal, files), code, signal)
    if code:
        return Shown(Phase.FAILED, Reason.EXIT_CODE, f"the script ended with exit code {code}", code)
    if state.base == "COMPLETED":
        return Shown(Phase.SUCCEEDED, Reason.COMPLETED, "the script ended with exit code 0", code)
    if "LAUNCH_FAILED" in state:
        return Shown(Phase.FAILED, Reason.LAUNCH_FAILED, "the job could not be started on its node", code)
    return Shown(Phase.FAILED, Reason.FAILED, "the job failed, and Slurm names no exit code", code)


def _signaled(signal: int, files: str) -> tuple[Reason, str]:
    if signal != _NOT_OPENED:
        return Reason.SIGNALED, f"the script was ended by signal {signal}"
    return Reason.FILE_NOT_OPENED, (
        f"Slurm could not open a file of the job{f': {files}' if files else ''}; its user must be able to write "
        f"output and error on the node, and to read input (0:{signal}, or the script was ended by signal {signal})"
    )


def _pending(state: JobState, slurms_reason: str, *, hold: bool, again: bool) -> Shown:
    held = _held(state, slurms_reason, hold=hold, again=again)
    if held is not None:
        return held
    if "REVOKED" in state:
        return Shown(Phase.PENDING, Reason.REVOKED, "the job waits in another cluster of the federation")
    if not state.flags.isdisjoint(_STARTING):
        return _starting()
    reason, message = Reason.QUEUED, "the job is in the queue"
    if "LAUNCH_FAILED" in state:
        reason, message = Reason.LAUNCH_FAILED, "the job could not be started on its node, and waits"
    elif again:
        reason, message = Reason.REQUEUED, "the job ran before, and is to run again"
    why = f", waiting for: {slurms_reason}" if slurms_reason not in {"", "None"} else ""
    return Shown(Phase.PENDING, reason, f"{message}{why}")


def _held(state: JobState, slurms_reason: str, *, hold: bool, again: bool) -> Shown | None:
    """What is shown of a job that does not start before somebody does something about it."""
    for flag, (reason, message) in _HOLDS.items():
        if flag in state:
            return Shown(Phase.PENDING, reason, message)
    if slurms_reason == _NEVER:
        message = "a job that this one waits for did not end as it was to, so this one will never start"
        return Shown(Phase.PENDING, Reason.DEPENDENCY_NEVER_SATISFIED, message)
    if again and (hold or slurms_reason in _HELD):
        return Shown(Phase.PENDING, *_HOLDS["REQUEUE_HOLD"])
    if hold or slurms_reason in _HELD:
        return Shown(Phase.PENDING, Reason.HELD, _HELD.get(slurms_reason, "the job is held"))
    return None


def _running(state: JobState) -> Shown:
    if state.base == "SUSPENDED":
        return Shown(Phase.SUSPENDED, Reason.SUSPENDED, "the job is suspended, and keeps its nodes")
    if not state.flags.isdisjoint(_STARTING):
        return _starting()
    if "STOPPED" in state:
        return Shown(Phase.SUSPENDED, Reason.STOPPED, "the job was stopped by a signal, and keeps its nodes")
    return Shown(Phase.RUNNING, Reason.RUNNING, "the job runs")


def _starting() -> Shown:
    return Shown(Phase.PENDING, Reason.STARTING, "the job has its nodes, and they are being made ready")
