"""Lists that were larger than an answer may be: for some minutes, what is in them is asked for in other ways."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurm_client import errors

__all__ = ["Oversized"]

_SECONDS = 300.0
"""Until such a list is asked for again: the server has to write all of it."""

_log = logging.getLogger("slurm_client")


class Oversized:
    """
    Names of such lists.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def __contains__(self, what: str) -> bool:
        return self._clock() < self._until.get(what, float("-inf"))

    def add(self, what: str, error: errors.TooLarge) -> None:
        """Take note that a list of all these is too large."""
        self._until[what] = self._clock() + _SECONDS
        _log.warning("the list of all %s is too large, so they are read one by one: %s", what, error)

    def clear(self) -> None:
        """Forget all."""
        self._until.clear()
