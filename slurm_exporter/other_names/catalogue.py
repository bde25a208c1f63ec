"""The sets of names by the word that switches them on, and what both need: one tally of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from slurm_client.models.service import Diag
from slurm_client.slices import sliced
from slurm_exporter.other_names import slurm_exporter, slurmctld
from slurm_exporter.other_names.tally import Tally
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
        Yields samples from a tally, the schedulers' statistics, and the budgets of users and accounts.
    """

    title: str
    families: Callable[[], Iterable[Family]]
    samples: Callable[[Tally, Diag | None, int, int], Iterable[Samples]]


SETS: Final = {
    "slurm-exporter": NameSet("Names of slurm-exporter 0.3", slurm_exporter.families, slurm_exporter.samples),
    "slurmctld": NameSet("Names of slurmctld 26.05", slurmctld.families, slurmctld.samples),
}


async def samples(
    snapshot: Snapshot, names: Collection[str], nodes: int, users: int, accounts: int
) -> Iterator[Samples]:
    """Return the samples of the sets that are switched on; what the snapshot does not know has none.

    Parameters
    ----------
    names
        Keys of :data:`SETS`.
    nodes, users, accounts
        Most that have samples of their own.
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
    }
    return _once(
        one
        for name in SETS
        if name in names
        for one in SETS[name].samples(tally, snapshot.diag, users, accounts)
        if known[one.family.source] is not None
    )


def _once(found: Iterable[Samples]) -> Iterator[Samples]:
    """Each family once: the sets share some names, with the same meaning."""
    seen: set[str] = set()
    for one in found:
        if one.family.name not in seen:
            seen.add(one.family.name)
            yield one
