"""What is remembered about a Cluster between two passes and stands in no cache of Kubernetes objects.

Nothing here is needed to be right after a restart: everything is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from slinky_api.v1alpha1.cluster_status import JobCounts
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.cluster.in_use.removals import Use
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import version_of
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.children import Settled

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
class Names:
    """What the agent beside slurmctld has told of host names."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    found: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    """Looked up in vain. What is in neither has not been looked up yet."""

    why: str = ""
    """Why the last question had no answer."""


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

    asked: int | None = None
    """Slurm's time right before the `reconfigure` of which nobody knows yet how it has ended."""

    since: float = 0.0
    """Monotonic seconds when that `reconfigure` was sent."""

    unread: int = 0
    """How often slurmctld was asked in vain before that: it answered, and had read nothing."""


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """States of partitions as slurmctld has shown them."""

    asked_at: float
    """Monotonic seconds."""

    hash: str
    """Of the configuration that was live then."""

    states: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    """Why there is no answer."""


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
class LeftOut:
    """A way to run slurmd that preflights leave out, since it cannot be tried for reasons of its own."""

    why: str
    at: float
    """Monotonic seconds of the last attempt."""

    attempts: int = 1
    everywhere: bool = False
    """Whether it could not be tried on a Node either where a pod of it runs."""


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
class Claim:
    """A claim as the API server has shown it."""

    name: str
    at: float
    """Monotonic seconds."""

    deleted: str = ""
    """Since when it is being deleted, as Kubernetes writes times; empty if it is not, or not there."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Counts of jobs, and what they have cost."""

    at: float
    cost: float
    """Seconds the answer took."""

    counts: JobCounts | None


@dataclass(frozen=True, slots=True)
class KeyTrial:
    """Whether slurmctld takes tokens made with a key."""

    key: bytes = field(repr=False)
    at: float
    """Monotonic seconds of the last attempt."""

    accepted: bool
    attempts: int


@dataclass(slots=True)
class Memory:
    """About one Cluster, by uid."""

    uid: str
    mounted: Mounted | None = None
    names: Names | None = None
    loaded: Loaded | None = None
    denied: dict[tuple[str, str], Denied] = field(default_factory=dict)
    """By kind and name."""

    settled: dict[tuple[str, str], Settled] = field(default_factory=dict)
    """What our writes have come to where that is not what they said, by kind and name."""
    claim: Claim | None = None
    """Of slurmctld's state, while slurmctld has no pod."""

    jobs: Jobs | None = None
    node_sets: ParseCache[NodeSet] = field(default_factory=lambda: ParseCache(NodeSet))
    """Its NodeSets as they were last read."""

    rules_took: float = 0.0
    """Seconds that the last plan took in a thread; 0 where it needed none."""

    counts_written_at: float = float("-inf")
    use: Use | None = None
    """What Slurm has said about what is in use."""

    states: PartitionStates | None = None

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Of the last preflights, by name."""

    left_out: dict[str, LeftOut] = field(default_factory=dict)
    """Ways to run slurmd that cannot be tried, by `SlurmdKind.key`."""

    held: dict[str, Held] = field(default_factory=dict)
    """NodeSets by name."""

    held_for: str = ""
    """The Cluster's own part of the configuration with which they were held; another one frees them."""

    touched: tuple[str, float] = ("", float("-inf"))
    """Hash of the configuration for which slurmctld's pod was last touched, and when."""

    replaced: frozenset[tuple[str, str]] = frozenset()
    """Components whose pods were deleted to end their waiting, each with the configuration they were to find."""

    reported_nodesets: frozenset[tuple[str, str]] = frozenset()
    """Refused NodeSets and reasons that an Event has told of."""

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Keys that daemons run with, for as long as the copy of them is lost."""

    keys_troubled: bool = False
    """Whether something is wrong with a key, so that Secrets are read again soon."""

    keys_asked: tuple[str, float] = ("", float("-inf"))
    """What Secrets were last read again for, before daemons read them, and when (monotonic seconds)."""

    key_trial: KeyTrial | None = None
    """Of the last key of auth/jwt that has changed."""

    slurmd_pods_left: tuple[tuple[str, ...], float] = ((), float("-inf"))
    """Pods of NodeSets that the API server showed when the Cluster was to be taken away, and when that was."""

    last_events: dict[str, str] = field(default_factory=dict)
    """What the last Event of each reason said about the Cluster."""

    own_writes: dict[tuple[str, str], tuple[float, Object]] = field(default_factory=dict)
    """Objects as our writes left them, by kind and name, until the cache shows them."""

    adopted: tuple[str, ...] = ()
    """What has been taken over from a former Cluster of this name and no Event has told of yet."""

    def note(self, obj: Object, now: float) -> None:
        """Remember the answer to a write."""
        self.own_writes[obj["kind"], obj["metadata"]["name"]] = now, obj

    def judge(self, name: str, verdict: Verdict) -> None:
        """Remember how a preflight has ended; only the last ones matter."""
        self.verdicts.pop(name, None)
        self.verdicts[name] = verdict
        for old in list(self.verdicts)[:-VERDICTS]:
            del self.verdicts[old]

    def newest(self, kind: str, name: str, cached: Object | None, now: float) -> Object | None:
        """What the cache shows, or what a write of ours has left if that is newer."""
        known = self.own_writes.get((kind, name))
        if known is None:
            return cached
        at, obj = known
        if now - at < TRUSTED and (cached is None or version_of(cached) < version_of(obj)):
            return obj
        del self.own_writes[kind, name]
        return cached

    def frozen(self) -> Memory:
        """A copy that later passes do not change."""
        return replace(
            self,
            denied=dict(self.denied),
            settled=dict(self.settled),
            own_writes=dict(self.own_writes),
            verdicts=dict(self.verdicts),
            held=dict(self.held),
            left_out=dict(self.left_out),
            last_events=dict(self.last_events),
        )


def left_out_again(
    known: Mapping[str, LeftOut], why: Mapping[str, str], now: float, *, on_its_node: bool
) -> dict[str, LeftOut]:
    """What is to be remembered of ways to run slurmd that could not be tried now, for the first time or again.

    Parameters
    ----------
    known
        What was remembered.
    why
        By `SlurmdKind.key`.
    on_its_node
        Whether the attempt was on a Node where it runs.
    """
    found = {}
    for key, words in why.items():
        old = known.get(key, LeftOut(words, now, attempts=0))
        everywhere = on_its_node or old.everywhere
        found[key] = LeftOut(words, now, old.attempts + 1, everywhere)
    return found
