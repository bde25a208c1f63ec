"""slurmdbd itself: whether it answers, and what it has served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePing(Entry):
    """
    Whether one slurmdbd answers.

    Parameters
    ----------
    hostname
        Host it runs on, as slurm.conf or slurmdbd.conf names it.
    responding
        Whether it answered slurmrestd.
    primary
        Whether it is the primary one and not its backup; ``None`` when the answer does not say.
    latency_us
        Time of its answer in microseconds.
    status
        What went wrong in Slurm's words, or ``No error`` (v0.0.45 and newer).
    """

    hostname: str
    responding: bool
    primary: bool | None = None
    latency_us: int | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseCalls:
    """
    How often slurmdbd served one kind of call, or one user, since it started, and for how long.

    Parameters
    ----------
    name
        Message type, e.g. ``DBD_GET_JOBS_COND``, or user.
    count
        Calls served.
    average_time_us, total_time_us
        For each and in all, in microseconds.
    """

    name: str
    count: int = 0
    average_time_us: int = 0
    total_time_us: int = 0


@dataclass(frozen=True, slots=True)
class Rollup:
    """
    How often slurmdbd has summed up the usage of a period, and for how long.

    Parameters
    ----------
    name
        ``hourly``, ``daily`` or ``monthly``; with v0.0.40, which has other names for them, the word it uses.
    count
        How often since it started.
    last_run
        When it last did.
    last_us, max_us, total_us
        What the last took, the longest, and all together, in microseconds.
    """

    name: str
    count: int = 0
    last_run: datetime | None = None
    last_us: int = 0
    max_us: int = 0
    total_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseDiag(Entry):
    """
    slurmdbd's counters.

    Parameters
    ----------
    since
        When it started, or its counters were set to zero.
    rollups
        Of usage.
    calls_by_message, calls_by_user
        What it served, by type of message and by user.
    """

    since: datetime | None = None
    rollups: tuple[Rollup, ...] = ()
    calls_by_message: tuple[DatabaseCalls, ...] = ()
    calls_by_user: tuple[DatabaseCalls, ...] = ()
