"""Decoders of what slurmctld says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import count, flag, items, mapping, number, text, timestamp, words
from slurm_client.models.service import Diag, PendingRpcs, Ping, RpcStats

if TYPE_CHECKING:
    from collections.abc import Mapping


def ping(raw: Mapping[str, Any]) -> Ping:
    """Decode one entry of ``pings``; parsers before v0.0.42 say ``pinged`` and ``mode`` instead of Booleans."""
    get = raw.get
    mode = text(get("mode"))
    responding = flag(get("responding")) if "responding" in raw else text(get("pinged")).upper() == "UP"
    if "primary" in raw:
        primary: bool | None = flag(get("primary"))
    else:
        primary = mode.lower() == "primary" if mode else None
    return Ping(
        hostname=text(get("hostname")),
        responding=responding,
        primary=primary,
        latency_us=number(get("latency")),
        mode=mode,
    )


def diag(raw: Mapping[str, Any]) -> Diag:
    """Decode ``statistics``."""
    get = raw.get
    return Diag(
        now=timestamp(get("req_time")),
        since=timestamp(get("req_time_start")),
        server_thread_count=count(get("server_thread_count")),
        agent_count=count(get("agent_count")),
        agent_thread_count=count(get("agent_thread_count")),
        agent_queue_size=count(get("agent_queue_size")),
        dbd_agent_queue_size=count(get("dbd_agent_queue_size")),
        gettimeofday_latency_us=count(get("gettimeofday_latency")),
        jobs_submitted=count(get("jobs_submitted")),
        jobs_started=count(get("jobs_started")),
        jobs_completed=count(get("jobs_completed")),
        jobs_canceled=count(get("jobs_canceled")),
        jobs_failed=count(get("jobs_failed")),
        jobs_pending=count(get("jobs_pending")),
        jobs_running=count(get("jobs_running")),
        job_states_at=timestamp(get("job_states_ts")),
        schedule_cycles=count(get("schedule_cycle_total")),
        schedule_cycle_last_us=count(get("schedule_cycle_last")),
        schedule_cycle_max_us=count(get("schedule_cycle_max")),
        schedule_cycle_mean_us=count(get("schedule_cycle_mean")),
        schedule_cycle_per_minute=count(get("schedule_cycle_per_minute")),
        schedule_queue_length=count(get("schedule_queue_length")),
        schedule_cycle_sum_us=count(get("schedule_cycle_sum")),
        schedule_depth_sum=count(get("schedule_cycle_depth")),
        schedule_depth_mean=count(get("schedule_cycle_mean_depth")),
        schedule_exit=_exits(get("schedule_exit")),
        backfill_active=flag(get("bf_active")),
        backfilled_jobs=count(get("bf_backfilled_jobs")),
        last_backfilled_jobs=count(get("bf_last_backfilled_jobs")),
        backfilled_het_jobs=count(get("bf_backfilled_het_jobs")),
        backfill_cycles=count(get("bf_cycle_counter")),
        backfill_cycle_last_us=count(get("bf_cycle_last")),
        backfill_cycle_max_us=count(get("bf_cycle_max")),
        backfill_cycle_mean_us=count(get("bf_cycle_mean")),
        backfill_cycle_sum_us=count(get("bf_cycle_sum")),
        backfill_depth_last=count(get("bf_last_depth")),
        backfill_depth_mean=count(get("bf_depth_mean")),
        backfill_depth_sum=count(get("bf_depth_sum")),
        backfill_depth_try_last=count(get("bf_last_depth_try")),
        backfill_depth_try_mean=count(get("bf_depth_mean_try")),
        backfill_depth_try_sum=count(get("bf_depth_try_sum")),
        backfill_queue_length=count(get("bf_queue_len")),
        backfill_queue_length_mean=count(get("bf_queue_len_mean")),
        backfill_queue_length_sum=count(get("bf_queue_len_sum")),
        backfill_table_size=count(get("bf_table_size")),
        backfill_table_size_mean=count(get("bf_table_size_mean")),
        backfill_table_size_sum=count(get("bf_table_size_sum")),
        backfill_exit=_exits(get("bf_exit")),
        backfill_last_run=timestamp(get("bf_when_last_cycle")),
        rpcs_by_message=tuple(_rpcs(get("rpcs_by_message_type"), "message_type", "type_id")),
        rpcs_by_user=tuple(_rpcs(get("rpcs_by_user"), "user", "user_id")),
        pending_rpcs=_pending(get("pending_rpcs"), get("pending_rpcs_by_hostlist")),
    )


def _exits(value: Any) -> tuple[tuple[str, int], ...]:
    return tuple((reason, count(times)) for reason, times in mapping(value).items())


def _pending(queue: Any, dump: Any) -> tuple[PendingRpcs, ...]:
    """Join the numbers of calls that wait with whom they are for: two lists of the same message types."""
    hosts: dict[int, tuple[str, ...]] = {}
    names: dict[int, str] = {}
    for raw in map(mapping, items(dump)):
        kind = count(raw.get("type_id"))
        hosts[kind] = (*hosts.get(kind, ()), *_hostlists(raw.get("count")))
        names[kind] = text(raw.get("message_type"))
    found = [
        PendingRpcs(text(raw.get("message_type")), kind, count(raw.get("count")), hosts.pop(kind, ()))
        for raw in map(mapping, items(queue))
        if raw
        for kind in (count(raw.get("type_id")),)
    ]
    return (*found, *(PendingRpcs(names[kind], kind, len(left), left) for kind, left in hosts.items()))


def _hostlists(value: Any) -> tuple[str, ...]:
    """Read texts that have commas of their own."""
    return (value,) if isinstance(value, str) and value else words(value) if isinstance(value, list) else ()


def _rpcs(value: Any, name: str, number_key: str) -> list[RpcStats]:
    return [
        RpcStats(
            name=text(raw.get(name)),
            id=count(raw.get(number_key)),
            count=count(raw.get("count")),
            total_time_us=count(raw.get("total_time")),
            average_time_us=number(raw.get("average_time")),
            queued=number(raw.get("queued")),
            dropped=number(raw.get("dropped")),
            cycle_last=number(raw.get("cycle_last")),
            cycle_max=number(raw.get("cycle_max")),
        )
        for entry in items(value)
        if (raw := mapping(entry))
    ]
