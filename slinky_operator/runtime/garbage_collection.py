"""Settings of the garbage collector, so that it does not traverse the caches repeatedly.

Caches of thousands of Kubernetes objects are millions of long-lived containers without cycles. With Python's defaults
traversing them costs as much as decoding them: measured 0.24 ms for a pod of 7 KB, and 0.11 ms without any collection.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 10_000
"""New containers between two collections; one pod of 7 KB has about 150."""

MIDDLING: Final = 5
"""Collections of the young generation between two of the middle one.

A collection stops the process: about 12 ms at 5 times 10,000 containers, about 150 ms at 20 times 50,000."""

OLD: Final = 1000
"""Collections of the middle generation between two of everything that is not frozen."""

SWEEP_BYTES: Final = 8 * 2**20
"""Bytes that may be dropped between two collections of young garbage, which take some milliseconds."""


@contextmanager
def pause_collector() -> Iterator[None]:
    """Collect nothing inside; for imports at the start, which make half a million containers that all stay.

    What there is afterwards is frozen. With Python's defaults the collector would look at the growing heap a dozen
    times, which took a fifth of the CPU of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def relax_collector() -> None:
    """Collect less often; call once at the start."""
    gc.set_threshold(YOUNG, MIDDLING, OLD)


def freeze_caches() -> None:
    """Exclude existing objects from all further collections; call once after the caches have been filled.

    A frozen object is still freed when its last reference is gone.
    """
    gc.collect()
    gc.freeze()


class Sweeper:
    """Collects young garbage after so many bytes that are dropped in cycles.

    The collector counts objects, not bytes: a hundred answers of a megabyte are few objects, and those in cycles, as
    answers of HTTP libraries are, would all wait for a collection that their number does not bring about.
    """

    def __init__(self, every: int = SWEEP_BYTES) -> None:
        self._every = every
        self._dropped = 0

    def dropped(self, size: int) -> None:
        """Count bytes that are not needed any more; collects if there are many."""
        self._dropped += size
        if self._dropped >= self._every:
            self._dropped = 0
            gc.collect(1)
