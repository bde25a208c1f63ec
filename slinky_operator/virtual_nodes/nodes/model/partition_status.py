"""What a Cluster shows of its partitions, for those who look there rather than at Nodes and pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from slinky_api.v1alpha1.cluster.status import PartitionStatus
from slinky_operator.slurm.jobs.job_facts import PartitionJobs
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

MOST: Final = 100
"""Partitions that are shown, the first by name."""

LONGEST: Final = 253
"""Characters of the name of a partition that is shown."""

GPU: Final = "gpu"
"""Name of the generic resource."""


def shown_partitions(
    wanted: Iterable[str],
    facts: Mapping[str, PartitionFacts],
    jobs: PartitionJobs | None,
    before: Iterable[PartitionStatus],
) -> tuple[PartitionStatus, ...]:
    """The partitions in the status.

    Parameters
    ----------
    wanted
        Their names; none for all that Slurm has.
    facts
        What Slurm says of each.
    jobs
        Their jobs, by the last list; None before the first.
    before
        What the status shows: an operator that has just started keeps its jobs until it has listed them itself.
    """
    known = {one.name: one.jobs for one in before} if jobs is None else {}
    names = sorted(name for name in set(wanted) or facts if name in facts and len(name) <= LONGEST)
    return tuple(
        PartitionStatus(
            name=name,
            state=facts[name].state,
            nodes=facts[name].nodes,
            cpus=facts[name].cpus,
            gpus=facts[name].gres.get(GPU, 0),
            jobs=known.get(name) if jobs is None else jobs.of(name),
        )
        for name in names[:MOST]
    )
