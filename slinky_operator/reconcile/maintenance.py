"""How a maintenance window is shown, on a Cluster and on its NodeSets. Pure."""

from __future__ import annotations

from datetime import datetime

from slinky_api.v1alpha1.cluster.maintenance import Maintenance
from slinky_operator.reconcile.text import stamp


def shown(maintenance: Maintenance, now: datetime, node_set: str | None = None) -> str:
    """The window that is on or comes next, in a few words with a time; empty without one.

    Parameters
    ----------
    now
        With a time zone.
    node_set
        Only windows with this NodeSet; `None` for all.
    """
    found = maintenance.coming(now, node_set)
    if found is None:
        return ""
    window, period = found
    return f"{window.name} until {stamp(period.end)}" if period.is_on(now) else f"{window.name} {stamp(period.start)}"
