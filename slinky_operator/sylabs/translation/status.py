"""The old ``status``, which said the phase of a pod in one word: that of a SlurmJob, and that of a refusal."""

from __future__ import annotations

from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.errors import SpecError
from slinky_api.sylabs.common import JobStatus, Word
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs.phases import Phase

_LONGEST: Final = 1024

_WORDS: Final[dict[str, Word]] = {
    "": "Pending",
    "Waiting": "Pending",
    Phase.PENDING: "Pending",
    Phase.RUNNING: "Running",
    Phase.SUSPENDED: "Running",
    Phase.ENDING: "Running",
    Phase.SUCCEEDED: "Succeeded",
    Phase.FAILED: "Failed",
}

_INSTEAD: Final[dict[str, Word]] = {
    Reason.INVALID_SPEC: "Failed",
    Reason.SUBMISSION_UNKNOWN: "Unknown",
    Reason.PREPARE_FAILED: "Failed",
}
"""Of a SlurmJob that Slurm does not have, by its reason."""


def status_of(job: SlurmJobStatus, *, generation: int) -> JobStatus:
    """Return the old status for that of a SlurmJob.

    Parameters
    ----------
    job
        The status of the SlurmJob.
    generation
        The generation of the old spec that it was made of.
    """
    word = _WORDS.get(job.state, "Unknown")
    message = job.summary
    if job.job_id is None:
        word = _INSTEAD.get(job.reason, word)
        submitted = find(job.conditions, SlurmJobCondition.SUBMITTED)
        message = submitted.message if submitted is not None else message
    collected = find(job.conditions, SlurmJobCondition.RESULTS_COLLECTED)
    if collected is not None and collected.status == "False":
        message = "; ".join(filter(None, [message, f"results: {collected.message}"]))
    return shown(word, job.reason, message, generation=generation, job_id=job.job_id)


def refused(error: SpecError, *, generation: int) -> JobStatus:
    """Return the status of an object from which no job can be made.

    Parameters
    ----------
    error
        The field, and what is wrong with it.
    generation
        The generation of the spec.
    """
    return shown("Failed", Reason.INVALID_SPEC, str(error), generation=generation)


def shown(word: Word, reason: str, message: str, *, generation: int, job_id: int | None = None) -> JobStatus:
    """Return a status, with a message that is cut to what the field takes."""
    return JobStatus(
        status=word,
        job_id=job_id,
        reason=str(reason),
        message=message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…",
        observed_generation=generation,
    )
