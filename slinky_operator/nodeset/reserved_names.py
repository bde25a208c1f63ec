"""Names of Slurm nodes that a NodeSet is about to use.

Two NodeSets may want one name at the same moment: one pod on each Node, for both, and the Node has one name. The pod
cache shows which of them has it, but only after the first has created its pod. Until then it is reserved here. Only one
process creates pods, so a dictionary is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

HELD_FOR: Final = 60.0
"""Seconds until the pod cache shows a name, or it was not used after all; far longer than either takes."""


class ReservedNames:
    """Which NodeSet reserves which name.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], tuple[str, float]] = {}
        self._swept_at = clock()

    def take(self, cluster_uid: str, node: str, nodeset_uid: str) -> bool:
        """Reserve a name for a NodeSet; False if another one has reserved it."""
        now = self._clock()
        key = (cluster_uid, node)
        holder, until = self._held.get(key, (nodeset_uid, 0.0))
        if holder != nodeset_uid and until > now:
            return False
        if now - self._swept_at > HELD_FOR:
            self._held = {name: held for name, held in self._held.items() if held[1] > now}
            self._swept_at = now
        self._held[key] = (nodeset_uid, now + HELD_FOR)
        return True

    def release(self, nodeset_uid: str) -> None:
        """Release all names of a deleted NodeSet: its pods were deleted before it."""
        self._held = {name: held for name, held in self._held.items() if held[0] != nodeset_uid}
