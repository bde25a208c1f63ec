"""
How jobs end when the clock is moved: by themselves, at their time limit, and out of slurmctld's memory at last.

Nothing ends while nobody moves the clock, so a test decides what it sees.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from typing_extensions import override

from slurm_client.models import ExitCode, Job
from slurm_client.testing.slurmctld.queue import Queue
from slurm_client.testing.slurmctld.runs import Run

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ends"]


class Ends(Queue):
    """
    Jobs that end.

    Attributes
    ----------
    min_job_age
        How long a finished job is remembered (``MinJobAge``).
    """

    min_job_age = timedelta(seconds=300)

    @override
    def follow(self, until: float) -> None:
        """Move the clock; what happens until then happens in its order, and what it lets start starts then."""
        while (moment := min(ends := self._ends(), default=math.inf)) <= until:
            self.clock.move_to(moment)
            # What ends at the same time makes room at the same time.
            self._at_rest = True
            try:
                for end in ends[moment]:
                    end()
            finally:
                self._at_rest = False
            self.purge()
            self.schedule()
        self.clock.move_to(until)
        self.purge()
        self.schedule()

    def purge(self) -> None:
        """Forget jobs that ended ``min_job_age`` ago; the tasks of an array all at once."""
        oldest = self._clock() - self.min_job_age.total_seconds()
        kept = {
            job.array_job_id or job.id
            for job in self.jobs.values()
            if not job.is_finished or job.end_time is None or job.end_time.timestamp() > oldest
        }
        for job in list(self.jobs.values()):
            if (job.array_job_id or job.id) not in kept:
                self.forget_job(job.id)

    def _ends(self) -> dict[float, list[Callable[[], object]]]:
        """Return what ends running jobs, by the time at which they do."""
        found: dict[float, list[Callable[[], object]]] = {}
        for job in self.jobs.values():
            if job.is_running and (end := self._end_of(job)) is not None:
                found.setdefault(end[0], []).append(end[1])
        return found

    def _end_of(self, job: Job) -> tuple[float, Callable[[], object]] | None:
        run, begun = self.run_of(job), (job.start_time or self.now).timestamp()
        limit = job.time_limit if isinstance(job.time_limit, timedelta) else None
        if run.duration is not None and (limit is None or run.duration <= limit):
            return begun + run.duration.total_seconds(), lambda: self.exit_job(job.id, run.exit_code)
        if limit is None:
            return None
        return begun + limit.total_seconds(), lambda: self.time_out(job.id)

    def exit_job(self, job_id: int, exit_code: int = 0) -> Job:
        """Let the batch script of a job return."""
        good = exit_code == 0
        return self.finish_job(
            job_id,
            "COMPLETED" if good else "FAILED",
            exit_code=ExitCode(("SUCCESS",) if good else ("ERROR",), exit_code),
            state_reason="None" if good else "NonZeroExitCode",
        )

    def time_out(self, job_id: int) -> Job:
        """End a job because its time is over."""
        return self.finish_job(job_id, "TIMEOUT", exit_code=ExitCode(("SUCCESS",), 0), state_reason="TimeLimit")

    # what jobs do

    def run_of(self, job: Job) -> Run:
        """Return what a job does: what was arranged for it, for its array, for its name, or for all."""
        for key in (job.id, job.array_job_id, job.name, ""):
            if key is not None and key in self.runs:
                return self.runs[key]
        return Run()

    def let_run(self, which: int | str = "", *, duration: timedelta | float | None = None, exit_code: int = 0) -> None:
        """
        Arrange what jobs do once they run.

        Parameters
        ----------
        which
            Number of a job or array, name of jobs, or nothing for all that nothing else is arranged for.
        duration
            After which time (or how many seconds) they end; ``None`` if they do not end by themselves.
        exit_code
            With what.
        """
        length = duration if duration is None or isinstance(duration, timedelta) else timedelta(seconds=duration)
        self.runs[which] = Run(length, exit_code)
