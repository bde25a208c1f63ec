"""What slurmctld counts of its jobs, as ``sdiag`` shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job

_BY_END = {"COMPLETED": "jobs_completed", "CANCELLED": "jobs_canceled"}


@dataclass(slots=True)
class Counts:
    """
    Jobs since the start, tasks of arrays one by one.

    Parameters
    ----------
    jobs_canceled, jobs_failed
        By the state they ended in. slurmctld counts fewer of them: those that a signal of ours ended are not in its
        numbers.
    """

    jobs_submitted: int = 0
    jobs_started: int = 0
    jobs_completed: int = 0
    jobs_canceled: int = 0
    jobs_failed: int = 0

    def changed(self, old: Job | None, new: Job) -> None:
        """Count what became of a job."""
        if old is None:
            self.jobs_submitted += 1
        if new.is_running and (old is None or old.is_pending):
            self.jobs_started += 1
        if new.is_finished and (old is None or not old.is_finished):
            field = _BY_END.get(new.state.base, "jobs_failed")
            setattr(self, field, getattr(self, field) + 1)

    def shown(self, jobs: Iterable[Job]) -> dict[str, int]:
        """Return all counts, with those of the jobs that are there now."""
        known = list(jobs)
        return asdict(self) | {
            "jobs_pending": sum(job.is_pending for job in known),
            "jobs_running": sum(job.is_running for job in known),
        }
