"""Cancellation of a job whose object stays: when it is asked for, and what is said of it. Pure.

It is asked for by an annotation, as long as that is there, or by the end of the work of a job without a script; nothing
of it is kept in the status. A job that Slurm has is cancelled as for a deletion, and ends as Slurm says. One that Slurm
never had ends here.
"""

from __future__ import annotations

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs.phases import Phase
from slinky_operator.slurmjob.model.news import Conclusion, Note
from slinky_operator.slurmjob.model.stages import external
from slinky_operator.slurmjob.model.steps import Plan


def is_asked(job: SlurmJob) -> bool:
    """Whether the job is to be cancelled although its object stays."""
    return external.end_of(job) is not None or _is_annotated(job)


def _is_annotated(job: SlurmJob) -> bool:
    return labels.is_true(job.metadata.annotations, labels.ANNOTATION_CANCEL)


def not_submitted(job: SlurmJob) -> Plan:
    """The end of a job that Slurm does not have, and that is not submitted any more."""
    end = external.end_of(job)
    if end is not None:
        return external.concluded(end, "that was said before the job was submitted, and Slurm never had it")
    again = " again" if job.status.failed_attempts else ""
    words = f"the job was cancelled before it was submitted{again}, as {_SOURCE}"
    return Plan(news=Conclusion(Phase.FAILED.value, Note(Reason.CANCELLED, words)))


def awaiting(job: SlurmJob, why: Note) -> Note:
    """What is shown while Slurm cannot be asked about a job that it may have."""
    if not (job.deleting or is_asked(job)):
        return why
    return why._replace(message=f"the job will be cancelled once Slurm answers: {why.message}")


def done(job: SlurmJob, number: int) -> str:
    """What an Event says once Slurm has taken the order."""
    if external.end_of(job) is not None:
        return f"job {number} was cancelled, since its work has ended (spec.external.ended)"
    if not (job.deleting or _is_annotated(job)):
        return f"job {number} was cancelled, since it is of no use any more"
    why = "since the SlurmJob is being deleted" if job.deleting else f"as {_SOURCE}"
    return f"job {number} was cancelled, {why}"


_SOURCE = f"annotation {labels.ANNOTATION_CANCEL} asks"
