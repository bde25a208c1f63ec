"""Maintenance windows of a Cluster: when each comes, and which NodeSets are in it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import MAP_BY_NAME, SET, ApiModel
from slinky_api.v1alpha1.fields import DnsLabel, Duration, ShortName
from slinky_api.v1alpha1.rules import VALIDATIONS, Keywords, Text, cel, matching
from slinky_api.v1alpha1.schedule import LONGEST_SCHEDULE, SCHEDULE, ZONE, read_schedule, zone

__all__ = ["MAX_WINDOWS", "Maintenance", "MaintenanceWindow", "Period"]

MAX_WINDOWS: Final = 8
"""Windows of one Cluster."""

DEFAULT_ANNOUNCEMENT: Final = timedelta(days=7)
"""How long before its start a window is reserved by default."""

_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=30)
_YEARS: Final = range(2000, 3000)
"""Far from the first and the last moment that can be computed with."""

_DURATION_MESSAGE: Final = "must be from 1m to 720h"
_ONE_MESSAGE: Final = "give either schedule or start"
_ZONE_MESSAGE: Final = "timeZone requires schedule: start has its own offset"
_EARLY_MESSAGE: Final = "releaseEarly requires holdUpdates: the end of the held updates is what it waits for"


def _check_schedule(text: str) -> str:
    _ = read_schedule(text)
    return text


def _check_zone(name: str) -> str:
    _ = zone(name)
    return name


def _check_duration(value: timedelta) -> timedelta:
    if not _SHORTEST <= value <= _LONGEST:
        raise ValueError(_DURATION_MESSAGE)
    return value


def _check_start(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("must have an offset, such as 2026-12-01T02:00:00+01:00 or 2026-12-01T01:00:00Z")
    if value.year not in _YEARS:
        raise ValueError(f"must be in a year from {_YEARS[0]} to {_YEARS[-1]}")
    return value


_Schedule = Annotated[
    str,
    Text(
        matching(SCHEDULE, "must be five fields of cron, such as 0 2 * * tue"),
        at_least=9,
        at_most=LONGEST_SCHEDULE,
        by_pattern=True,
    ),
    AfterValidator(_check_schedule),
]
_Zone = Annotated[
    str,
    Text(matching(ZONE, "must be the name of a time zone"), at_least=1, at_most=64, by_pattern=True),
    AfterValidator(_check_zone),
]
_WindowDuration = Annotated[
    Duration,
    AfterValidator(_check_duration),
    Keywords(
        {
            VALIDATIONS: [
                cel("duration(self) >= duration('1m') && duration(self) <= duration('720h')", _DURATION_MESSAGE)
            ]
        }
    ),
]


@dataclass(frozen=True, slots=True)
class Period:
    """A window as it comes once: from its start until its end, in UTC."""

    start: datetime
    end: datetime

    def is_on(self, now: datetime) -> bool:
        """Whether it has begun, and has not ended."""
        return self.start <= now < self.end


class MaintenanceWindow(ApiModel):
    """A time in which no job of users runs on some nodes."""

    model_config = ConfigDict(
        json_schema_extra={
            VALIDATIONS: [
                cel("has(self.schedule) != has(self.start)", _ONE_MESSAGE, field=".schedule"),
                cel("!has(self.timeZone) || has(self.schedule)", _ZONE_MESSAGE, field=".timeZone"),
                cel(
                    "!has(self.releaseEarly) || !self.releaseEarly || has(self.holdUpdates) && self.holdUpdates",
                    _EARLY_MESSAGE,
                    field=".releaseEarly",
                ),
            ]
        }
    )

    name: ShortName
    """Name of the window."""
    schedule: _Schedule | None = None
    """When it starts: minute, hour, day of the month, month and day of the week, as in cron, for example 0 2 * * tue.
    At most 24 times a day, and not before it has ended."""
    time_zone: _Zone | None = None
    """The time zone of schedule, for example Europe/Berlin. Default: Etc/UTC."""
    start: Annotated[datetime, AfterValidator(_check_start)] | None = None
    """When it starts if it comes once, for example 2026-12-01T02:00:00+01:00."""
    duration: _WindowDuration
    """How long it takes, from 1m to 720h."""
    announce_before: Duration = DEFAULT_ANNOUNCEMENT
    """How long before its start the reservation is made: from then on no job starts that could still run in the
    window. Longer than the time limit of jobs, so that the nodes are free when it starts. Default: 168h, a week."""
    node_sets: Annotated[tuple[DnsLabel, ...], Field(max_length=64), SET] = ()
    """NodeSets whose nodes are in it. Default: all nodes of the cluster, those outside Kubernetes too."""
    hold_updates: bool = False
    """Whether pods of these NodeSets are replaced for updates only within this window, or another one that holds
    updates of the same NodeSet. Default: false."""
    release_early: bool = False
    """Whether the nodes may run jobs again, before the window ends, once no update of these NodeSets is left. Default:
    false."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.schedule is None) is (self.start is None):
            raise ValueError(_ONE_MESSAGE)
        if self.time_zone is not None and self.schedule is None:
            raise ValueError(_ZONE_MESSAGE)
        if self.release_early and not self.hold_updates:
            raise ValueError(_EARLY_MESSAGE)
        return self

    def has(self, node_set: str) -> bool:
        """Whether a NodeSet of this name is in it."""
        return not self.node_sets or node_set in self.node_sets

    def periods(self, now: datetime) -> tuple[Period, ...]:
        """The period that is on, if any, and the next one, if any.

        Parameters
        ----------
        now
            With a time zone.
        """
        if self.schedule is None:
            start = (self.start or now).astimezone(UTC).replace(microsecond=0)
            once = Period(start, start + self.duration)
            return (once,) if now < once.end else ()
        known = [one for one in self._recurring(now) if now < one.end]
        return tuple(known[: 2 if known[0].is_on(now) else 1])

    def overlaps_itself(self) -> bool:
        """Whether it starts again before it has ended, in whatever month; an hour that clocks leave out is no matter.

        That does not depend on the time of day: a window that is on would end where another one comes near.
        """
        return self.schedule is not None and _shortest_gap(self.schedule) < self.duration

    def _recurring(self, now: datetime) -> tuple[Period, ...]:
        if self.schedule is None:
            return ()
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        return _recurring(self.schedule, self.time_zone or "Etc/UTC", self.duration, minute)

    def current(self, now: datetime) -> Period | None:
        """The period that is on."""
        return next((one for one in self.periods(now) if one.is_on(now)), None)

    def next(self, now: datetime) -> Period | None:
        """The next period that has not begun."""
        return next((one for one in self.periods(now) if now < one.start), None)


