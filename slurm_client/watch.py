"""
Watches: what changes in Slurm as events, out of a server that can only be polled.

This is the door to :mod:`slurm_client.watching`, where each concern has a module: events, the pace of polls, what is
known, readers, the watch itself, and which watches a client has.
"""

from __future__ import annotations

from slurm_client.watching.events import (
    SYNCED,
    Event,
    JobEvent,
    LicenseEvent,
    NodeEvent,
    PartitionEvent,
    ReservationEvent,
    merged,
)
from slurm_client.watching.pace import Pace
from slurm_client.watching.reader import Reader
from slurm_client.watching.status import WatchStatus
from slurm_client.watching.watch import Watch

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
