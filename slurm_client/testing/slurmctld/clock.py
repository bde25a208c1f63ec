"""A clock that a test can move: it follows another clock, and jumps ahead on request."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """
    Seconds since 1970.

    Parameters
    ----------
    base
        The clock that it goes with.

    Attributes
    ----------
    follow
        Called with the time to come when the clock is moved; has to move it there by :meth:`move_to`, in steps of its
        own choice.
    """

    def __init__(self, base: Callable[[], float] = time.time) -> None:
        self._base = base
        self._ahead = 0.0
        self.follow: Callable[[float], None] = self.move_to

    def __call__(self) -> float:
        """Return the time."""
        return self._base() + self._ahead

    def advance(self, by: float | timedelta) -> None:
        """
        Move the clock ahead; what is to happen in the meantime happens, in its order.

        Parameters
        ----------
        by
            Seconds, or a length of time.

        Raises
        ------
        ValueError
            For a negative length.
        """
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if seconds < 0:
            raise ValueError(f"the clock cannot be moved back, by {-seconds} s")
        self.follow(self() + seconds)

    def move_to(self, moment: float) -> None:
        """Jump to a time, and nothing else; stay if it is past."""
        self._ahead += max(0.0, moment - self())
        if self() < moment:
            # The sum was rounded down; whole seconds are counted.
            self._ahead += 1e-6
