"""What is remembered about a Cluster between two passes and is in no cache of Kubernetes objects.

It may be lost at a restart: everything is queried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.question import Answers
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import version_of
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Settled, quantity

TRUSTED: Final = 5.0
"""Seconds for which the answer to an own write replaces the cached object; the cache has long shown it by then."""


VERDICTS: Final = 16
"""Preflight outcomes remembered for each Cluster."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The outcome of the last `reconfigure`."""

    pod_uid: str
    change: str
    """Which write of the ConfigMap was to be loaded."""

    at: float
    """Monotonic seconds."""

    proven: bool
    why: str = ""
    """What is missing; Slurm's own message if it has rejected the files."""

    lost: bool = False
    """Whether nothing answered, so that the outcome says nothing about the configuration."""

    asked: int | None = None
    """Slurm's time right before a `reconfigure` whose outcome is not known yet."""

    since: float = 0.0
    """Monotonic seconds when that `reconfigure` was sent."""

    unread: int = 0
    """How often slurmctld got one before without effect: it answered, and had read nothing."""


class Outcome(Enum):
    """The outcome of a preflight."""

    PASSED = auto()
    REFUSED = auto()
    UNDECIDED = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a preflight."""

    outcome: Outcome
    why: str
    """The daemon and its message, or why there is none; of a rehearsal that has passed, the release of slurmctld."""

    at: float
    """Monotonic seconds."""

    releases: Mapping[str, str] = field(default_factory=dict)
    """What images have said of their Slurm, by daemon and image."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A slurmd kind that preflights leave out, since it cannot be tried for reasons of its own."""

    why: str
    at: float
    """Monotonic seconds of the last attempt."""

    attempts: int = 1
    everywhere: bool = False
    """Whether it could not be tried even on a Node where a pod of it runs."""


@dataclass(frozen=True, slots=True)
class Held:
    """A NodeSet whose part of the configuration is held back, because a preflight with it was rejected."""

    text: str
    """The rejected text: another text is tried."""

    why: str
    proven: bool
    """Whether it alone was the cause; otherwise it is tried again, alone, after the others."""


@dataclass(frozen=True, slots=True)
class Denied:
    """An object that could not be written."""

    digest: str
    """Of the body that was rejected: another body is tried again. Empty for an object that belongs to somebody else."""

    why: str
    at: float


@dataclass(frozen=True, slots=True)
class ClaimSize:
    """What came of making a claim as large as the spec says. Sizes are quantities; empty if there is none."""

    wanted: str
    size: str
    """What the claim requests; empty if there is no claim."""

    at: float
    """Monotonic seconds."""

    capacity: str = ""
    """What its volume has; empty if it has none yet."""

    grown: str = ""
    """Up to which size the operator has made it grow."""

    said: str = ""
    """What its volume plugin says of growing."""

    why: str = ""
    """Why it stays smaller; empty if it does not."""

    @property
    def is_growing(self) -> bool:
        """Whether its volume is smaller than requested by the operator."""
        return bool(self.grown and self.capacity) and (quantity(self.capacity) or 0) < (quantity(self.grown) or 0)

    def shows_other_than(self, earlier: ClaimSize | None) -> bool:
        """Whether there is something else to report than what was known."""
        if earlier is None:
            return bool(self.why) or self.is_growing or quantity(self.size) != quantity(self.wanted)
        return replace(self, at=earlier.at) != earlier


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """Which version of a Secret was read, and since when."""

    version: str
    at: float
    """Monotonic seconds at which it was first read."""

    changed: bool = False
    """Whether another version was read before."""

    refused: bool = False
    """Whether what it holds has been refused."""

    suspect: bool = False
    """Whether kubelets may have mounted something else than this version and the accepted key: it follows one that was
    refused, or holds what was accepted before, so that there was another one in between."""


