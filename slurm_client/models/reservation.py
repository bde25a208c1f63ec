"""Reservations: nodes kept free for somebody, for a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from slurm_client.errors import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation(Entry):
    """
    A reservation as slurmctld shows it; times are aware and in UTC.

    Parameters
    ----------
    name
        ReservationName.
    nodes
        Names of its nodes, expanded; ``node_list`` is the same in Slurm's notation.
    users, accounts, groups
        Who may use it; a leading ``-`` excludes.
    flags
        Words such as ``MAINT``, ``IGNORE_JOBS``, ``DAILY``.
    """

    name: str
    partition: str = ""
    node_list: str = ""
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    core_count: int = 0
    start_time: datetime | None = None
    end_time: datetime | None = None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    features: str = ""
    licenses: str = ""
    tres: str = ""
    burst_buffer: str = ""
    max_start_delay: timedelta | None = None

    def is_active(self, now: datetime) -> bool:
        """Whether it holds at this time."""
        begun = self.start_time is None or self.start_time <= now
        return begun and (self.end_time is None or now < self.end_time)


@dataclass(frozen=True, slots=True)
class ReservationResult(Entry):
    """What became of one reservation in a call about many: ``error`` is ``None`` if it went well."""

    name: str
    error: Report | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSpec:
    """
    What a reservation is to be; ``None`` leaves a thing to Slurm, or as it is.

    Parameters
    ----------
    name
        Its name; Slurm makes one up if there is none.
    nodes
        A hostlist (``w-[0-3],w-7``), or a list of names and hostlists; ``ALL`` for every node.
    duration
        Instead of ``end_time``.
    flags
        Words such as ``MAINT``. One that the data parser in use does not know is refused here: slurmrestd would report
        an error and make the reservation without it.
    other
        Keys of the data parser's own ``reservation_desc_msg``, passed on as they are.
    """

    name: str | None = None
    partition: str | None = None
    nodes: str | Sequence[str] | None = None
    node_count: int | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    duration: timedelta | None = None
    users: Sequence[str] | None = None
    accounts: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    flags: Sequence[str] | None = None
    features: str | None = None
    licenses: Sequence[str] | None = None
    comment: str | None = None
    other: Mapping[str, Any] | None = None
