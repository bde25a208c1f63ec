"""From a snapshot to the samples of a page, in slices between which scrapes are answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_client.slices import sliced
from slurm_exporter.families import holdings, partitions, scheduler, services, shares
from slurm_exporter.families.calls import Calls
from slurm_exporter.families.jobs import JobTally
from slurm_exporter.families.nodes import NodeTally
from slurm_exporter.other_names import catalogue
from slurm_exporter.other_names.tally import Limits
from slurm_exporter.samples.budget import PARTITIONS, Names
from slurm_exporter.samples.family import Samples
from slurm_exporter.sources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Budgets:
    """What has samples, and most samples of what can be many.

    Parameters
    ----------
    nodes
        Nodes with samples of their own; 0 for sums only.
    users, accounts
        Users and accounts with samples of their own; 0, the default, for none at all.
    call_users
        Users with counters of their calls.
    names
        Other sets of names beside the exporter's own: keys of :data:`slurm_exporter.other_names.catalogue.SETS`.
    """

    nodes: int = 10_000
    users: int = 0
    accounts: int = 0
    call_users: int = 0
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Counted:
    """Samples, and how many objects have none of their own, by kind."""

    samples: tuple[Samples, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


class Counting:
    """Counts snapshots; remembers only what counters need.

    Parameters
    ----------
    budgets
        What has samples of its own.
    """

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._scheduler = scheduler.Counters()
        self._calls = Calls(budgets.call_users)

    async def count(self, snapshot: Snapshot) -> Counted:
        """Count everything that a snapshot knows; what it does not know has no samples."""
        samples: list[Samples] = [*services.samples(snapshot)]
        left_out: dict[str, int] = {}
        # The same partitions in all families: those that there are before those that a node or a job names.
        names = Names(PARTITIONS, sorted(snapshot.partitions or ()))
        if snapshot.nodes is not None:
            nodes = NodeTally(self._budgets.nodes, names)
            async for name in sliced(sorted(snapshot.nodes)):
                nodes.add(snapshot.nodes[name])
            samples += nodes.samples()
            left_out["nodes"] = nodes.left_out
        if snapshot.jobs is not None:
            jobs = JobTally(snapshot.now, self._budgets.users, self._budgets.accounts, names)
            async for job in sliced(snapshot.jobs.values()):
                jobs.add(job)
            samples += jobs.samples()
        if snapshot.partitions is not None:
            own = [each for name, each in snapshot.partitions.items() if names.of(name) == each.name]
            samples += partitions.samples(own)
            left_out["partitions"] = len(snapshot.partitions) - len(own)
        if snapshot.licenses is not None:
            samples += holdings.licenses(snapshot.licenses.values())
        if snapshot.reservations is not None:
            samples += holdings.reservations(snapshot.reservations.values(), snapshot.now)
        if snapshot.shares is not None:
            samples += shares.samples(snapshot.shares, self._budgets.users)
        if snapshot.diag is not None:
            samples += scheduler.gauges(snapshot.diag)
            self._scheduler.update(snapshot.diag)
            self._calls.update(snapshot.diag)
            samples += [*self._scheduler.samples(), *self._calls.samples()]
        budgets = self._budgets
        limits = Limits(budgets.users, budgets.accounts, budgets.call_users)
        samples += await catalogue.samples(snapshot, budgets.names, budgets.nodes, limits)
        return Counted(tuple(samples), left_out)
