"""How a source is doing: age of its data, duration of a poll, polls and failures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """Of one source at one time.

    Parameters
    ----------
    name
        `nodes`, `jobs`, `diag` …
    is_up
        Whether the last poll succeeded.
    confirmed_at
        Monotonic seconds at which Slurm last confirmed the data; `None` before the first answer.
    polls, failures
        Since the start.
    duration
        Seconds that the last poll took.
    error
        What went wrong last; empty if nothing did.
    """

    name: str
    is_up: bool
    confirmed_at: float | None
    polls: int
    failures: int
    duration: float | None = None
    error: str = ""
