"""What lists of jobs show: when jobs end by their time limits, how many each partition has, and why they wait. Pure.

slurmctld shows an end for a job without a limit too: a year after its start.

Reasons for waiting are mostly one word of a short list (`Resources`, `Priority`), but some name a user, a group or a
reservation: they are cut, and only the most frequent are kept by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Final

from slinky_api.v1alpha1.cluster.status import PartitionJobCounts, WaitingReason
from slurm_client.models import Job
from slurm_client.models.values import Infinite

YEAR: Final = timedelta(days=365)


def has_limit(job: Job) -> bool:
    """Whether Slurm ends the job at some time."""
    if isinstance(job.time_limit, Infinite):
        return False
    return job.end_time is None or job.start_time is None or job.end_time - job.start_time < YEAR


def last(jobs: Iterable[Job]) -> datetime | None:
    """When the last of some jobs ends by its limit; None if one has none, or none is known."""
    ends = [job.end_time if has_limit(job) else None for job in jobs]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


MOST: Final = 8
"""Reasons that are named of a Cluster; the others are counted together."""

MOST_OF_PARTITION: Final = 5
"""Reasons that are named of one partition."""

MOST_DISTINCT: Final = 4_096
"""Reasons that are counted separately."""

MOST_PARTITIONS: Final = 1_000
"""Partitions that jobs are counted for."""

LONGEST: Final = 80
"""Characters of a reason."""

LONGEST_PARTITION: Final = 253
"""Characters of the name of a partition that jobs are counted for."""

OTHERS: Final = "other reasons"


@dataclass(frozen=True, slots=True)
class PartitionJobs:
    """The jobs of each partition, as of one list."""

    counts: Mapping[str, PartitionJobCounts]
    """Of each partition that has some."""
    is_whole: bool = True
    """Whether the list had pending jobs too."""

    def of(self, partition: str) -> PartitionJobCounts:
        """The jobs of a partition."""
        return self.counts.get(partition) or PartitionJobCounts(pending=0 if self.is_whole else None)


class JobCounter:
    """Counts jobs one by one, so that a long list can be counted in slices.

    Tasks of an array that wait together are one job. A job that waits for one of several partitions counts in each.
    """

    def __init__(self) -> None:
        self._waiting = _Reasons()
        self._distinct = 0
        self._partitions: dict[str, _PartitionCounts] = {}

    def add(self, job: Job) -> None:
        """Count a job."""
        waits = job.is_pending
        if not waits and job.state.base != "RUNNING":
            return
        reason = job.state_reason[:LONGEST] if waits else ""
        if waits:
            self._waiting.add(reason, may_be_new=True)
        names = job.partition
        for name in names.split(",", MOST_PARTITIONS) if "," in names else (names,):
            counts = self._partitions.get(name)
            if counts is None:
                if len(self._partitions) >= MOST_PARTITIONS or len(name) > LONGEST_PARTITION:
                    continue
                counts = self._partitions[name] = _PartitionCounts()
            if not waits:
                counts.running += 1
            elif counts.waiting.add(reason, may_be_new=self._distinct < MOST_DISTINCT):
                self._distinct += 1

    @property
    def waiting(self) -> tuple[WaitingReason, ...]:
        """Pending jobs by Slurm's reason, the most frequent first."""
        return self._waiting.named(MOST)

    def partitions(self, *, whole: bool) -> PartitionJobs:
        """The jobs of each partition.

        Parameters
        ----------
        whole
            Whether the list had pending jobs too; they are not known otherwise.
        """
        counts = {
            name: PartitionJobCounts(
                running=found.running,
                pending=found.waiting.jobs if whole else None,
                waiting=found.waiting.named(MOST_OF_PARTITION) if whole else (),
            )
            for name, found in self._partitions.items()
        }
        return PartitionJobs(counts, is_whole=whole)


class _Reasons:
    """Pending jobs by reason."""

    def __init__(self) -> None:
        self.jobs = 0
        self._by_reason: dict[str, int] = {}

    def add(self, reason: str, *, may_be_new: bool) -> bool:
        """Count a job; whether its reason is a new one."""
        self.jobs += 1
        known = self._by_reason.get(reason)
        if known is None and not (may_be_new and len(self._by_reason) < MOST_DISTINCT):
            # One of the other reasons.
            return False
        self._by_reason[reason] = (known or 0) + 1
        return known is None

    def named(self, most: int) -> tuple[WaitingReason, ...]:
        """The most frequent first, the rest together at the end."""
        found = nsmallest(most, self._by_reason.items(), key=lambda one: (-one[1], one[0]))
        reasons = [WaitingReason(reason=" ".join(word.split()) or "None", jobs=jobs) for word, jobs in found]
        rest = self.jobs - sum(jobs for _, jobs in found)
        return (*reasons, *([WaitingReason(reason=OTHERS, jobs=rest)] if rest else []))


class _PartitionCounts:
    """The jobs of one partition."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting = _Reasons()
