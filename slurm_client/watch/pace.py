"""How often a watch asks: what it may cost, and how long it waits after failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pace"]


@dataclass(frozen=True, slots=True)
class Pace:
    """
    How often to ask.

    Parameters
    ----------
    interval
        Seconds between polls while answers are cheap.
    share
        Largest share of time that full answers may take; after one that took a second, at least
        ``1 / share - 1`` seconds pass.
    longest_interval
        Seconds; bounds what ``share`` demands.
    resync
        Seconds after which a full answer is asked for even if nothing seems to have changed (the server's clock may
        have been set back).
    first_pause, longest_pause
        Seconds to wait after a failed poll; doubles in between and is drawn at random from its upper half.
    backlog
        Events a reader may be behind before several changes of one object are made into one.
    refusals
        Polls in a row that are refused (bad token, no right, no such call) before readers get the error. Before the
        first list the first refusal is enough: what never worked is not a moment's trouble.
    """

    interval: float = 1.0
    share: float = 0.2
    longest_interval: float = 60.0
    resync: float = 300.0
    resync_per_object: float = 0.0
    longest_resync: float = 7200.0
    first_pause: float = 0.5
    longest_pause: float = 15.0
    backlog: int = 100_000
    refusals: int = 3

    def after_full(self, cost: float) -> float:
        """Return the seconds to wait after a full answer that took ``cost`` seconds."""
        return max(self.interval, min(self.longest_interval, cost * (1 / self.share - 1)))

    def after_nothing_new(self, resync: float, objects: int) -> float:
        """Return the seconds until the next full answer for safety's sake after one that has shown nothing new."""
        return max(self.resync, min(resync * 2, self.longest_resync, objects * self.resync_per_object))

    def after_failure(self, failures: int, jitter: Callable[[], float]) -> float:
        """Return the seconds to wait after that many failures in a row."""
        pause = min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 16))
        return max(self.interval, pause * (0.5 + 0.5 * jitter()))
