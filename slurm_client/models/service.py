"""slurmctld itself: whether it answers, and how it is doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Ping(Entry):
    """
    Whether one slurmctld answers.

    Parameters
    ----------
    hostname
        Host it runs on.
    responding
        Whether it answered slurmrestd.
    primary
        Whether it is the primary controller; ``None`` when the answer does not say.
    latency_us
        Time of its answer in microseconds.
    mode
        Word such as ``primary`` or ``backup1``; empty from newer servers.
    """

    hostname: str
    responding: bool
    primary: bool | None = None
    latency_us: int | None = None
    mode: str = ""


@dataclass(frozen=True, slots=True)
class RpcStats:
    """How often one kind of remote call (or one user) was served, and for how long in all, in microseconds."""

    name: str
    id: int
    count: int
    total_time_us: int
    average_time_us: int | None = None
    queued: int | None = None
    dropped: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diag(Entry):
    """
    Counters of slurmctld since ``since``; times of the scheduler's cycles in microseconds.

    Parameters
    ----------
    now, since
        Time of the answer, and of the last reset of the counters.
    server_thread_count, agent_count, agent_queue_size, dbd_agent_queue_size
        Load inside slurmctld; a full ``dbd_agent_queue`` loses accounting records.
    jobs_submitted … jobs_failed
        Since the reset.
    jobs_pending, jobs_running
        At ``job_states_at``.
    """

    now: datetime | None = None
    since: datetime | None = None
    server_thread_count: int = 0
    agent_count: int = 0
    agent_thread_count: int = 0
    agent_queue_size: int = 0
    dbd_agent_queue_size: int = 0
    gettimeofday_latency_us: int = 0
    jobs_submitted: int = 0
    jobs_started: int = 0
    jobs_completed: int = 0
    jobs_canceled: int = 0
    jobs_failed: int = 0
    jobs_pending: int = 0
    jobs_running: int = 0
    job_states_at: datetime | None = None
    schedule_cycles: int = 0
    schedule_cycle_last_us: int = 0
    schedule_cycle_max_us: int = 0
    schedule_cycle_mean_us: int = 0
    schedule_cycle_per_minute: int = 0
    schedule_queue_length: int = 0
    schedule_exit: tuple[tuple[str, int], ...] = ()
    backfill_active: bool = False
    backfilled_jobs: int = 0
    last_backfilled_jobs: int = 0
    backfill_cycles: int = 0
    backfill_cycle_last_us: int = 0
    backfill_cycle_max_us: int = 0
    backfill_cycle_mean_us: int = 0
    backfill_depth_mean: int = 0
    backfill_queue_length: int = 0
    backfill_last_run: datetime | None = None
    rpcs_by_message: tuple[RpcStats, ...] = ()
    rpcs_by_user: tuple[RpcStats, ...] = ()
