"""What is remembered about a Cluster between two passes and stands in no cache of Kubernetes objects.

Nothing here is needed to be right after a restart: everything is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from slinky_api.v1alpha1.cluster_status import JobCounts
from slinky_operator.cluster.in_use import Use
from slinky_operator.kube.objects import Object
from slinky_operator.kube.store import version_of

TRUSTED: Final = 5.0
"""Seconds for which the answer to a write of ours is taken for the object; the cache has long shown it by then."""


VERDICTS: Final = 16
"""Outcomes of preflights that are remembered for each Cluster."""


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
    change: str
    """Which write of the ConfigMap was to be loaded."""

    at: float
    """Monotonic seconds."""

    proven: bool
    why: str = ""
    """What is missing; Slurm's own words where it has refused."""

    lost: bool = False
    """Whether nobody could be asked, so that nothing is said about the configuration."""

    answered: int | None = None
    """Slurm's time right before a `reconfigure` that it has answered, if it could not be asked since."""


class Outcome(Enum):
    """What a preflight has found."""

    PASSED = auto()
    REFUSED = auto()
    UNDECIDED = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a preflight has ended."""

    outcome: Outcome
    why: str
    """The daemon and its words, or why there are none."""

    at: float
    """Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Held:
    """A NodeSet whose part of the configuration is left as it was, because a preflight with it was refused."""

    text: str
    """What it asked for: another text is tried."""

    why: str
    proven: bool
    """Whether it alone made the difference; otherwise it is tried again, alone, when the others are through."""


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
    use: Use | None = None
    """What Slurm has said about what is in use."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Of the last preflights, by name."""

    unusable: dict[str, float] = field(default_factory=dict)
    """Images of which no slurmd came in a preflight, and when (monotonic seconds)."""

    held: dict[str, Held] = field(default_factory=dict)
    """NodeSets by name."""

    held_for: str = ""
    """The Cluster's own part of the configuration with which they were held; another one frees them."""

    touched: tuple[str, float] = ("", float("-inf"))
    """Hash of the configuration for which slurmctld's pod was last touched, and when."""

    replaced: frozenset[tuple[str, str]] = frozenset()
    """Components whose pods were deleted to end their waiting, each with the configuration they were to find."""

    told: frozenset[tuple[str, str]] = frozenset()
    """Refused NodeSets and reasons that an Event has told of."""

    answers: dict[tuple[str, str], tuple[float, Object]] = field(default_factory=dict)
    """Objects as our writes left them, by kind and name, until the cache shows them."""

    def note(self, obj: Object, now: float) -> None:
        """Remember the answer to a write."""
        self.answers[obj["kind"], obj["metadata"]["name"]] = now, obj

    def judge(self, name: str, verdict: Verdict) -> None:
        """Remember how a preflight has ended; only the last ones matter."""
        self.verdicts.pop(name, None)
        self.verdicts[name] = verdict
        for old in list(self.verdicts)[:-VERDICTS]:
            del self.verdicts[old]

    def newest(self, kind: str, name: str, cached: Object | None, now: float) -> Object | None:
        """What the cache shows, or what a write of ours has left if that is newer."""
        known = self.answers.get((kind, name))
        if known is None:
            return cached
        at, obj = known
        if now - at < TRUSTED and (cached is None or version_of(cached) < version_of(obj)):
            return obj
        del self.answers[kind, name]
        return cached

    def frozen(self) -> Memory:
        """A copy that later passes do not change."""
        return replace(
            self,
            denied=dict(self.denied),
            answers=dict(self.answers),
            verdicts=dict(self.verdicts),
            held=dict(self.held),
            unusable=dict(self.unusable),
        )
