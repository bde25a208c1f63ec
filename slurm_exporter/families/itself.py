"""The exporter: how old its data is, whether Slurm answered, how long that took, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from slurm_exporter.samples.family import Kind, Samples, own
from slurm_exporter.sources.health import Health

UP = own("up", "Whether nodes, jobs and partitions are known and Slurm answered for each of them the last time.")
SOURCE_UP = own("source_up", "Whether Slurm answered the last time.", ["source"])
AGE = own(
    "source_age_seconds",
    "Time since Slurm confirmed the data; no sample before the first answer.",
    ["source"],
    "seconds",
)
DURATION = own("source_duration_seconds", "How long the last poll took.", ["source"], "seconds")
POLLS = own("source_polls_total", "Polls.", ["source"], kind=Kind.COUNTER)
FAILURES = own("source_failures_total", "Polls without an answer that could be used.", ["source"], kind=Kind.COUNTER)
REQUESTS = own("slurm_requests_total", "Requests to slurmrestd, retries included.", kind=Kind.COUNTER)
BYTES = own("slurm_received_bytes_total", "Bytes received from slurmrestd.", unit="bytes", kind=Kind.COUNTER)
SERIES = own("series", "Samples of the page.")
LEFT_OUT = own("left_out", "Objects without samples of their own, because there are more than the limit.", ["kind"])
COUNTING = own("counting_duration_seconds", "How long it took to count and write the page.", unit="seconds")
SCRAPES = own("scrapes_total", "Scrapes answered.", kind=Kind.COUNTER)

ALL: Final = (UP, SOURCE_UP, AGE, DURATION, POLLS, FAILURES, REQUESTS, BYTES, SERIES, LEFT_OUT, COUNTING, SCRAPES)
NEEDED: Final = frozenset({"nodes", "jobs", "partitions"})


def sources(health: tuple[Health, ...], clock: float) -> Iterator[Samples]:
    """How each source is doing at a time of the monotonic clock."""
    up = {each.name: each.is_up for each in health}
    yield Samples(UP, {(): all(up.get(name, False) for name in NEEDED)})
    yield Samples(SOURCE_UP, {(each.name,): each.is_up for each in health})
    yield Samples(
        AGE, {(each.name,): max(0.0, clock - each.confirmed_at) for each in health if each.confirmed_at is not None}
    )
    yield Samples(DURATION, {(each.name,): each.duration for each in health if each.duration is not None})
    yield Samples(POLLS, {(each.name,): each.polls for each in health})
    yield Samples(FAILURES, {(each.name,): each.failures for each in health})


def page(series: int, left_out: Mapping[str, int], counting: float | None) -> Iterator[Samples]:
    """What the page is made of."""
    yield Samples(SERIES, {(): series})
    yield Samples(LEFT_OUT, {(kind,): count for kind, count in left_out.items()})
    yield Samples(COUNTING, {} if counting is None else {(): counting})
