"""What is remembered of a NodeSet between passes; all of it can be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason, is_true
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.observe import OLDEST_PICTURE
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.slurm.clients import ContactState

SETTLING: Final = 30.0
"""Seconds for which a first answer of Slurm's is waited for before a NodeSet is told that there is none."""

_UNSETTLED: Final = frozenset({Reason.CONNECTING, Reason.CLUSTER_NOT_READY})


@dataclass(slots=True)
class Memory:
    """What is remembered of one NodeSet."""

    ended: set[str] = field(default_factory=set)
    told_slurm_at: float | None = None
    """Clock of the last write to Slurm that its cache may not show; until it does, nothing is counted."""
    hurried_for: float | None = None
    """The write for which a picture was asked for already: asking again would only make it asked for twice."""

    announced: dict[str, frozenset[str]] | None = None
    """Troubles that an Event has told of, by reason, with the pods and nodes they are about; None after a start."""
    blind_since: float | None = None
    """Clock of the first pass in a row that has found Slurm without an answer yet."""

    orphans: dict[str, float] = field(default_factory=dict)
    """Nodes without a pod whose names may be used again, and since when that is known, by the clock never set back."""

    def orphaned_since(self, names: Collection[str], now: float) -> float:
        """Since when all of these nodes have been known to have no pod; the beginning of time where there are none.

        No job begins on a node without a slurmd: what Slurm has said of jobs since then holds.
        """
        self.orphans = {name: self.orphans.get(name, now) for name in names}
        return max(self.orphans.values(), default=-math.inf)

    def settles_in(self, snapshot: Snapshot, clock: Callable[[], float]) -> float | None:
        """Seconds for which the stored status stands although Slurm has not answered yet; None if it does not.

        After a start of the operator each Slurm is asked for the first time. A NodeSet whose status says that Slurm can
        be asked would otherwise be told unreachable, and reachable again, with new times for its conditions.
        """
        if snapshot.slurm.readable or snapshot.slurm.reason not in _UNSETTLED:
            self.blind_since = None
            return None
        if not is_true(snapshot.nodeset.status.conditions, NodeSetCondition.SLURM_REACHABLE):
            return None
        if self.blind_since is None:
            self.blind_since = clock()
        left = self.blind_since + SETTLING - clock()
        return left if left > 0 else None

    def follow_write(self, slurm: Slurm | None) -> float | None:
        """Look whether the picture of the nodes shows the last write, and ask for another picture once if it does not.

        Parameters
        ----------
        slurm
            The Slurm of the Cluster; None where there is none to reach.

        Returns
        -------
        float | None
            Clock of the write that a Slurm which can be asked does not show yet; None if there is none.
        """
        if self.told_slurm_at is None or slurm is None or slurm.contact.state is not ContactState.READY:
            return None
        if slurm.nodes_at is not None and slurm.nodes_at > self.told_slurm_at:
            self.told_slurm_at = None
        elif self.hurried_for != self.told_slurm_at:
            self.hurried_for = self.told_slurm_at
            slurm.hurry()
        return self.told_slurm_at

    @staticmethod
    def is_awaited(write: float | None, now: float) -> bool:
        """Whether no pass is made before a write shows: a count made too early would drain one node more than wanted.

        Parameters
        ----------
        write
            What `follow_write` gave.
        now
            The same clock.
        """
        return write is not None and now - write < OLDEST_PICTURE
