"""The sets of names by the word that switches them on, and what both need: one tally of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from slurm_client.slices import sliced
from slurm_exporter.other_names import early_slurm_exporter, rivosinc, slurm_exporter, slurmctld, vpenso
from slurm_exporter.other_names.tally import Limits, Tally
from slurm_exporter.samples.family import Family, Samples
from slurm_exporter.sources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class NameSet:
    """Names of another exporter.

    Attributes
    ----------
    title
        Of its table in the documentation.
    families
        Yields the declarations.
    samples
        Yields samples from a tally, all that Slurm answered, and what limits single users and accounts.
    """

    title: str
    families: Callable[[], Iterable[Family]]
    samples: Callable[[Tally, Snapshot, Limits], Iterable[Samples]]


SETS: Final = {
    "slurm-exporter": NameSet("Names of slurm-exporter 0.3", slurm_exporter.families, slurm_exporter.samples),
    "slurm-exporter-0.1": NameSet(
        "Names of slurm-exporter 0.1 and 0.2", early_slurm_exporter.families, early_slurm_exporter.samples
    ),
    "slurmctld": NameSet("Names of slurmctld 26.05", slurmctld.families, slurmctld.samples),
    "vpenso": NameSet("Names of vpenso's prometheus-slurm-exporter", vpenso.families, vpenso.samples),
    "rivosinc": NameSet("Names of rivosinc's prometheus-slurm-exporter", rivosinc.families, rivosinc.samples),
}


INCOMPATIBLE: Final = (
    frozenset({"slurm-exporter-0.1", "slurmctld"}),
    frozenset({"slurm-exporter-0.1", "rivosinc"}),
    frozenset({"slurmctld", "vpenso"}),
)
"""Sets that give one name other labels, or another meaning: one page cannot have both."""


def incompatible(names: Collection[str]) -> frozenset[str] | None:
    """Return two of the names that cannot be served together; `None` if all can."""
    return next((pair for pair in INCOMPATIBLE if pair <= set(names)), None)


async def samples(snapshot: Snapshot, names: Collection[str], nodes: int, limits: Limits) -> Iterator[Samples]:
    """Return the samples of the sets that are switched on; what the snapshot does not know has none.

    Parameters
    ----------
    names
        Keys of :data:`SETS`.
    nodes
        Most nodes that have samples of their own.
    limits
        Most of others.
    """
    if not names:
        return iter(())
    tally = Tally(nodes)
    for name in sorted(snapshot.partitions or ()):
        tally.add_partition(name)
    async for name in sliced(sorted(snapshot.nodes or ())):
        tally.add_node((snapshot.nodes or {})[name])
    async for job in sliced((snapshot.jobs or {}).values()):
        tally.add_job(job)
    known = {
        "nodes/": snapshot.nodes,
        "jobs/": snapshot.jobs,
        "partitions/": snapshot.partitions,
        "diag/": snapshot.diag,
        "shares/": snapshot.shares,
        "licenses/": snapshot.licenses,
        "the exporter": snapshot.health,
    }
    return _once(
        one
        for name in SETS
        if name in names
        for one in SETS[name].samples(tally, snapshot, limits)
        if known[one.family.source] is not None
    )


def _once(found: Iterable[Samples]) -> Iterator[Samples]:
    """Each family once: sets that can be served together share some names, with the same meaning."""
    seen: set[str] = set()
    for one in found:
        if one.family.name not in seen:
            seen.add(one.family.name)
            yield one
