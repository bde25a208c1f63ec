"""Why the Slurm of a SlurmJob cannot be asked, and how soon it is looked again. Pure."""

from __future__ import annotations

from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.slurmjob.model.news import Note
from slinky_operator.slurmjob.model.snapshot import Snapshot

RETRY_S: Final = 5.0
"""Seconds until the next look, where no event will come."""

OBSTACLE_S: Final = 60.0
"""The same, where an event will come: of the Cluster, or of the connection to its Slurm."""


def of(snapshot: Snapshot) -> Note | None:
    """Why Slurm cannot be asked."""
    if snapshot.obstacle is not None:
        return Note(snapshot.obstacle.reason, snapshot.obstacle.message)
    if snapshot.cluster is None:
        return no_cluster(snapshot)
    return None


def no_cluster(snapshot: Snapshot) -> Note:
    """What is shown where there is no Cluster."""
    namespace, name = snapshot.job.cluster_key
    return Note(Reason.CLUSTER_NOT_FOUND, f"there is no Cluster {namespace}/{name}")