@dataclass(slots=True)
class Memory:
    """About one Cluster, by uid."""

    uid: str
    answers: Answers = field(default_factory=Answers)
    """What questions of parts were answered last."""

    loaded: Loaded | None = None
    denied: dict[tuple[str, str], Denied] = field(default_factory=dict)
    """By kind and name."""

    settled: dict[tuple[str, str], Settled] = field(default_factory=dict)
    """The results of own writes that differ from what was sent, by kind and name."""
    monitors: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By name: digest of the ServiceMonitor that was last read or written, and when (monotonic seconds)."""

    claims: dict[str, ClaimSize] = field(default_factory=dict)
    """Claims of daemons by name, as last looked at."""

    node_sets: ParseCache[NodeSet] = field(default_factory=lambda: ParseCache(NodeSet))
    """Its NodeSets as last parsed."""

    rules_took: float = 0.0
    """Seconds that the last plan took in a thread; 0 if it needed none."""

    counts_written_at: float = float("-inf")
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Of the last preflights, by name."""

    left_out: dict[str, LeftOut] = field(default_factory=dict)
    """Slurmd kinds that cannot be tried, by `SlurmdKind.key`."""

    held: dict[str, Held] = field(default_factory=dict)
    """NodeSets by name."""

    held_for: str = ""
    """The Cluster's own part of the configuration with which they were held back; another one releases them."""

    touched: tuple[str, float] = ("", float("-inf"))
    """Hash of the configuration for which slurmctld's pod was last touched, and when."""

    replaced: frozenset[tuple[str, str]] = frozenset()
    """Components whose pods were deleted to end their back-off, each with the configuration they should find."""

    reported_nodesets: frozenset[tuple[str, str]] = frozenset()
    """Rejected NodeSets and reasons already reported in an Event."""

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Keys that daemons run with, as long as the copy of them is lost."""

    keys_troubled: bool = False
    """Whether something is wrong with a key, so that Secrets are read again soon."""

    keys_asked: tuple[str, float] = ("", float("-inf"))
    """The purpose for which Secrets were last read again, before daemons read them, and when (monotonic seconds)."""

    key_seen: SeenSecret | None = None
    """The Secret with the user's key of auth/slurm."""

    key_staged: SeenSecret | None = None
    """The Secret from which pods mount it once it is accepted."""

    slurmd_pods_left: tuple[tuple[str, ...], float] = ((), float("-inf"))
    """Pods of NodeSets that the API server showed when the Cluster was to be deleted, and when that was."""

    last_events: dict[str, str] = field(default_factory=dict)
    """The text of the last Event of each reason about the Cluster."""

    own_writes: dict[tuple[str, str], tuple[float, Object]] = field(default_factory=dict)
    """Objects after own writes, by kind and name, until the cache shows them."""

    adopted: tuple[str, ...] = ()
    """What was taken over from a former Cluster of this name and not yet reported in an Event."""

    def note(self, obj: Object, now: float) -> None:
        """Remember the answer to a write."""
        self.own_writes[obj["kind"], obj["metadata"]["name"]] = now, obj

    def judge(self, name: str, verdict: Verdict) -> None:
        """Remember the result of a preflight; only the last ones matter."""
        self.verdicts.pop(name, None)
        self.verdicts[name] = verdict
        for old in list(self.verdicts)[:-VERDICTS]:
            del self.verdicts[old]

    def newest(self, kind: str, name: str, cached: Object | None, now: float) -> Object | None:
        """The cached object, or the result of an own write if that is newer."""
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
            answers=self.answers.copy(),
            denied=dict(self.denied),
            settled=dict(self.settled),
            claims=dict(self.claims),
            monitors=dict(self.monitors),
            own_writes=dict(self.own_writes),
            verdicts=dict(self.verdicts),
            held=dict(self.held),
            left_out=dict(self.left_out),
            last_events=dict(self.last_events),
        )


def left_out_again(
    known: Mapping[str, LeftOut], why: Mapping[str, str], now: float, *, on_its_node: bool
) -> dict[str, LeftOut]:
    """The slurmd kinds to remember as not tried, for the first time or again.

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
