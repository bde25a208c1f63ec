"""The part of the rollout after the write: slurmctld loads the files, they are saved as good, or rolled back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, Write
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.rollout.config import addresses, loading, manual_changes, membership
from slinky_operator.cluster.rollout.config.addresses import Addresses
from slinky_operator.cluster.rollout.config.candidate import Rollout
from slinky_operator.cluster.rollout.config.held_nodesets import next_suspect
from slinky_operator.cluster.rollout.config.writing import Change, later_part
from slinky_operator.cluster.rollout.in_use.answer import asks_in, use
from slinky_operator.cluster.rollout.preflight import attempts, jobs_copy, single_trial
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child, shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.render import hash_of


@dataclass(frozen=True, slots=True)
class LookUp:
    """Queries to the agent about addresses."""

    actions: tuple[Action, ...] = ()
    due: float | None = None
    first: str = ""
    """Nodes that wait for the first answer; empty if none do, or it takes too long."""


def look_up_addresses(change: Change, known: Addresses, now: float) -> LookUp:
    """Query if the files are live, or slurmctld may be resolving addresses.

    Not while a change is in progress: results found meanwhile would change it again.
    """
    snapshot, current = change.snapshot, change.stored.current
    assert current is not None  # noqa: S101 - it holds the candidate
    live, loaded = change.load.stage is loading.Stage.LOADED, snapshot.memory.loaded
    if not live and not loading.is_asked(snapshot, current):
        return LookUp()
    waits = live and bool(known.unknown) and loaded is not None and now - loaded.at < addresses.PATIENCE
    asks, due = addresses.asking(snapshot, current, known, now, waits=waits)
    return LookUp(asks, due, addresses.some(known.unknown) if waits else "")


def settle(change: Change, look_up: LookUp, now: float, wall: datetime) -> Rollout:
    """Continue once the ConfigMap holds what is wanted."""
    snapshot, draft, load = change.snapshot, change.draft, change.load
    current, good = change.stored.current, change.stored.good
    assert current is not None  # noqa: S101 - it holds the candidate
    cluster, candidate = snapshot.cluster, draft.candidate
    # Before the first answer of Slurm an operator that has just started does not know what an earlier one was trying.
    knows = not draft.kept.asks or use(snapshot, now) is not None
    tidy = (*attempts.leftovers(snapshot), *jobs_copy.leftovers(snapshot)) if knows else ()
    change_id = shared_objects.change_of(current)
    child = Child(CONFIGMAPS, shared_objects.config_map(cluster, candidate.files, candidate.hash, change_id))
    if not shows(child.body, current):
        return draft.waiting(f"ConfigMap {child.name} is being brought up to date", Write(child, current))
    match load.stage:
        case loading.Stage.UNDER_WAY:
            # If there are names without an address, they are the cause of the delay.
            words = "; ".join(filter(None, (load.message, draft.addresses.message)))
            wake_up = _soonest(load.wake_up, look_up.due)
            return draft.waiting(words, *tidy, *load.actions, *look_up.actions, wake_up=wake_up)
        case loading.Stage.REFUSED if good is not None and hash_of(good["data"]) != candidate.hash:
            back = shared_objects.config_map(cluster, good["data"], hash_of(good["data"]), change.stored.next_change)
            # Files on which it has exited are not retried automatically: each time Slurm would be unreachable for a
            # while.
            marked = shared_objects.marked_refused(back, candidate.hash, load.message, None if load.ended else wall)
            words = f"slurmctld rejected it, and the last good one is being restored: {load.message}"
            write = Write(Child(CONFIGMAPS, marked), current)
            return draft.refused(words, write, reason=Reason.CONFIG_ROLLED_BACK)
        case loading.Stage.REFUSED:
            return draft.refused(load.message, *tidy, *load.actions, wake_up=load.wake_up)
        case loading.Stage.LOADED:
            name = naming.good_config(cluster.name)
            keep_good = Child(
                CONFIGMAPS, shared_objects.config_map(cluster, candidate.files, candidate.hash, change_id, name)
            )
            store = [] if good is not None and shows(keep_good.body, good) else [Write(keep_good, good)]
            if look_up.first and draft.known_status.applied_hash != candidate.hash:
                # Results available at once belong to the configuration: nodes should not appear a moment later.
                words = f"addresses are looked up: {look_up.first}"
                return draft.waiting(words, *store, *tidy, *look_up.actions, wake_up=look_up.due)
            retry = [] if draft.known_status.applied_hash != candidate.hash else next_suspect(snapshot)
            leaving = membership.leaving(snapshot, candidate)
            later = later_part(change, now, wall) if knows else Trial(Stage.PASSED)
            refused = later.stage is Stage.REFUSED and draft.known_status.applied_hash == candidate.hash
            beside = later
            # What keeps that trial from being made may be what is left out of it.
            left_out = later.stage is Stage.STUCK and snapshot.memory.left_out
            if knows and (later.stage is Stage.PASSED or left_out):
                beside = single_trial.again(snapshot, change.images, candidate, now, wall)
            look = manual_changes.LOOK_EVERY if candidate.by_hand else None
            wake_up = _soonest(beside.wake_up, asks_in(snapshot, now) if draft.kept.asks else None, look_up.due, look)
            actions = (*beside.actions, *change.asking, *retry, *leaving, *look_up.actions)
            done = (*store, *actions)
            return (
                draft.refused(later.message, *done, wake_up=wake_up) if refused else draft.live(*done, wake_up=wake_up)
            )


def _soonest(*times: float | None) -> float | None:
    return min((one for one in times if one is not None), default=None)
