"""What a pass has found about a SlurmJob's pods, for its status: the pod with its output, and those that copy files."""

from __future__ import annotations

from dataclasses import dataclass

from slinky_api.conditions import Reason, SlurmJobCondition
from slinky_api.v1alpha1.slurmjob.files import JobFilesStatus


@dataclass(frozen=True, slots=True)
class LogsReport:
    """The state of the pod with a job's output.

    Parameters
    ----------
    condition
        Status, reason and message of `LogsAvailable`.
    wake
        Seconds until the next look; None to wait for an event.
    is_complete
        Whether the pod knows how the job has ended, or never will.
    """

    condition: tuple[str, Reason, str]
    wake: float | None = None
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class FilesReport:
    """The state of the pods that copy a job's files.

    Parameters
    ----------
    kind
        Type of the condition.
    condition
        Its status, reason and message.
    files
        For the status.
    wake
        Seconds until the next look; None to wait for an event.
    """

    kind: SlurmJobCondition
    condition: tuple[str, Reason, str]
    files: JobFilesStatus
    wake: float | None = None
