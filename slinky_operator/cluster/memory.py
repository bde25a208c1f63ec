"""What is remembered about a Cluster between two passes and stands in no cache of Kubernetes objects.

Nothing here is needed to be right after a restart: everything is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slinky_api.v1alpha1.cluster import JobCounts


@dataclass(frozen=True, slots=True)
class Mounted:
    """What the agent beside slurmctld has told."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    files: Mapping[str, str] | None
    """Digest of each mounted file; `None` if the agent could not be asked."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """How the last `reconfigure` has ended."""

    pod_uid: str
    hash: str
    """Of the configuration that was to be loaded."""

    at: float
    """Monotonic seconds."""

    proven: bool
    why: str = ""
    """What is missing; Slurm's own words where it has refused."""


@dataclass(frozen=True, slots=True)
class Denied:
    """An object that could not be written."""

    digest: str
    """Of the body that was refused: another body is tried again. Empty for an object that is somebody else's."""

    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Jobs:
    """Counts of jobs, and what they have cost."""

    at: float
    cost: float
    """Seconds the answer took."""

    counts: JobCounts | None


@dataclass(slots=True)
class Memory:
    """About one Cluster, by uid."""

    uid: str
    mounted: Mounted | None = None
    loaded: Loaded | None = None
    denied: dict[tuple[str, str], Denied] = field(default_factory=dict)
    """By kind and name."""

    jobs: Jobs | None = None
    counts_written_at: float = float("-inf")
    told: frozenset[tuple[str, str]] = frozenset()
    """Refused NodeSets and reasons that an Event has told of."""

    status: Mapping[str, Any] | None = None
    """The status as we wrote it last, until the cache shows it."""

    def frozen(self) -> Memory:
        """A copy that later passes do not change."""
        return replace(self, denied=dict(self.denied))
