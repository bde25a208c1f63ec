"""Steps about the configuration: its rollout, and what is reported on NodeSets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, EmitEvent, Reload, Write
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.configuration.part import Configuration
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.config.outcome import Rollout
from slinky_operator.cluster.rollout.plan import plan_rollout
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage
from slinky_operator.cluster.writes.due import is_denied
from slinky_operator.kube.events import EventType


def roll_out(state: PassState) -> Iterable[Action]:
    """Take the next step of the rollout; a trial of slurmctld's next pod comes first."""
    snapshot, swap = state.snapshot, state.found(Replacement)
    first = swap.message if swap.stage is Stage.TRYING else ""
    rollout = _withheld(plan_rollout(state.view, first, state.found(Keys).signing.public), state)
    state.note(Configuration(rollout))
    state.wake_up(rollout.wake_up)
    return [one for one in rollout.actions if not is_denied(snapshot, one, state.now)]


def tell_of_configuration(state: PassState) -> Iterable[Action]:
    """Report NodeSets that are left out, and nodes without an address, once for each reason."""
    rollout = state.found(Configuration).rollout
    return () if rollout is None else (*_refused(state.snapshot, rollout), *_unaddressed(state.snapshot, rollout))


def _withheld(rollout: Rollout, state: PassState) -> Rollout:
    """The configuration, with what prevents its next step."""
    snapshot, key = state.snapshot, state.found(Keys).held
    for one in rollout.actions:
        if isinstance(one, Write) and is_denied(snapshot, one, state.now):
            kind, name = one.child.key
            words = f"{kind} {name} cannot be written: {snapshot.memory.writes.denied[one.child.key].why}"
            return replace(rollout, applied=False, reason=Reason.CHILD_REFUSED, message=words)
    if key is not None and any(isinstance(one, Reload) for one in rollout.actions):
        return replace(rollout, applied=False, reason=key.reason, message=key.message)
    return rollout


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