@lru_cache(maxsize=512)
def _shortest_gap(schedule: str) -> timedelta:
    return read_schedule(schedule).shortest_gap()


@lru_cache(maxsize=512)
def _recurring(schedule: str, name: str, duration: timedelta, minute: datetime) -> tuple[Period, ...]:
    """The first three periods that have not ended at the beginning of a minute."""
    read, where, found = read_schedule(schedule), zone(name), []
    moment = minute - duration
    for _ in range(3):
        start = read.after(moment, where)
        found.append(Period(start, start + duration))
        moment = start
    return tuple(found)


class Maintenance(ApiModel):
    """When nodes are kept free of jobs for work on them."""

    windows: Annotated[tuple[MaintenanceWindow, ...], Field(max_length=MAX_WINDOWS), MAP_BY_NAME] = ()
    """Maintenance windows. For each the operator makes a reservation in Slurm, which starts no job that could still
    run in the window; no job is ended for it."""

    def holding(self, node_set: str) -> tuple[MaintenanceWindow, ...]:
        """Windows outside of which pods of a NodeSet are not replaced for updates."""
        return tuple(one for one in self.windows if one.hold_updates and one.has(node_set))

    def coming(self, now: datetime, node_set: str | None = None) -> tuple[MaintenanceWindow, Period] | None:
        """The window that is on, of several the one that ends last, or the one that comes next.

        Parameters
        ----------
        now
            With a time zone.
        node_set
            Only windows with this NodeSet; `None` for all.
        """
        known = [
            (one, period)
            for one in self.windows
            if node_set is None or one.has(node_set)
            for period in one.periods(now)
        ]
        on = [found for found in known if found[1].is_on(now)]
        if on:
            return max(on, key=lambda found: found[1].end)
        return min(known, key=lambda found: found[1].start, default=None)

    def changes_in(self, now: datetime) -> float | None:
        """Seconds until a window starts, ends or is announced; `None` if none does any more."""
        moments = [
            moment
            for one in self.windows
            for period in one.periods(now)
            for moment in (period.start - one.announce_before, period.start, period.end)
        ]
        return min(((moment - now).total_seconds() for moment in moments if moment > now), default=None)
