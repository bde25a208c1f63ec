"""Names of Slurm nodes that a NodeSet is just taking.

Two NodeSets may want one name at the same moment: one pod on each Node, for both, and the Node has one name. Which of
them has it is seen in the pod cache, but only after the first has made its pod. Until then it is kept here. There is
one process that creates pods, so a dictionary is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

HELD_FOR: Final = 60.0
"""Seconds until a name is seen in the pod cache, or was not taken after all; far longer than either takes."""


class ReservedNames:
    """Who is taking which name.

    Parameters
    ----------
    clock
        Seconds, never set back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], tuple[str, float]] = {}
        self._swept_at = clock()

    def take(self, cluster_uid: str, node: str, nodeset_uid: str) -> bool:
        """Take a name for a NodeSet; False if another one is taking it."""
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
        """Give back all names of a NodeSet that is gone: its pods went before it."""
        self._held = {name: held for name, held in self._held.items() if held[0] != nodeset_uid}
