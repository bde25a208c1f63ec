"""How much the picture of a watch is worth; how it is drawn is left to the watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm_client import errors

__all__ = ["WatchStatus"]


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """
    How much the picture of a watch is worth.

    Parameters
    ----------
    synced
        Whether there was a first list.
    age
        Seconds since the server last confirmed the picture; ``None`` before the first list.
    failures
        Polls that failed in a row.
    error
        Why the last one did.
    polls, full_answers
        Requests for the list, and how many of them were answered by a list.
    interval
        Seconds to the next poll, as of the last one.
    objects
        How many there are.
    failed_polls
        How many of the polls failed since the watch was made.
    duration
        Seconds that the last poll took; ``None`` before the first.
    """

    synced: bool
    age: float | None
    failures: int
    error: errors.SlurmError | None
    polls: int
    full_answers: int
    interval: float
    objects: int
    failed_polls: int = 0
    duration: float | None = None
