"""What a job of the fake does once it runs; when that comes is left to `ends`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """
    What a job does once it runs.

    Parameters
    ----------
    duration
        After which time it ends; ``None`` if it does not end by itself.
    exit_code
        With what; the job is COMPLETED with 0 and FAILED with any other.
    """

    duration: timedelta | None = None
    exit_code: int = 0
