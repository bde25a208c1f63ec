"""Whether updates of slurmd pods wait for a maintenance window of the Cluster. Pure.

Decided from the spec and the time alone, in each pass: a window that has ended starts no replacement, whatever the
state of the Cluster controller and of Slurm. A pod whose node was drained for an update and still has a job at the end
keeps it, and its node is undrained.
"""

from __future__ import annotations

from datetime import datetime

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.reconcile.text import named, stamp


def wait_of(cluster: Cluster, nodeset: str, now: datetime) -> str:
    """What an update waits for; empty if for nothing.

    Parameters
    ----------
    nodeset
        Name of the NodeSet.
    now
        The time of day; timezone-aware.
    """
    if cluster.deleting:
        return ""
    holding = cluster.spec.maintenance.holding(nodeset)
    if not holding or any(window.current(now) is not None for window in holding):
        return ""
    names = named([window.name for window in holding])
    following = [period.start for window in holding if (period := window.next(now)) is not None]
    when = f"begins at {stamp(min(following))}" if following else "does not come again: change or remove it"
    return f"Cluster {cluster.name} holds updates for maintenance ({names}), which {when}"
