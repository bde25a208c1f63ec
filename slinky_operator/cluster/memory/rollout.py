"""What is remembered of the configuration: loading, preflights, and what they leave out or hold back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from slinky_operator.kube.objects import Object

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

    part: str
    """Identifies the rejected part: another one is tried."""

    why: str
    proven: bool
    """Whether it alone was the cause; otherwise it is tried again, alone, after the others."""


@dataclass(slots=True)
class RolloutMemory:
    """About the configuration of one Cluster."""

    loaded: Loaded | None = None
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

    runs: Object | None = None
    """The ConfigMap that last held what slurmctld runs, as it was: it may be deleted, and its copy with it."""

    def judge(self, name: str, verdict: Verdict) -> None:
        """Remember the result of a preflight; only the last ones matter."""
        self.verdicts.pop(name, None)
        self.verdicts[name] = verdict
        for old in list(self.verdicts)[:-VERDICTS]:
            del self.verdicts[old]

    def frozen(self) -> RolloutMemory:
        """A copy that later passes do not change."""
        return replace(self, verdicts=dict(self.verdicts), left_out=dict(self.left_out), held=dict(self.held))


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
