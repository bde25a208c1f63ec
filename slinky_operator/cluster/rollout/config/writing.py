"""The part of the rollout before the write: disposable daemons try a new configuration, then it is written. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, Ask, EmitEvent, Write, asks
from slinky_operator.cluster.daemons import Images, shared_objects
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.config import manual_changes
from slinky_operator.cluster.rollout.config.candidate import Draft, Rollout
from slinky_operator.cluster.rollout.config.held_nodesets import changed, holding
from slinky_operator.cluster.rollout.config.loading import Loading
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.in_use import answer
from slinky_operator.cluster.rollout.in_use.answer import USE_VALID, is_fresh
from slinky_operator.cluster.rollout.in_use.touched import touches_jobs
from slinky_operator.cluster.rollout.preflight import decision, jobs_copy
from slinky_operator.cluster.rollout.slurm_questions import StatesQuestion, UseQuestion
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.cluster.trials.preflight_pod import Preflight
from slinky_operator.kube.events import EventType
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.conf import ConfInputs, render

TRY_REFUSED: Final = timedelta(minutes=5)
"""How long a configuration that slurmctld rejected is not retried, unless it changes."""


@dataclass(frozen=True, slots=True)
class Change:
    """A configuration that is being rolled out to slurmctld."""

    snapshot: Snapshot
    images: Images
    inputs: ConfInputs
    draft: Draft
    stored: StoredConfig
    load: Loading
    """How far slurmctld has loaded what it mounts now."""

    asking: tuple[Action, ...]
    """Queries to Slurm that are due."""

    first: str = ""
    """What has to happen before anything is tried; empty if nothing."""


def bring_in(  # noqa: PLR0911 - one for each step
    change: Change, now: float, wall: datetime
) -> Rollout:
    """Write a new configuration to the ConfigMap that slurmctld mounts: tried first, unless none has ever run."""
    snapshot, draft, stored, load = change.snapshot, change.draft, change.stored, change.load
    current, good = stored.current, stored.good
    candidate = draft.candidate
    busy = (*change.asking, *load.actions)
    if current is not None:
        refused, why, at = shared_objects.refused_of(current)
        if refused == candidate.hash and abs(wall - (at or wall)) < TRY_REFUSED:
            words = f"slurmctld rejected it, and the last good one is restored: {why}"
            return draft.refused(words, *busy, wake_up=load.wake_up, reason=Reason.CONFIG_ROLLED_BACK)
    change_id = stored.next_change
    body = shared_objects.config_map(snapshot.cluster, candidate.files, candidate.hash, change_id)
    write = Write(Child(CONFIGMAPS, body), stored.mounted)
    # What has never run cannot break, and what ran last can be restored without a query.
    if stored.never_ran(snapshot, draft.known_status) or (good or {}).get("data") == candidate.files:
        return _written(change, write, busy, now)
    if change.first:
        return draft.waiting(change.first, *busy, wake_up=load.wake_up or 5.0)
    live = (good or current or {}).get("data") or {}
    later = [one.name for one in _later(change, live)]
    preflight = decision.trial(snapshot, change.images, candidate, live, now, wall, beside=later)
    jobs = _with_jobs(change, live, preflight, now, wall)
    trial = _with_later(change, jobs.after(preflight), live, now, wall)
    if trial.stage is Stage.PASSED:
        return _passed(change, write, trial, now)
    if trial.stage in {Stage.UNDER_WAY, Stage.STUCK}:
        wake_up = min(one for one in (trial.wake_up, load.wake_up, 5.0) if one is not None)
        words = "; ".join((f"preflight: {trial.message}", *draft.kept.why))
        return draft.waiting(words, *trial.actions, *busy, wake_up=wake_up, reason=_reason(trial))
    if preflight.stage is Stage.PASSED:
        return draft.refused(trial.message, *trial.actions, *busy, wake_up=trial.wake_up)
    found = changed(change.inputs, candidate, stored.slurm_conf)
    if found:
        rest = {**change.inputs.held, **{one.name: "" for one in found}}
        others = render(draft.kept.over(replace(change.inputs, held=rest)), stored.slurm_conf)
        alone = len(found) == 1 and current is not None and others.files == current["data"]
        hold = holding(snapshot, change.inputs, found, trial.message, alone=alone)
        return draft.refused(trial.message, *trial.actions, hold, *busy)
    return draft.refused(trial.message, *trial.actions, *busy, wake_up=load.wake_up)


def later_part(change: Change, now: float, wall: datetime, *, beside: Collection[str] = ()) -> Trial:
    """The trial of what is wanted in the end, if keys of slurm.conf keep their running value for now.

    A value that no daemon takes would otherwise be found when the last job has ended, in a maintenance window.

    Parameters
    ----------
    beside
        Names of preflights of what is to be live before; they stay.
    """
    if not _waits(change):
        return Trial(Stage.PASSED)
    live = (change.stored.good or change.stored.current or {}).get("data") or {}
    found = decision.trial(change.snapshot, change.images, change.draft.wanted, live, now, wall, beside=beside)
    return (
        replace(found, message=f"what waits for jobs cannot be used then: {found.message}")
        if (found.stage is Stage.REFUSED)
        else found
    )


def _waits(change: Change) -> bool:
    """Whether keys of slurm.conf keep their running value for now."""
    return bool(change.draft.kept.keys) and change.draft.wanted.hash != change.draft.candidate.hash


def _later(change: Change, live: Mapping[str, str]) -> tuple[Preflight, ...]:
    """The preflights of what is wanted in the end, if that is tried too."""
    return decision.preflights(change.snapshot, change.images, change.draft.wanted, live) if _waits(change) else ()


def _with_later(change: Change, trial: Trial, live: Mapping[str, str], now: float, wall: datetime) -> Trial:
    """A trial that has passed, followed by that of what waits; one that cannot be made delays nothing."""
    if trial.stage is not Stage.PASSED:
        return trial
    own = decision.preflights(change.snapshot, change.images, change.draft.candidate, live)
    later = later_part(change, now, wall, beside=[one.name for one in own])
    if later.stage in {Stage.PASSED, Stage.STUCK}:
        return trial
    return replace(later, actions=(*trial.actions, *later.actions))


def _reason(trial: Trial) -> Reason:
    """Why a configuration is not applied that is being tried, or cannot be."""
    if jobs_copy.would_end(trial):
        return Reason.WAITING_FOR_JOBS
    return Reason.CONFIG_UNTRIED if trial.stage is Stage.STUCK else Reason.CONFIG_PENDING


def _with_jobs(change: Change, live: Mapping[str, str], trial: Trial, now: float, wall: datetime) -> Trial:
    """The trial with a copy of the jobs, if the change may concern any."""
    snapshot, candidate = change.snapshot, change.draft.candidate
    use = answer.use(snapshot, now)
    nobody = use is not None and not use.why and not use.jobs and not use.reservations
    if trial.stage is Stage.REFUSED or nobody or not touches_jobs(live, candidate.files):
        return Trial(Stage.PASSED, "", jobs_copy.leftovers(snapshot))
    return jobs_copy.trial(snapshot, change.images, live, candidate, now, wall)


def _passed(change: Change, write: Write, trial: Trial, now: float) -> Rollout:
    snapshot, draft = change.snapshot, change.draft
    if draft.kept.asks and not is_fresh(snapshot, now):
        # Expensive answers are used for a long time: what is removed now is checked once more.
        ask = Ask(UseQuestion(draft.known_status.applied_hash))
        words = "Slurm is asked once more what is in use"
        return draft.waiting(words, *change.load.actions, ask, wake_up=USE_VALID)
    told = []
    if trial.message and snapshot.memory.last_events.get(Reason.STATE_NOT_TRIED) != trial.message:
        told = [EmitEvent(snapshot.raw, EventType.WARNING, Reason.STATE_NOT_TRIED, trial.message)]
    return _written(change, write, (*trial.actions, *change.asking, *told), now)


def _written(change: Change, write: Write, others: Sequence[Action], now: float) -> Rollout:
    snapshot, draft = change.snapshot, change.draft
    unasked, questions = manual_changes.unasked(snapshot, now, is_live=change.stored.is_live)
    if unasked:
        asked = any(asks(one, StatesQuestion) for one in others)
        return draft.waiting(unasked, *others, *(() if asked else questions), wake_up=1.0)
    if set(draft.known_status.node_sets) - set(draft.candidate.node_sets):
        # The status comes first: from then on no pods are created that the next configuration would not contain.
        return draft.waiting("a NodeSet is being taken out", *others, wake_up=0.0)
    told = manual_changes.events(snapshot, draft.candidate, change.stored.slurm_conf)
    return draft.waiting(f"ConfigMap {write.child.name} is being written", *others, write, *told)
