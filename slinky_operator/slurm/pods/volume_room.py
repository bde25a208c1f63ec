"""When a volume has little room, and how that is written. Pure.

A volume is reported before it is full, and until it has clearly more room: a job that ends and one that starts must
not write an Event each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LOW: Final = 0.10
"""Share of bytes or inodes below which a volume has little room."""

ENOUGH: Final = 0.15
"""Share from which it has room again."""

FULL: Final = 0.01
"""Share below which it counts as full."""

LOOKED_AT: Final = "it is being looked at"
"""Why nothing is known of a volume whose agent has just started."""

JOB_OUTPUT: Final = "job-output"
"""The volume that a job log server looks at."""

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Room:
    """How much room a volume has."""

    size: int
    """Bytes."""

    free: int
    inodes: int
    """0 where the file system has no fixed number of them."""

    inodes_free: int

    @property
    def share_of_bytes(self) -> float:
        """Bytes that are free, from 0 to 1; of a file system that says no size, all."""
        return self.free / self.size if self.size else 1.0

    @property
    def share_of_inodes(self) -> float:
        """Inodes that are free, from 0 to 1; of a file system without a fixed number of them, all."""
        return self.inodes_free / self.inodes if self.inodes else 1.0

    @property
    def share(self) -> float:
        """The smaller of the two shares."""
        return min(self.share_of_bytes, self.share_of_inodes)

    @property
    def is_full(self) -> bool:
        """Whether next to nothing is left."""
        return self.share < FULL

    def left(self) -> str:
        """What is left of what there is less of, in words."""
        if self.share_of_inodes < self.share_of_bytes:
            return f"{int(100 * self.share_of_inodes)}% of its {self.inodes} inodes left"
        return f"{int(100 * self.share_of_bytes)}% of {self.size // _MIB} MiB left"


@dataclass(frozen=True, slots=True)
class Volumes:
    """The answer of a pod about its volumes."""

    pod_uid: str
    asked_at: float
    """Monotonic seconds."""

    rooms: Mapping[str, Room] = field(default_factory=dict)
    """By name of the volume."""

    silent: Mapping[str, str] = field(default_factory=dict)
    """Why nothing is known of the others."""

    why: str = ""
    """Why nothing is known at all."""


def is_low(room: Room, *, was_low: bool) -> bool:
    """Whether a volume has little room; one that had little has it until there is clearly more."""
    return room.share < (ENOUGH if was_low else LOW)
