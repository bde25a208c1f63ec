"""The part of the rollout after the write: slurmctld loads the files, they are saved as good, or rolled back. Pure."""

from __future__ import annotations

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, Write
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.rollout.config import addresses, loading, manual_changes, membership
from slinky_operator.cluster.rollout.config.candidate import Candidate, Live, Refused, Step, Waiting
from slinky_operator.cluster.rollout.config.held_nodesets import next_suspect
from slinky_operator.cluster.rollout.config.writing import knows, later_part, leftovers
from slinky_operator.cluster.rollout.in_use.answer import asks_in
from slinky_operator.cluster.rollout.preflight import single_trial
from slinky_operator.cluster.trials import engine, pods
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child, shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.render import hash_of


def settle(candidate: Candidate) -> Step:
    """Continue once the ConfigMap holds what is wanted."""
    load, current, good = candidate.load, candidate.stored.current, candidate.stored.good
    assert current is not None  # noqa: S101 - it holds the candidate
    write = _up_to_date(candidate, current)
    if write is not None:
        return Waiting(f"ConfigMap {write.child.name} is being brought up to date", (write,))
    match load.stage:
        case loading.Stage.UNDER_WAY:
            asks, due = _look_up(candidate, current, waits=False)
            # If there are names without an address, they are the cause of the delay.
            words = "; ".join(filter(None, (load.message, candidate.addresses.message)))
            wake_up = _soonest(load.wake_up, due)
            return Waiting(words, (*leftovers(candidate), *load.actions, *asks), wake_up=wake_up)
        case loading.Stage.REFUSED if good is not None and hash_of(good["data"]) != candidate.rendered.hash:
            return _rolled_back(candidate, current, good)
        case loading.Stage.REFUSED:
            return Refused(load.message, (*leftovers(candidate), *load.actions), wake_up=load.wake_up)
        case loading.Stage.LOADED:
            return _loaded(candidate, current)


def _up_to_date(candidate: Candidate, current: Object) -> Write | None:
    """Write the ConfigMap again if somebody has changed it; its files are those of the candidate."""
    rendered, cluster = candidate.rendered, candidate.view.snapshot.cluster
    change_id = shared_objects.change_of(current)
    child = Child(CONFIGMAPS, shared_objects.config_map(cluster, rendered.files, rendered.hash, change_id))
    return None if shows(child.body, current) else Write(child, current)


def _rolled_back(candidate: Candidate, current: Object, good: Object) -> Step:
    """Restore the last good files, with a mark that says which were rejected."""
    load, view = candidate.load, candidate.view
    digest, change_id = hash_of(good["data"]), candidate.stored.next_change
    back = shared_objects.config_map(view.snapshot.cluster, good["data"], digest, change_id)
    # Files on which it has exited are not retried automatically: each time Slurm would be unreachable for a while.
    at = None if load.ended else view.wall
    marked = shared_objects.marked_refused(back, candidate.rendered.hash, load.message, at)
    words = f"slurmctld rejected it, and the last good one is being restored: {load.message}"
    return Refused(words, (Write(Child(CONFIGMAPS, marked), current),), reason=Reason.CONFIG_ROLLED_BACK)


def _loaded(candidate: Candidate, current: Object) -> Step:
    """Save the files as good, and continue with what waits: addresses, held NodeSets, trials of what is left out."""
    snapshot, now = candidate.view.snapshot, candidate.view.now
    store = _saved(candidate, current)
    waits = _waits_for_addresses(candidate)
    asks, due = _look_up(candidate, current, waits=waits)
    if waits and not candidate.is_applied:
        # Results available at once belong to the configuration: nodes should not appear a moment later.
        words = f"addresses are looked up: {addresses.some(candidate.addresses.unknown)}"
        return Waiting(words, (*store, *leftovers(candidate), *asks), wake_up=due)
    retry = next_suspect(snapshot) if candidate.is_applied else []
    leaving = membership.leaving(snapshot, candidate.rendered)
    later, beside = _tried_beside(candidate)
    # What waits is tried without a copy of the jobs: such a trial is of a change that was taken back.
    stale = engine.leftovers(snapshot, pods.JOBS) if knows(candidate) else ()
    look = manual_changes.LOOK_EVERY if candidate.rendered.by_hand else None
    wake_up = _soonest(beside.wake_up, asks_in(snapshot, now) if candidate.kept.asks else None, due, look)
    done = (*store, *beside.actions, *stale, *candidate.asking, *retry, *leaving, *asks)
    if later.stage is Stage.REFUSED and candidate.is_applied:
        return Refused(later.message, done, wake_up=wake_up)
    return Live(done, wake_up=wake_up)


def _saved(candidate: Candidate, current: Object) -> list[Action]:
    """Write the files that slurmctld has shown to run to the second ConfigMap, unless it holds them."""
    snapshot, rendered, good = candidate.view.snapshot, candidate.rendered, candidate.stored.good
    cluster, change_id = snapshot.cluster, shared_objects.change_of(current)
    name = naming.good_config(cluster.name)
    body = shared_objects.config_map(cluster, rendered.files, rendered.hash, change_id, name)
    if good is not None and shows(body, good):
        return []
    # It may be there, changed by somebody.
    return [Write(Child(CONFIGMAPS, body), snapshot.children.get((CONFIGMAPS.kind, name)))]


def _tried_beside(candidate: Candidate) -> tuple[Trial, Trial]:
    """The trial of what waits for jobs, and the trial that is made now: the same, or one of what is left out."""
    if not knows(candidate):
        return Trial(Stage.PASSED), Trial(Stage.PASSED)
    later = later_part(candidate)
    # What keeps that trial from being made may be what is left out of it.
    left_out = later.stage is Stage.STUCK and candidate.view.snapshot.memory.rollout.left_out
    if later.stage is Stage.PASSED or left_out:
        return later, single_trial.again(candidate.view, candidate.rendered)
    return later, later


def _waits_for_addresses(candidate: Candidate) -> bool:
    """Whether nodes wait for the first answer about their addresses, which does not take too long."""
    loaded = candidate.view.snapshot.memory.rollout.loaded
    return (
        bool(candidate.addresses.unknown) and loaded is not None and candidate.view.now - loaded.at < addresses.PATIENCE
    )


def _look_up(candidate: Candidate, current: Object, *, waits: bool) -> tuple[tuple[Action, ...], float | None]:
    """Query for addresses if the files are live, or slurmctld may be resolving them.

    Not while a change is in progress: results found meanwhile would change it again.
    """
    snapshot = candidate.view.snapshot
    if candidate.load.stage is not loading.Stage.LOADED and not loading.is_asked(snapshot, current):
        return (), None
    return addresses.asking(snapshot, current, candidate.addresses, candidate.view.now, waits=waits)


def _soonest(*times: float | None) -> float | None:
    return min((one for one in times if one is not None), default=None)
