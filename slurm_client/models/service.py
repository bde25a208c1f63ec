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
    """
    How often one kind of remote call, or those of one user, were served since ``Diag.since``, and for how long.

    Parameters
    ----------
    name, id
        Message type or user, and its number.
    count
        Calls served.
    total_time_us, average_time_us
        In all and for each, in microseconds. (The specification says seconds.)
    queued, dropped
        Calls queued and dropped by the rate limit; ``None`` for users, and from v0.0.40.
    cycle_last, cycle_max
        Calls served in the last cycle of the queue, and the most in any; ``None`` likewise.
    """

    name: str
    id: int
    count: int
    total_time_us: int
    average_time_us: int | None = None
    queued: int | None = None
    dropped: int | None = None
    cycle_last: int | None = None
    cycle_max: int | None = None


@dataclass(frozen=True, slots=True)
class PendingRpcs:
    """
    Remote calls that slurmctld has still to send to nodes, of one message type.

    Parameters
    ----------
    name, id
        Message type, and its number.
    count
        How many wait.
    hosts
        Whom they are for, in Slurm's notation, one text for each call that Slurm shows.
    """

    name: str
    id: int
    count: int = 0
    hosts: tuple[str, ...] = ()


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
    schedule_…
        The main scheduler: ``depth`` counts the jobs that it looked at, in all cycles and on average.
    schedule_exit, backfill_exit
        Why their cycles ended, and how often: pairs of Slurm's word and the number.
    backfill_…
        The backfill scheduler: ``depth`` counts jobs that it looked at, ``depth_try`` those among them that it tried to
        start, ``queue_length`` those that waited for it, ``table_size`` the slots of time that it compared; of the
        last cycle, on average (``mean``) and in all cycles (``sum``).
    pending_rpcs
        Calls that wait to be sent, by message type (v0.0.41 and newer).
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
    schedule_cycle_sum_us: int = 0
    schedule_depth_sum: int = 0
    schedule_depth_mean: int = 0
    schedule_queue_length: int = 0
    schedule_exit: tuple[tuple[str, int], ...] = ()
    backfill_active: bool = False
    backfilled_jobs: int = 0
    last_backfilled_jobs: int = 0
    backfilled_het_jobs: int = 0
    backfill_cycles: int = 0
    backfill_cycle_last_us: int = 0
    backfill_cycle_max_us: int = 0
    backfill_cycle_mean_us: int = 0
    backfill_cycle_sum_us: int = 0
    backfill_depth_last: int = 0
    backfill_depth_mean: int = 0
    backfill_depth_sum: int = 0
    backfill_depth_try_last: int = 0
    backfill_depth_try_mean: int = 0
    backfill_depth_try_sum: int = 0
    backfill_queue_length: int = 0
    backfill_queue_length_mean: int = 0
    backfill_queue_length_sum: int = 0
    backfill_table_size: int = 0
    backfill_table_size_mean: int = 0
    backfill_table_size_sum: int = 0
    backfill_exit: tuple[tuple[str, int], ...] = ()
    backfill_last_run: datetime | None = None
    rpcs_by_message: tuple[RpcStats, ...] = ()
    rpcs_by_user: tuple[RpcStats, ...] = ()
    pending_rpcs: tuple[PendingRpcs, ...] = ()
