"""What daemons have proven about a key set of auth/slurm. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """What one daemon has proven about a key set."""

    at: float
    """Monotonic seconds."""

    lacks: str = ""
    """What shows that it does not have the set, or why that is not known; empty if it has it."""

    outdated: bool = False
    """Whether it has shown to run with another set, which a reconfigure may end."""


@dataclass(frozen=True, slots=True)
class KeyProof:
    """Which daemons have proven to have a key set of auth/slurm."""

    set: str
    """Which set, without its keys."""

    since: datetime
    """Since when they are asked."""

    asked: float
    """Monotonic seconds of the last round."""

    rounds: int = 1
    found: Mapping[str, KeyFinding] = field(default_factory=dict)
    """By `Holder.id`."""
