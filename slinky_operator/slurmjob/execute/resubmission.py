"""When a job that Slurm has refused is submitted again. Pure, but for what it remembers.

Mostly a refusal is for good: the pauses grow, up to a day. Where it may pass by itself (a limit that other jobs use up,
nodes or a partition that are not there yet, a key that is being changed), they stay at a quarter of an hour for the
first hour, and grow to four hours: by then nobody waits for it, and most such jobs can never run. Pauses differ at
random, and each minute of a namespace has room for so many submissions: jobs that were refused together, or that a new
leader finds refused, do not come again together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

MOST: Final = 30
"""Submissions of one namespace in a minute, unless the settings say otherwise."""

PAUSES_S: Final = (10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 24 * 3600.0)
"""Seconds until the next submission, after the first refusal, the second and so on."""

PASSING_S: Final = (*PAUSES_S[:4], *[900.0] * 4, *[3600.0] * 3, 4 * 3600.0)
"""The same after refusals that may pass by themselves: 16 submissions on the first day, and 6 on each other."""

JITTER: Final = 0.25
"""By which part a pause is longer or shorter, at most."""

MINUTE: Final = timedelta(minutes=1)


class Resubmissions:
    """Times at which jobs that were refused are submitted again.

    Parameters
    ----------
    most
        Of one namespace in a minute.
    luck
        A number from 0 to 1 at random.
    """

    def __init__(self, most: int, luck: Callable[[], float]) -> None:
        self._most = most
        self._luck = luck
        self._taken: dict[str, Counter[int]] = {}
        """Submissions in each minute since the epoch, by namespace."""
        self._pruned_at = 0

    @property
    def kept(self) -> int:
        """How many minutes of namespaces are remembered."""
        return sum(map(len, self._taken.values()))

    def pause(self, refusals: int, *, passing: bool = False) -> timedelta:
        """How long to wait after a refusal.

        Parameters
        ----------
        refusals
            How many there were before.
        passing
            Whether it may pass by itself.
        """
        pauses = PASSING_S if passing else PAUSES_S
        seconds = pauses[min(refusals, len(pauses) - 1)]
        return timedelta(seconds=seconds * (1 - JITTER + 2 * JITTER * self._luck()))

    def reserve(self, namespace: str, now: datetime, pause: timedelta) -> datetime:
        """Reserve the first minute with room after a pause; returns a time in it."""
        this = _minute(now)
        if this != self._pruned_at:
            self._pruned_at = this
            kept = {name: {at: n for at, n in minutes.items() if at >= this} for name, minutes in self._taken.items()}
            self._taken = {name: Counter(minutes) for name, minutes in kept.items() if minutes}
        taken = self._taken.setdefault(namespace, Counter())
        wanted = now + pause
        minute = _minute(wanted)
        if taken[minute] < self._most:
            taken[minute] += 1
            return wanted
        while taken[minute] >= self._most:
            minute += 1
        taken[minute] += 1
        begin = datetime.fromtimestamp(minute * MINUTE.total_seconds(), now.tzinfo)
        return begin + MINUTE * self._luck()


def _minute(at: datetime) -> int:
    return int(at.timestamp() // MINUTE.total_seconds())
