"""Events about the configuration: NodeSets that are left out, and nodes without an address. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.config.outcome import Rollout
from slinky_operator.kube.events import EventType


def of_configuration(snapshot: Snapshot, config: Rollout) -> list[EmitEvent]:
    """Report NodeSets that are left out, and nodes without an address, once for each reason."""
    return [*_refused(snapshot, config), *_unaddressed(snapshot, config)]


def _refused(snapshot: Snapshot, config: Rollout) -> Iterable[EmitEvent]:
    """Report NodeSets that are left out; what the status shows already was reported by an earlier operator."""
    by_name = {one.name: raw for one, raw in snapshot.node_sets}
    stored = snapshot.cluster.status.config
    known = snapshot.memory.rollout.reported_nodesets | {
        (one.name, one.message) for one in (stored.refused if stored else ())
    }
    words = [(one.node_set, str(Reason.CONFIG_REFUSED), str(one.problem)) for one in config.rendered.refused]
    words += [
        (name, str(Reason.CONFIG_UNTRIED), f"preflights go on without its slurmd: {one.why}")
        for one in config.untried
        for name in one.node_sets
    ]
    for name, reason, message in words:
        if (name, message) not in known and name in by_name:
            yield EmitEvent(by_name[name], EventType.WARNING, reason, message)


def _unaddressed(snapshot: Snapshot, config: Rollout) -> Iterable[EmitEvent]:
    """Report nodes outside Kubernetes without an address, once for each change of them."""
    reason, words = Reason.NODES_WITHOUT_ADDRESS, config.unaddressed
    if words and snapshot.memory.last_events.get(reason) != words:
        yield EmitEvent(snapshot.raw, EventType.WARNING, reason, words)
