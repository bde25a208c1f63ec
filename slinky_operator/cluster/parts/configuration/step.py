"""Steps about the configuration: its rollout, and what is reported on NodeSets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, Reload, Write
from slinky_operator.cluster.parts.configuration import events
from slinky_operator.cluster.pass_state import Progress
from slinky_operator.cluster.rollout.config.draft import Rollout
from slinky_operator.cluster.rollout.config.rollout import plan_rollout
from slinky_operator.cluster.rollout.preflight.replacement import Stage
from slinky_operator.cluster.writes.due import is_denied


def roll_out(progress: Progress) -> Iterable[Action]:
    """Take the next step of the rollout; a trial of slurmctld's next pod comes first."""
    snapshot, swap = progress.snapshot, progress.replacement
    first = swap.message if swap.stage is Stage.TRYING else ""
    rollout = plan_rollout(snapshot, progress.images, progress.now, progress.wall, first, progress.keys.signing.public)
    progress.rollout = rollout = _withheld(rollout, progress)
    progress.wake_up(rollout.wake_up)
    return [one for one in rollout.actions if not is_denied(snapshot, one, progress.now)]


def tell_of_configuration(progress: Progress) -> Iterable[Action]:
    """Report NodeSets that are left out, and nodes without an address."""
    return () if progress.rollout is None else events.of_configuration(progress.snapshot, progress.rollout)


def _withheld(rollout: Rollout, progress: Progress) -> Rollout:
    """The configuration, with what prevents its next step."""
    snapshot, key = progress.snapshot, progress.keys.held
    for one in rollout.actions:
        if isinstance(one, Write) and is_denied(snapshot, one, progress.now):
            kind, name = one.child.key
            words = f"{kind} {name} cannot be written: {snapshot.memory.denied[one.child.key].why}"
            return replace(rollout, applied=False, reason=Reason.CHILD_REFUSED, message=words)
    if key is not None and any(isinstance(one, Reload) for one in rollout.actions):
        return replace(rollout, applied=False, reason=key.reason, message=key.message)
    return rollout
