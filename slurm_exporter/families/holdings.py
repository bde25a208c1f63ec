"""Licenses and reservations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurm_client.models import License, Reservation
from slurm_exporter.samples.budget import cut, largest
from slurm_exporter.samples.family import Family, Labels, Samples, gauge

NAMES: Final = 512
"""Most licenses, and most reservations, with samples of their own."""

LICENSES = gauge("licenses", "Licenses that there are.", "licenses/: Total", ["license"])
LICENSES_USED = gauge("licenses_used", "Licenses that jobs have.", "licenses/: Used", ["license"])
LICENSES_FREE = gauge("licenses_free", "Licenses that are left.", "licenses/: Free", ["license"])
LICENSES_RESERVED = gauge("licenses_reserved", "Licenses in reservations.", "licenses/: Reserved", ["license"])
RESERVATION_ACTIVE = gauge(
    "reservation_active", "Whether a reservation holds now.", "reservations/: start_time, end_time", ["reservation"]
)
RESERVATION_NODES = gauge("reservation_nodes", "Nodes of a reservation.", "reservations/: node_count", ["reservation"])
RESERVATION_CORES = gauge("reservation_cores", "Cores of a reservation.", "reservations/: core_count", ["reservation"])
RESERVATION_START = gauge(
    "reservation_start_time_seconds",
    "When it begins, since 1970.",
    "reservations/: start_time",
    ["reservation"],
    "seconds",
)
RESERVATION_END = gauge(
    "reservation_end_time_seconds", "When it ends, since 1970.", "reservations/: end_time", ["reservation"], "seconds"
)
ALL: Final = (
    LICENSES, LICENSES_USED, LICENSES_FREE, LICENSES_RESERVED, RESERVATION_ACTIVE, RESERVATION_NODES, RESERVATION_CORES,
    RESERVATION_START, RESERVATION_END,
)  # fmt: skip


def licenses(found: Iterable[License]) -> Iterator[Samples]:
    """All families of licenses; of too many, those that there are most of."""
    by_name = {cut(each.name): each for each in found}
    kept = [by_name[name] for name in sorted(largest({name: each.total for name, each in by_name.items()}, NAMES))]
    yield Samples(LICENSES, {(cut(each.name),): each.total for each in kept})
    yield Samples(LICENSES_USED, {(cut(each.name),): each.used for each in kept})
    yield Samples(LICENSES_FREE, {(cut(each.name),): each.free for each in kept})
    yield Samples(LICENSES_RESERVED, {(cut(each.name),): each.reserved for each in kept})


def reservations(found: Iterable[Reservation], now: datetime) -> Iterator[Samples]:
    """All families of reservations; of too many, the largest."""
    by_name = {cut(each.name): each for each in found}
    kept = [by_name[name] for name in sorted(largest({name: each.node_count for name, each in by_name.items()}, NAMES))]
    yield Samples(RESERVATION_ACTIVE, {(cut(each.name),): each.is_active(now) for each in kept})
    yield Samples(RESERVATION_NODES, {(cut(each.name),): each.node_count for each in kept})
    yield Samples(RESERVATION_CORES, {(cut(each.name),): each.core_count for each in kept})
    yield _times(RESERVATION_START, [(cut(each.name), each.start_time) for each in kept])
    yield _times(RESERVATION_END, [(cut(each.name), each.end_time) for each in kept])


def _times(family: Family, found: Iterable[tuple[str, datetime | None]]) -> Samples:
    values: dict[Labels, float] = {(name,): time.timestamp() for name, time in found if time is not None}
    return Samples(family, values)
