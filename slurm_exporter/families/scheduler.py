"""Schedulers of slurmctld, what they do with their time, and counters of jobs, as `sdiag` shows them.

slurmctld counts since midnight or its start, in microseconds; here counters never go back (`samples.monotone`) and
times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from slurm_client.models.service import Diag
from slurm_exporter.samples.budget import added
from slurm_exporter.samples.family import Family, Labels, Samples, counter, gauge, single
from slurm_exporter.samples.monotone import Monotone

MICRO: Final = 1e-6


def _diag(*fields: str) -> str:
    return "diag/: " + ", ".join(fields)


STATS_SINCE = gauge(
    "stats_since_seconds",
    "When slurmctld last set its counters to zero, since 1970.",
    _diag("req_time_start"),
    unit="seconds",
)
SERVER_THREADS = gauge("server_threads", "Threads of slurmctld that serve calls.", _diag("server_thread_count"))
AGENTS = gauge("agents", "Agents of slurmctld that send calls to nodes.", _diag("agent_count"))
AGENT_QUEUE = gauge("agent_queue_length", "Calls to nodes that wait for an agent.", _diag("agent_queue_size"))
DATABASE_QUEUE = gauge(
    "slurmdbd_queue_length",
    "Accounting records that wait for slurmdbd; when the queue is full, records are lost.",
    _diag("dbd_agent_queue_size"),
)
JOBS_SUBMITTED = counter("jobs_submitted", "Jobs submitted.", _diag("jobs_submitted"))
JOBS_STARTED = counter("jobs_started", "Jobs started.", _diag("jobs_started"))
JOBS_COMPLETED = counter("jobs_completed", "Jobs completed.", _diag("jobs_completed"))
JOBS_CANCELED = counter("jobs_canceled", "Jobs cancelled.", _diag("jobs_canceled"))
JOBS_FAILED = counter("jobs_failed", "Jobs that slurmctld failed because of an internal error.", _diag("jobs_failed"))
CYCLES = counter("schedule_cycles", "Cycles of the main scheduler.", _diag("schedule_cycle_total"))
CYCLE_SECONDS = counter(
    "schedule_cycle_seconds", "Time in cycles of the main scheduler.", _diag("schedule_cycle_sum"), unit="seconds"
)
CYCLE_LAST = gauge("schedule_cycle_last_seconds", "Its last cycle.", _diag("schedule_cycle_last"), unit="seconds")
CYCLE_MAX = gauge(
    "schedule_cycle_max_seconds",
    "Its longest cycle since the counters began.",
    _diag("schedule_cycle_max"),
    unit="seconds",
)
DEPTH = counter("schedule_jobs_considered", "Jobs that it looked at.", _diag("schedule_cycle_depth"))
QUEUE = gauge("schedule_queue_length", "Jobs that waited for it in the last cycle.", _diag("schedule_queue_length"))
EXITS = counter("schedule_exits", "Ends of its cycles by reason.", _diag("schedule_exit"), ["reason"])
BACKFILL_ACTIVE = gauge("backfill_active", "Whether the backfill scheduler runs now.", _diag("bf_active"))
BACKFILL_CYCLES = counter("backfill_cycles", "Cycles of the backfill scheduler.", _diag("bf_cycle_counter"))
BACKFILL_SECONDS = counter("backfill_cycle_seconds", "Time in its cycles.", _diag("bf_cycle_sum"), unit="seconds")
BACKFILL_LAST = gauge("backfill_cycle_last_seconds", "Its last cycle.", _diag("bf_cycle_last"), unit="seconds")
BACKFILL_MAX = gauge(
    "backfill_cycle_max_seconds", "Its longest cycle since the counters began.", _diag("bf_cycle_max"), unit="seconds"
)
BACKFILL_LAST_RUN = gauge(
    "backfill_last_run_time_seconds", "When it last ran, since 1970.", _diag("bf_when_last_cycle"), unit="seconds"
)
BACKFILLED = counter("backfill_jobs_started", "Jobs that it started.", _diag("bf_backfilled_jobs"))
BACKFILLED_HET = counter(
    "backfill_het_jobs_started", "Components of heterogeneous jobs that it started.", _diag("bf_backfilled_het_jobs")
)
BACKFILL_DEPTH = counter("backfill_jobs_considered", "Jobs that it looked at.", _diag("bf_depth_sum"))
BACKFILL_TRIED = counter("backfill_jobs_tried", "Jobs that it tried to start.", _diag("bf_depth_try_sum"))
BACKFILL_QUEUE = gauge("backfill_queue_length", "Jobs that waited for it in the last cycle.", _diag("bf_queue_len"))
BACKFILL_TABLE = gauge(
    "backfill_table_size", "Slots of time that it compared in the last cycle.", _diag("bf_table_size")
)
BACKFILL_EXITS = counter("backfill_exits", "Ends of its cycles by reason.", _diag("bf_exit"), ["reason"])

GAUGES: Final = (
    STATS_SINCE, SERVER_THREADS, AGENTS, AGENT_QUEUE, DATABASE_QUEUE, CYCLE_LAST, CYCLE_MAX, QUEUE, BACKFILL_ACTIVE,
    BACKFILL_LAST, BACKFILL_MAX, BACKFILL_LAST_RUN, BACKFILL_QUEUE, BACKFILL_TABLE,
)  # fmt: skip
COUNTERS: Final = (
    JOBS_SUBMITTED, JOBS_STARTED, JOBS_COMPLETED, JOBS_CANCELED, JOBS_FAILED, CYCLES, CYCLE_SECONDS, DEPTH, EXITS,
    BACKFILL_CYCLES, BACKFILL_SECONDS, BACKFILLED, BACKFILLED_HET, BACKFILL_DEPTH, BACKFILL_TRIED, BACKFILL_EXITS,
)  # fmt: skip
ALL: Final = (*GAUGES, *COUNTERS)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def gauges(diag: Diag) -> Iterator[Samples]:
    """What holds now."""
    yield single(STATS_SINCE, _seconds(diag.since))
    yield single(SERVER_THREADS, diag.server_thread_count)
    yield single(AGENTS, diag.agent_count)
    yield single(AGENT_QUEUE, diag.agent_queue_size)
    yield single(DATABASE_QUEUE, diag.dbd_agent_queue_size)
    yield single(CYCLE_LAST, diag.schedule_cycle_last_us * MICRO)
    yield single(CYCLE_MAX, diag.schedule_cycle_max_us * MICRO)
    yield single(QUEUE, diag.schedule_queue_length)
    yield single(BACKFILL_ACTIVE, diag.backfill_active)
    yield single(BACKFILL_LAST, diag.backfill_cycle_last_us * MICRO)
    yield single(BACKFILL_MAX, diag.backfill_cycle_max_us * MICRO)
    yield single(BACKFILL_LAST_RUN, _seconds(diag.backfill_last_run))
    yield single(BACKFILL_QUEUE, diag.backfill_queue_length)
    yield single(BACKFILL_TABLE, diag.backfill_table_size)


def counted(diag: Diag) -> Iterator[tuple[Family, dict[Labels, float]]]:
    """What slurmctld has counted since `diag.since`, in base units."""
    for family, value in (
        (JOBS_SUBMITTED, diag.jobs_submitted),
        (JOBS_STARTED, diag.jobs_started),
        (JOBS_COMPLETED, diag.jobs_completed),
        (JOBS_CANCELED, diag.jobs_canceled),
        (JOBS_FAILED, diag.jobs_failed),
        (CYCLES, diag.schedule_cycles),
        (CYCLE_SECONDS, diag.schedule_cycle_sum_us * MICRO),
        (DEPTH, diag.schedule_depth_sum),
        (BACKFILL_CYCLES, diag.backfill_cycles),
        (BACKFILL_SECONDS, diag.backfill_cycle_sum_us * MICRO),
        (BACKFILLED, diag.backfilled_jobs),
        (BACKFILLED_HET, diag.backfilled_het_jobs),
        (BACKFILL_DEPTH, diag.backfill_depth_sum),
        (BACKFILL_TRIED, diag.backfill_depth_try_sum),
    ):
        yield family, {(): value}
    yield EXITS, added(diag.schedule_exit)
    yield BACKFILL_EXITS, added(diag.backfill_exit)


class Counters:
    """The counters over the life of the exporter."""

    def __init__(self) -> None:
        self._by_family = {family: Monotone(limit=256) for family in COUNTERS}

    def update(self, diag: Diag) -> None:
        """Take in an answer; the same one twice changes nothing."""
        for family, values in counted(diag):
            self._by_family[family].update(values, diag.since)

    def samples(self) -> Iterator[Samples]:
        """All counters."""
        for family, counter_ in self._by_family.items():
            yield Samples(family, dict(counter_.totals))
