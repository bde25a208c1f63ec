"""State and limits of partitions; what is on their nodes is counted in `nodes`, their queues in `jobs`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Final

from slurm_client.models import Partition
from slurm_exporter.samples import words
from slurm_exporter.samples.family import Samples, gauge

UP = gauge(
    "partition_up", "Whether a partition takes jobs and starts them.", "partitions/: partition.state", ["partition"]
)
STATE = gauge(
    "partition_state", "1 for the state that a partition has.", "partitions/: partition.state", ["partition", "state"]
)
PRIORITY_TIER = gauge("partition_priority_tier", "PriorityTier.", "partitions/: priority.tier", ["partition"])
TIME_LIMIT = gauge(
    "partition_time_limit_seconds", "MaxTime; +Inf for none.", "partitions/: maximums.time", ["partition"], "seconds"
)
ALL: Final = (UP, STATE, PRIORITY_TIER, TIME_LIMIT)


def samples(found: Collection[Partition]) -> Iterator[Samples]:
    """All families of partitions, of those that have samples of their own: states and limits do not add up."""
    yield Samples(UP, {(each.name,): each.is_up for each in found})
    yield Samples(STATE, {(each.name, words.base(each.state).lower()): 1 for each in found})
    yield Samples(PRIORITY_TIER, {(each.name,): each.priority_tier for each in found})
    yield Samples(
        TIME_LIMIT,
        {
            (each.name,): each.max_time.total_seconds() if isinstance(each.max_time, timedelta) else float("inf")
            for each in found
            if each.max_time is not None
        },
    )
