"""Decoders of what slurmdbd says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import count, flag, items, mapping, number, text, timestamp
from slurm_client.models.database.service import DatabaseCalls, DatabaseDiag, DatabasePing, Rollup

if TYPE_CHECKING:
    from collections.abc import Mapping


def ping(raw: Mapping[str, Any]) -> DatabasePing:
    """Decode one entry of ``pings``."""
    get = raw.get
    return DatabasePing(
        hostname=text(get("hostname")),
        responding=flag(get("responding")),
        primary=flag(get("primary")) if "primary" in raw else None,
        latency_us=number(get("latency")),
        status=text(get("status")),
    )


def diag(raw: Mapping[str, Any]) -> DatabaseDiag:
    """Decode ``statistics``."""
    get = raw.get
    return DatabaseDiag(
        since=timestamp(get("time_start")),
        rollups=_rollups(get("rollups")),
        calls_by_message=_calls(get("RPCs"), "rpc"),
        calls_by_user=_calls(get("users"), "user"),
    )


def _calls(value: Any, name: str) -> tuple[DatabaseCalls, ...]:
    return tuple(
        DatabaseCalls(
            name=text(raw.get(name)),
            count=count(raw.get("count")),
            average_time_us=count(time.get("average")),
            total_time_us=count(time.get("total")),
        )
        for raw in map(mapping, items(value))
        if raw
        for time in (mapping(raw.get("time")),)
    )


def _rollups(value: Any) -> tuple[Rollup, ...]:
    """Read an object with a key for each period, or v0.0.40's list of those that have been summed up."""
    if isinstance(value, list):
        return tuple(
            Rollup(
                name=text(raw.get("type")),
                count=count(raw.get("total_cycles")),
                last_run=timestamp(raw.get("last_run", raw.get("last run"))),
                last_us=count(raw.get("last_cycle")),
                max_us=count(raw.get("max_cycle")),
                total_us=count(raw.get("total_time")),
            )
            for raw in map(mapping, value)
            if raw
        )
    return tuple(
        Rollup(
            name=name,
            count=count(raw.get("count")),
            last_run=timestamp(raw.get("last_run")),
            last_us=count(duration.get("last")),
            max_us=count(duration.get("max")),
            total_us=count(duration.get("time")),
        )
        for name, entry in mapping(value).items()
        if (raw := mapping(entry))
        for duration in (mapping(raw.get("duration")),)
    )
