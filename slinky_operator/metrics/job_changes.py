"""What the operator has done with SlurmJobs: submissions, how long they took, how long jobs waited, how they ended.

Counters of the process, without names of objects; how many jobs there are now is in `job_objects`. Objects of the old
kinds are SlurmJobs here, each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from slinky_operator.metrics.names import PREFIX

ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
UNANSWERED: Final = "unanswered"
NOT_SENT: Final = "not-sent"

OUTCOMES: Final = (ACCEPTED, REFUSED, UNANSWERED, NOT_SENT)
"""Of a call that submits a job."""

_SHORT: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
"""Seconds until Slurm has a job."""

_LONG: Final = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400)
"""Seconds that a job may wait for nodes."""


class JobChanges:
    """Counters of SlurmJobs.

    Parameters
    ----------
    registry
        Where they are registered; a new one if absent.
    ends
        All reasons with which jobs end.
    """

    def __init__(self, registry: CollectorRegistry | None = None, *, ends: Iterable[str] = ()) -> None:
        registry = registry if registry is not None else CollectorRegistry()
        self._submissions = Counter(
            "slurmjob_submissions",
            "Calls to Slurm that submit the job of a SlurmJob, by outcome.",
            ["outcome"],
            namespace=PREFIX,
            registry=registry,
        )
        self._submitted = Histogram(
            "slurmjob_submit_duration_seconds",
            "Time until Slurm has the job of a SlurmJob, from its creation, or from the end of what it waited for as "
            "its spec says. Submissions after a failure are not counted.",
            namespace=PREFIX,
            registry=registry,
            buckets=_SHORT,
        )
        self._pending = Histogram(
            "slurmjob_pending_duration_seconds",
            "Time in Slurm's queue, holds and dependencies included, of jobs that have started: of an array until its "
            "first task starts, of a job that is requeued until its first start.",
            namespace=PREFIX,
            registry=registry,
            buckets=_LONG,
        )
        self._ended = Counter(
            "slurmjobs_ended",
            "SlurmJobs that have ended, by reason; those of which another job is submitted have not.",
            ["reason"],
            namespace=PREFIX,
            registry=registry,
        )
        self._left_behind = Counter(
            "slurmjobs_left_behind",
            "SlurmJobs deleted without their jobs being cancelled, since there was no Cluster any more.",
            namespace=PREFIX,
            registry=registry,
        )
        self._unknown = Counter(
            "slurmjob_submissions_unknown",
            "SlurmJobs of which it could not be found out whether Slurm has taken them; they are not submitted again.",
            namespace=PREFIX,
            registry=registry,
        )
        for outcome in OUTCOMES:
            # There before the first one: a rate sees a counter that begins, but not one that comes.
            _ = self._submissions.labels(outcome)
        for reason in ends:
            _ = self._ended.labels(reason)

    def submission(self, outcome: str) -> None:
        """Count a call that submits a job, by one of `OUTCOMES`."""
        self._submissions.labels(outcome).inc()

    def submitted(self, seconds: float) -> None:
        """Count a job that Slurm has now, and how long that took."""
        self._submitted.observe(max(0.0, seconds))

    def started(self, seconds: float) -> None:
        """Count a job that has started, and how long it was in the queue."""
        self._pending.observe(max(0.0, seconds))

    def ended(self, reason: str) -> None:
        """Count a SlurmJob that has ended."""
        self._ended.labels(reason).inc()

    def left_behind(self) -> None:
        """Count a SlurmJob whose job may run on without it."""
        self._left_behind.inc()

    def unknown(self) -> None:
        """Count a submission of unknown outcome."""
        self._unknown.inc()
