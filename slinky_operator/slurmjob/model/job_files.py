"""What must be known of a job to reach its files, kept in the status while it runs: Slurm may forget it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_api.v1alpha1.slurmjob.files import JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slurm_client.models import Job as SlurmRecord

LONGEST: Final = 4096
"""Characters of a path, or of the name of a node, that is kept."""

_NO_FILE: Final = frozenset({"", "/dev/null"})


def is_collecting(job: SlurmJob) -> bool:
    """Whether results of a job that has ended are still to be collected."""
    known = job.status.files
    done = known.results if known is not None else None
    return bool(job.spec.results) and (done is None or not done.is_complete)


def needs_preparation(job: SlurmJob) -> bool:
    """Whether files are still to be copied before the job is submitted."""
    known = job.status.files
    done = known.prepare if known is not None else None
    return bool(job.spec.prepare) and (
        done is None or not done.is_complete or not all(copy.is_copied for copy in done.copies)
    )


def kept(job: SlurmJob, status: SlurmJobStatus, records: Sequence[SlurmRecord]) -> SlurmJobStatus:
    """Add to a status what Slurm's records say of the job's files; nothing without `spec.results`.

    Parameters
    ----------
    job
        The SlurmJob.
    status
        What is about to be written.
    records
        All that Slurm has of the job now.
    """
    if not job.spec.results or not records:
        return status
    record = next((one for one in records if not one.het_job_offset), records[0])
    is_array = any(one.array_task_id is not None or one.array_job_id for one in records)
    known = status.files or JobFilesStatus()
    node = record.batch_host or (record.nodes[0] if record.nodes else "") or known.node
    output = _bounded(record.standard_output_expanded)
    found = known.model_copy(
        update={
            "uid": record.user_id,
            "gid": record.group_id,
            "node": "" if is_array else _bounded(node),
            "folder": _bounded(record.working_directory),
            "output": "" if is_array or output in _NO_FILE else output,
        }
    )
    return status if found == status.files else status.model_copy(update={"files": found})


def _bounded(text: str) -> str:
    """A text of Slurm; nothing for one that is too long to be kept."""
    return text if len(text) <= LONGEST else ""


def begun(status: SlurmJobStatus) -> JobFilesStatus | None:
    """What stays known when the job is submitted again: nothing of the one before."""
    if status.files is None:
        return None
    return status.files.model_copy(update={"node": "", "output": ""})
