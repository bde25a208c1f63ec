"""What is remembered of a NodeSet between passes; all of it can be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from slinky_operator.nodeset.observe import OLDEST_PICTURE
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.slurm.clients import ContactState


@dataclass(slots=True)
class Memory:
    """What is remembered of one NodeSet."""

    ended: set[str] = field(default_factory=set)
    told_slurm_at: float | None = None
    """Clock of the last write to Slurm that its cache may not show; until it does, nothing is counted."""
    hurried_for: float | None = None
    """The write for which a picture was asked for already: asking again would only make it asked for twice."""

    orphans: dict[str, float] = field(default_factory=dict)
    """Nodes without a pod whose names may be used again, and since when that is known, by the clock never set back."""

    def orphaned_since(self, names: Collection[str], now: float) -> float:
        """Since when all of these nodes have been known to have no pod; the beginning of time where there are none.

        No job begins on a node without a slurmd: what Slurm has said of jobs since then holds.
        """
        self.orphans = {name: self.orphans.get(name, now) for name in names}
        return max(self.orphans.values(), default=-math.inf)

    def must_wait_for(self, slurm: Slurm | None, clock: Callable[[], float]) -> bool:
        """Whether a write of ours may be missing in the picture of a Slurm that can be asked.

        A count made too early would drain one node more for the same purpose.
        """
        if self.told_slurm_at is None or slurm is None or slurm.contact.state is not ContactState.READY:
            return False
        if slurm.nodes_at is not None and slurm.nodes_at > self.told_slurm_at:
            self.told_slurm_at = None
            return False
        if self.hurried_for != self.told_slurm_at:
            self.hurried_for = self.told_slurm_at
            slurm.hurry()
        return clock() - self.told_slurm_at < OLDEST_PICTURE
