"""slurmctld and slurmdbd: whether they answer, and which release slurmrestd is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slurm_exporter.samples.budget import cut
from slurm_exporter.samples.family import Samples, gauge
from slurm_exporter.sources.snapshot import Snapshot

INFO = gauge(
    "info",
    "1, with the release of slurmrestd and the data parser in use.",
    "the header of answers",
    ["release", "data_parser"],
)
CONTROLLER_UP = gauge("slurmctld_up", "Whether a slurmctld answers slurmrestd.", "ping/: responding", ["host"])
CONTROLLER_LATENCY = gauge(
    "slurmctld_latency_seconds", "How long its answer took.", "ping/: latency", ["host"], "seconds"
)
DATABASE_UP = gauge(
    "slurmdbd_up",
    "Whether a slurmdbd answers slurmrestd (data parsers from v0.0.41 on).",
    "slurmdb ping/: responding",
    ["host"],
)
DATABASE_LATENCY = gauge(
    "slurmdbd_latency_seconds", "How long its answer took.", "slurmdb ping/: latency", ["host"], "seconds"
)
ALL: Final = (INFO, CONTROLLER_UP, CONTROLLER_LATENCY, DATABASE_UP, DATABASE_LATENCY)

HOSTS: Final = 16
"""Most hosts of a kind; Slurm allows a few backups."""


def samples(snapshot: Snapshot) -> Iterator[Samples]:
    """All families of services."""
    yield Samples(INFO, {(cut(snapshot.release), cut(snapshot.data_parser)): 1} if snapshot.release else {})
    for pings, up, latency in (
        (snapshot.pings, CONTROLLER_UP, CONTROLLER_LATENCY),
        (snapshot.database_pings, DATABASE_UP, DATABASE_LATENCY),
    ):
        found = (pings or ())[:HOSTS]
        yield Samples(up, {(cut(each.hostname),): each.responding for each in found})
        yield Samples(
            latency,
            {
                (cut(each.hostname),): each.latency_us * 1e-6
                for each in found
                if each.responding and each.latency_us is not None
            },
        )
