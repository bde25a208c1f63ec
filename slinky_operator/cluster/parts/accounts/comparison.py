"""What came of keeping accounts, as it is remembered until the next time. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes, for the status."""

    accounts: int = 0
    users: int = 0
    associations: int = 0
    qos: int = 0
    unmanaged: int = 0
    """Accounts, users and QOS that are there and not in the tree."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing a tree with slurmdbd."""

    version: str
    """Of the spec and the users that it was made with."""

    at: float
    """Monotonic seconds at its end."""

    cost: float = 0.0
    """Seconds that reading and comparing took."""

    counts: Counts = Counts()
    left: int = 0
    """Changes that are still to be made, without those that were refused."""

    why: str = ""
    """Why slurmdbd could not be asked, or has not answered to a change; nothing more is known then."""

    problems: tuple[str, ...] = ()
    """What is wrong with the tree, or what Slurm has refused, each with its field."""

    refused: frozenset[str] = frozenset()
    """Changes that Slurm has refused, by what they are about: not tried again before the next comparison."""

    held: tuple[str, ...] = ()
    """What is not deleted because it is used."""

    too_many: str = ""
    """Why nothing is deleted: it would be too many at once."""

    settled: bool = False
    """Whether slurmdbd has all that the tree asks for: what differs later was changed by somebody else."""

    @property
    def pending(self) -> int:
        """Changes that are still to be made, or were refused."""
        return self.left + len(self.refused)
