"""How many pods are evicted: of one namespace, and of all together. Pure, but for what it remembers.

Slurm may end thousands of jobs in one moment: a partition that is cleared, say. Each eviction is two writes, an Event,
a pod that its controller makes again and a job that is submitted again. So they have a pace. The first ones of a
namespace go at once: nearly every group that Slurm ends by itself. Where all want more than there is, each namespace
that waits gets the same share, however many pods it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

AT_ONCE: Final = 256
"""Evictions of a namespace without a pause, unless others have just had theirs; `A_SECOND` at least."""

A_SECOND: Final = 20.0
"""Evictions of a namespace in a second after those."""

ALL_AT_ONCE: Final = 512
"""The same of all namespaces together; half of what is left is for the next one."""

ALL_A_SECOND: Final = 60.0
"""Evictions of all namespaces that wait together, in a second."""

AGAIN_S: Final = 1.0
"""Seconds until those that were not evicted are looked at again."""

WAITS_S: Final = 10.0
"""Seconds for which a namespace counts as one that waits."""


@dataclass(slots=True)
class _Tokens:
    """Evictions that are left; they come back by and by."""

    most: float
    left: float
    at: float
    waits_until: float = 0.0

    def fill(self, now: float, a_second: float) -> None:
        """Let some come back."""
        self.left = min(self.most, self.left + (now - self.at) * a_second)
        self.at = now


class Evictions:
    """The evictions of all namespaces.

    Parameters
    ----------
    clock
        Seconds, never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = _Tokens(ALL_AT_ONCE, ALL_AT_ONCE, clock())
        """What namespaces may still take without a pause."""
        self._of: dict[str, _Tokens] = {}

    @property
    def kept(self) -> int:
        """How many namespaces are remembered."""
        return len(self._of)

    def take(self, namespace: str, wanted: int) -> int:
        """Take as many as there are for a namespace, up to a number; for the others it waits."""
        now = self._clock()
        self._forget(now)
        waiting = sum(one.waits_until > now for name, one in self._of.items() if name != namespace)
        # While some wait, what comes back is theirs.
        self._first.fill(now, 0.0 if waiting else ALL_A_SECOND)
        own = self._of.get(namespace)
        if own is None:
            first = min(AT_ONCE, max(A_SECOND, self._first.left / 2))
            self._first.left = max(0.0, self._first.left - first)
            own = self._of[namespace] = _Tokens(AT_ONCE, first, now)
        own.fill(now, min(A_SECOND, ALL_A_SECOND / (1 + waiting)))
        taken = min(wanted, int(own.left))
        own.left -= taken
        own.waits_until = now + WAITS_S if taken < wanted else 0.0
        return taken

    def _forget(self, now: float) -> None:
        """Forget namespaces that have all of theirs again."""
        for name, one in list(self._of.items()):
            if one.waits_until <= now:
                one.fill(now, A_SECOND)
                if one.left >= one.most:
                    del self._of[name]
