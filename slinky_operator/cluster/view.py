"""What the rules of one pass decide from: the snapshot, the images of daemons, and the time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import Snapshot


@dataclass(frozen=True, slots=True)
class View:
    """A Cluster as one pass sees it."""

    snapshot: Snapshot
    images: Images
    """Of the daemons for which neither the Cluster nor a NodeSet names one."""

    now: float
    """Monotonic seconds."""

    wall: datetime
    """The time of day."""
