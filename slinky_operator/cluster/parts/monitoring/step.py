"""The step about ServiceMonitors. Pure.

They are in no cache: each is read again from time to time, and when it is to change. Its deletion is left to its owner,
the Service of the metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, KeepMonitor
from slinky_operator.cluster.parts.daemons import Made
from slinky_operator.cluster.parts.monitoring.manifests import monitored, service_monitor
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.resources import SERVICES

READ_EVERY: Final = 60.0
"""Seconds until an unchanged ServiceMonitor is read again, or one that could not be written is tried again."""

_NEVER: Final = ("", float("-inf"))


def keep_monitors(state: PassState) -> Iterator[Action]:
    """Write each ServiceMonitor once the Service that owns it is there."""
    snapshot = state.snapshot
    cluster = snapshot.cluster
    for one in monitored(cluster):
        service = snapshot.children.get((SERVICES.kind, one.name))
        if service is None or not adoption.is_ours(service, cluster) or cluster.deleting:
            continue
        child = service_monitor(cluster, one, service["metadata"]["uid"])
        # What could not be written is shown by the key of the child.
        made = state.found(Made)
        state.note(replace(made, children=(*made.children, child)))
        digest, at = snapshot.memory.writes.monitors.get(child.name, _NEVER)
        left = at + READ_EVERY - state.now
        if digest != child.digest or left <= 0:
            yield KeepMonitor(child)
        else:
            state.wake_up(left)
