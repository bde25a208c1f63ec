"""
Watches: what changes in Slurm as events, out of a server that can only be polled.

Each concern has a module: events, the pace of polls, what is known, readers, the watch itself, and which watches a
client has.
"""

from __future__ import annotations

from slurm_client.watch.events import (
    SYNCED,
    Event,
    JobEvent,
    LicenseEvent,
    NodeEvent,
    PartitionEvent,
    ReservationEvent,
    merged,
)
from slurm_client.watch.pace import Pace
from slurm_client.watch.reader import Reader
from slurm_client.watch.status import WatchStatus
from slurm_client.watch.watch import Watch

__all__ = [
    "SYNCED",
    "Event",
    "JobEvent",
    "LicenseEvent",
    "NodeEvent",
    "Pace",
    "PartitionEvent",
    "Reader",
    "ReservationEvent",
    "Watch",
    "WatchStatus",
    "merged",
]
