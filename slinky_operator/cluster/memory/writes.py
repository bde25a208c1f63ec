"""What is remembered of own writes: what came of them, and what was denied."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from slinky_operator.kube.cache.store import version_of
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Settled, quantity

TRUSTED: Final = 5.0
"""Seconds for which the answer to an own write replaces the cached object; the cache has long shown it by then."""


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


@dataclass(slots=True)
class WriteMemory:
    """About objects of one Cluster."""

    denied: dict[tuple[str, str], Denied] = field(default_factory=dict)
    """By kind and name."""

    settled: dict[tuple[str, str], Settled] = field(default_factory=dict)
    """The results of own writes that differ from what was sent, by kind and name."""

    monitors: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By name: digest of the ServiceMonitor that was last read or written, and when (monotonic seconds)."""

    claims: dict[str, ClaimSize] = field(default_factory=dict)
    """Claims of daemons by name, as last looked at."""

    own_writes: dict[tuple[str, str], tuple[float, Object]] = field(default_factory=dict)
    """Objects after own writes, by kind and name, until the cache shows them."""

    def note(self, obj: Object, now: float) -> None:
        """Remember the answer to a write."""
        self.own_writes[obj["kind"], obj["metadata"]["name"]] = now, obj

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

    def frozen(self) -> WriteMemory:
        """A copy that later passes do not change."""
        return replace(
            self,
            denied=dict(self.denied),
            settled=dict(self.settled),
            monitors=dict(self.monitors),
            claims=dict(self.claims),
            own_writes=dict(self.own_writes),
        )
