"""All families, for the documentation and for anyone who checks names."""

from __future__ import annotations

from typing import Final

from slurm_exporter.families import (
    calls,
    demand,
    holdings,
    itself,
    jobs,
    nodes,
    partitions,
    scheduler,
    services,
    shares,
)
from slurm_exporter.samples.family import Family

GROUPS: Final[dict[str, tuple[Family, ...]]] = {
    "Services": services.ALL,
    "Nodes": nodes.ALL,
    "Jobs": jobs.ALL,
    "Demand": demand.ALL,
    "Partitions": partitions.ALL,
    "Licenses and reservations": holdings.ALL,
    "Fair share": shares.ALL,
    "Schedulers": scheduler.ALL,
    "Remote procedure calls": calls.ALL,
    "The exporter": itself.ALL,
}
"""Families by the heading of their table."""


def table(families: tuple[Family, ...]) -> str:
    """A table of families in Markdown."""
    head = ("name", "type", "unit", "labels", "what", "from")
    rows = [
        (f"`{each.name}`", each.kind.value, each.unit, ", ".join(each.labels) or "-", each.text, each.source)
        for each in families
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def documented() -> str:
    """The tables of all families in Markdown."""
    return "\n\n".join(f"### {heading}\n\n{table(families)}" for heading, families in GROUPS.items())
