"""What one count looks at, and what it finds for each NodeSet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_operator.autoscaling.rules.rooms import Shape
from slurm_client.models import Job, Node

MOST_NAMED: Final = 10
"""Jobs of one kind that are kept by name for a NodeSet."""

MOST_REASONS: Final = 50
"""Reasons of jobs that are not counted which are kept for a NodeSet."""

OTHER_REASONS: Final = "other reasons"
"""What stands for more of them."""

MOST_LIMITS: Final = 3
"""Limits of a count that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledSet:
    """A NodeSet with autoscaling, as the rules see it."""

    name: str
    replicas: int
    most: int
    """Its maxReplicas."""
    shape: Shape
    """Of its nodes."""
    partitions: frozenset[str] = frozenset()
    weight: int = 1
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A node that Slurm has."""

    node: Node
    owner: str = ""
    """Its NodeSet, if that has autoscaling."""
    leaving: bool = False
    """Whether the operator drains it because replicas are lower: it is none of them."""
    shape: Shape
    free: tuple[int, int, tuple[tuple[str, int], ...]]
    """CPUs, MiB and generic resources that no job has."""
    busy: bool = False
    """Whether it has a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that the rules look at, of one Cluster at one moment."""

    jobs: Sequence[Job]
    nodes: Sequence[Standing]
    sets: Sequence[ScaledSet]
    most_nodes: Mapping[str, int | None]
    """Partitions that start jobs, each with the most nodes that one job may have there."""
    now: datetime


@dataclass(slots=True)
class Names:
    """Some jobs by name, and how many there are."""

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Add one; the first few are shown."""
        self.count += 1
        if len(self.shown) < MOST_NAMED and name not in self.shown:
            self.shown.append(name)


@dataclass(slots=True)
class NodeDemand:
    """What jobs need of one NodeSet."""

    nodes: int = 0
    """Replicas that they need; not yet within its limits."""
    busy: int = 0
    """Nodes that have jobs."""
    counted: Names = field(default_factory=Names)
    """Pending jobs that are placed on it."""
    waiting: Names = field(default_factory=Names)
    """Those that would use it, and for which there is no room below the maximum."""
    impossible: Names = field(default_factory=Names)
    """Those that could not run at the maximum either."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many pending records in its partitions are not counted, by reason."""
    unseen: Names = field(default_factory=Names)
    """Pending jobs in its partitions that a limit of the count has left out, whole or in part."""
    limits: list[str] = field(default_factory=list)
    """Which limits, for people; the first few."""

    @property
    def complete(self) -> bool:
        """Whether all jobs were counted; if not, they need `nodes` at least."""
        return not self.unseen.count

    def leave_out(self, why: str) -> None:
        """Note a record that is not counted."""
        known = why in self.left_out or len(self.left_out) < MOST_REASONS
        self.left_out[why if known else OTHER_REASONS] += 1

    def overlook(self, name: str, limit: str) -> None:
        """Note a job that a limit has left out."""
        self.unseen.add(name)
        if limit not in self.limits and len(self.limits) < MOST_LIMITS:
            self.limits.append(limit)
