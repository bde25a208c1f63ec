"""The part of the plan about the configuration: how far the wanted one has come. Pure.

A change goes through these steps. Each is told from what can be seen, so that the operator may die between any two:

1. it is rendered, with what must stay because jobs use it (`removals`);
2. throw-away daemons try it (`decision`); what they refuse goes no further;
3. the ConfigMap holds the new files;
4. slurmctld mounts and loads them, and shows that it has (`loading`);
5. a second ConfigMap keeps them as the last good ones;
6. the status says so: `appliedHash`, and `nodeSets` with those that are new.

If slurmctld does not take the new files all the same, the last good ones are put back, with a mark on the ConfigMap
that says which were not taken and why.

A NodeSet comes into `status.config.nodeSets` last and leaves it first: it gets pods only while the running
configuration knows it. One NodeSet's text must not hold up the others: if a configuration is refused, it is tried
without the changes of NodeSets, and those are then tried one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster_status import ConfigStatus, RefusedNodeSet
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.cluster.actions import Action, AskStates, AskUse, Write
from slinky_operator.cluster.components import Images, shared_objects
from slinky_operator.cluster.config import addresses, loading, manual_changes, membership
from slinky_operator.cluster.config.addresses import Addresses
from slinky_operator.cluster.config.held_nodesets import changed, held, holding, next_suspect, suspects, unblamed
from slinky_operator.cluster.config.loading import Loading
from slinky_operator.cluster.in_use import removals
from slinky_operator.cluster.in_use.removals import Kept
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.preflight import attempts, decision, single_trial
from slinky_operator.cluster.preflight.attempts import Stage
from slinky_operator.cluster.preflight.decision import Untried
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.children import Child, shows
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ContactState
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Parsed, Rendered, parse, render
from slinky_operator.slurm.conf.admit import lines_of
from slinky_operator.slurm.conf.render import SLURM_CONF, hash_of
from slinky_operator.slurm.conf.states import marked
from slinky_operator.slurm.jobs import wait_after

USE_VALID: Final = 3.0
"""Seconds for which Slurm's answer to what is in use counts; where it is dear, for longer while nothing is changed."""

TRY_REFUSED: Final = timedelta(minutes=5)
"""How long a configuration that slurmctld did not take is left alone, unless it changes."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the configuration needs."""

    actions: tuple[Action, ...]
    status: ConfigStatus
    applied: bool
    """Whether the wanted configuration is live."""

    reason: Reason
    message: str
    rendered: Rendered
    untried: tuple[Untried, ...] = ()
    """NodeSets whose slurmd preflights leave out."""

    wake_up: float | None = None
    """Seconds until something is due that no event will tell."""

    unaddressed: str = ""
    """Nodes outside Kubernetes that have no address where slurmctld runs, for people."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """What all answers have in common."""

    wanted: Rendered
    """As the spec alone would have it."""

    candidate: Rendered
    """With what must stay for now."""

    kept: Kept
    stored: ConfigStatus
    joining: tuple[Action, ...]
    """Comes before everything else: finalizers stand before anything is rendered for their owners."""

    remarks: str
    suspects: Mapping[str, str]
    """NodeSets that are held back although it is not known that they are to blame, and why."""

    untried: tuple[Untried, ...]
    addresses: Addresses

    def waiting(
        self, message: str, *actions: Action, wake_up: float | None = None, reason: Reason = Reason.CONFIG_PENDING
    ) -> Rollout:
        """The wanted configuration is on its way, or waits for somebody's help."""
        return self._rollout(reason, message, actions, wake_up)

    def refused(
        self, message: str, *actions: Action, wake_up: float | None = None, reason: Reason = Reason.CONFIG_REFUSED
    ) -> Rollout:
        """The wanted configuration cannot be used; what runs stays, and so do the NodeSets in it."""
        if self.suspects:
            message = f"{message}; changes of NodeSet {named(sorted(self.suspects))} wait for that"
        return self._rollout(reason, message, actions, wake_up, self._status(self.stored.node_sets))

    def live(self, *actions: Action, wake_up: float | None = None) -> Rollout:
        """What can be live is; what must stay for now is told."""
        status = self._status(tuple(sorted(self.candidate.node_sets)), self.candidate.hash)
        if self.suspects:
            return self._rollout(Reason.CONFIG_PENDING, self._tried_singly(), actions, wake_up, status)
        if not self.kept.why:
            return self._rollout(Reason.AS_EXPECTED, self.remarks, actions, wake_up, status)
        words = "; ".join((*self.kept.why, *filter(None, (self.remarks,))))
        return self._rollout(self.kept.reason, words, actions, wake_up, status)

    def _tried_singly(self) -> str:
        """What goes on with NodeSets of which nobody knows yet which one is to blame."""
        names = sorted(self.suspects)
        return f"with the changes of NodeSets {named(names)}: {self.suspects[names[0]]}; each is tried alone now"

    def _status(self, node_sets: tuple[str, ...], applied: str | None = None) -> ConfigStatus:
        return ConfigStatus(
            hash=self.wanted.hash,
            applied_hash=self.stored.applied_hash if applied is None else applied,
            node_sets=node_sets,
            refused=tuple(RefusedNodeSet(name=one.node_set, message=str(one.problem)) for one in self.wanted.refused),
        )

    def _rollout(
        self,
        reason: Reason,
        message: str,
        actions: tuple[Action, ...],
        wake_up: float | None,
        status: ConfigStatus | None = None,
    ) -> Rollout:
        if status is None:
            status = self._status(tuple(sorted(set(self.stored.node_sets) & set(self.candidate.node_sets))))
        applied = reason is Reason.AS_EXPECTED
        told = self.addresses.message
        return Rollout(
            (*self.joining, *actions),
            status,
            applied,
            reason,
            message,
            self.wanted,
            self.untried,
            wake_up,
            told,
        )


def plan_rollout(snapshot: Snapshot, images: Images, now: float, wall: datetime, first: str = "") -> Rollout:
    """Decide the next steps.

    Parameters
    ----------
    first
        What a change that has to be tried waits for; empty if nothing.
    images
        What daemons are tried with where nothing else is said.
    now
        Monotonic seconds.
    wall
        The time of day.
    """
    cluster = snapshot.cluster
    stored = cluster.status.config or ConfigStatus()
    found = snapshot.children.get(("ConfigMap", naming.config(cluster.name)))
    current = shared_objects.intact(found)
    good = shared_objects.intact(snapshot.children.get(("ConfigMap", naming.good_config(cluster.name))))
    running: Mapping[str, str] = (current or good or {}).get("data") or {}
    text = running.get(SLURM_CONF, "")
    lines = parse(text)
    members, joining = membership.members(snapshot, lines)
    parts = [*map(NodeSetConf.of, members), *membership.unreadable(snapshot, lines)]
    inputs = ConfInputs.of(cluster, parts, snapshot.texts)
    inputs = replace(inputs, held=held(snapshot, inputs))
    known = addresses.addresses(snapshot, inputs, current, good)
    inputs = addresses.over(inputs, known)
    is_live = _is_live(stored, current, good)
    load, shown = Loading(loading.Stage.LOADED), stored
    if current is not None and not is_live:
        load = loading.loading(snapshot, current, now)
        if load.stage is loading.Stage.LOADED and stored.applied_hash != hash_of(current["data"]):
            # The status may be another Cluster's, or lost: what slurmctld has shown to run is told all the same.
            shown = _shown(members, lines, stored, hash_of(current["data"]))
    # What no slurmctld has ever run has no jobs, and waiting for an answer would keep it from being mended.
    waits = not _never_ran(snapshot, stored, good)

    def drawn(states: Mapping[str, str]) -> tuple[ConfInputs, _Draft]:
        given = replace(inputs, states=states, settled=is_live)
        blamed, kept = suspects(snapshot, inputs), Kept()
        if not (wanted := unblamed(render(given, text), blamed)).problems and waits:
            kept = removals.keep(running, wanted.files, _use(snapshot, now), _nodes(snapshot), live=is_live)
        candidate = render(kept.over(given), text)
        left_out, told = decision.untried(snapshot, images, candidate), _remarks(wanted, snapshot, known)
        return given, _Draft(wanted, candidate, kept, shown, tuple(joining), told, blamed, left_out, known)

    inputs, draft = drawn({})
    states = manual_changes.known(snapshot, is_live=is_live)
    changes = current is None or hash_of(current.get("data") or {}) != draft.candidate.hash
    if states is not None and (changes or marked(text)):
        inputs, draft = drawn(states.states)
        changes = changes or hash_of((current or {}).get("data") or {}) != draft.candidate.hash
    wanted, candidate, kept = draft.wanted, draft.candidate, draft.kept
    asking: tuple[Action, ...] = (AskUse(stored.applied_hash),) if kept.asks and _may_ask(snapshot, now) else ()
    asking += manual_changes.questions(snapshot, now, is_live=is_live, changes=changes, marked=bool(marked(text)))
    usable = not wanted.problems and not candidate.problems
    if current is None and good is not None and not (usable and candidate.files == good["data"]):
        # Whatever is refused or tried meanwhile: slurmctld must find what it runs.
        back = shared_objects.config_map(cluster, good["data"], hash_of(good["data"]), _change_id(found, good))
        return draft.waiting("what somebody else has changed is put back", Write(Child(CONFIGMAPS, back), found))
    if wanted.problems:
        strangers = [
            one for one in membership.leaving(snapshot, wanted) if lines_of(one.obj["metadata"]["name"], lines) is None
        ]
        words = "; ".join(map(str, wanted.problems))
        reason = Reason.CONFIG_SOURCE_NOT_FOUND if wanted.missing else Reason.CONFIG_REFUSED
        return draft.refused(words, *load.actions, *strangers, wake_up=load.wake_up, reason=reason)
    if candidate.problems:
        # What stays and what is wanted do not go together; neither is given up for the other.
        words = "; ".join((*map(str, candidate.problems), *kept.why))
        return draft.refused(words, *load.actions, *asking, wake_up=load.wake_up or USE_VALID, reason=kept.reason)
    change = _Change(snapshot, images, inputs, draft, current, found, good, load, asking, text, is_live, first)
    if current is not None and hash_of(current.get("data") or {}) == candidate.hash:
        change = replace(change, draft=replace(draft, stored=stored))
        return _settle(change, _looking(change, known, now), now, wall)
    return _change(change, now, wall)


def is_live(snapshot: Snapshot) -> bool:
    """Whether slurmctld runs what its ConfigMap holds, be that what is wanted or not."""
    cluster, children = snapshot.cluster, snapshot.children
    current, good = (
        shared_objects.intact(children.get(("ConfigMap", make(cluster.name))))
        for make in (naming.config, naming.good_config)
    )
    return _is_live(cluster.status.config or ConfigStatus(), current, good)


def _is_live(stored: ConfigStatus, current: Object | None, good: Object | None) -> bool:
    """Whether slurmctld runs what the ConfigMap holds, and has shown so since that was written."""
    if current is None or good is None or stored.applied_hash != hash_of(current["data"]):
        return False
    return current["data"] == good["data"] and shared_objects.change_of(current) == shared_objects.change_of(good)


def _shown(members: Sequence[NodeSet], running: Parsed, stored: ConfigStatus, digest: str) -> ConfigStatus:
    """The status of a configuration that slurmctld has loaded, from its slurm.conf."""
    known = (*stored.node_sets, *(one.name for one in members if lines_of(one.name, running) is not None))
    return stored.model_copy(update={"applied_hash": digest, "node_sets": tuple(sorted(set(known)))})


def _change_id(found: Object | None, good: Object | None) -> str:
    """Tells the write that follows from all others, and is the same as long as it has not happened."""
    return "-".join(str(one["metadata"].get("resourceVersion", "")) if one else "none" for one in (found, good))


@dataclass(frozen=True, slots=True)
class _Looking:
    """Questions to the agent about addresses."""

    actions: tuple[Action, ...] = ()
    due: float | None = None
    first: str = ""
    """Nodes that wait for the first answer; empty if none do, or it takes too long."""


def _looking(change: _Change, known: Addresses, now: float) -> _Looking:
    """Ask where the files are live, or slurmctld may just be looking for addresses.

    Not while a change is on its way: what is found meanwhile would make another one of it.
    """
    snapshot, current = change.snapshot, change.current
    assert current is not None  # noqa: S101 - it holds the candidate
    live, loaded = change.load.stage is loading.Stage.LOADED, snapshot.memory.loaded
    if not live and not loading.is_asked(snapshot, current):
        return _Looking()
    waits = live and bool(known.unknown) and loaded is not None and now - loaded.at < addresses.PATIENCE
    asks, due = addresses.asking(snapshot, current, known, now, waits=waits)
    return _Looking(asks, due, addresses.some(known.unknown) if waits else "")


def _settle(change: _Change, looking: _Looking, now: float, wall: datetime) -> Rollout:
    """The ConfigMap holds what it is to hold."""
    snapshot, draft, current, good, load = change.snapshot, change.draft, change.current, change.good, change.load
    assert current is not None  # noqa: S101 - it holds the candidate
    cluster, candidate = snapshot.cluster, draft.candidate
    tidy = attempts.leftovers(snapshot)
    change_id = shared_objects.change_of(current)
    child = Child(CONFIGMAPS, shared_objects.config_map(cluster, candidate.files, candidate.hash, change_id))
    if not shows(child.body, current):
        return draft.waiting(f"ConfigMap {child.name} is being brought up to date", Write(child, current))
    match load.stage:
        case loading.Stage.UNDER_WAY:
            # Where there are names without an address, they are what takes so long.
            words = "; ".join(filter(None, (load.message, draft.addresses.message)))
            wake_up = _soonest(load.wake_up, looking.due)
            return draft.waiting(words, *tidy, *load.actions, *looking.actions, wake_up=wake_up)
        case loading.Stage.REFUSED if good is not None and hash_of(good["data"]) != candidate.hash:
            back = shared_objects.config_map(cluster, good["data"], hash_of(good["data"]), _change_id(current, good))
            # What it has ended on is not tried again by itself: each time nobody could be asked for a while.
            marked = shared_objects.marked_refused(back, candidate.hash, load.message, None if load.ended else wall)
            words = f"slurmctld did not take it, and the last good one is put back: {load.message}"
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
            if looking.first and draft.stored.applied_hash != candidate.hash:
                # What can be known at once belongs to the configuration: nobody is to see nodes come a moment later.
                words = f"addresses are looked up: {looking.first}"
                return draft.waiting(words, *store, *tidy, *looking.actions, wake_up=looking.due)
            retry = [] if draft.stored.applied_hash != candidate.hash else next_suspect(snapshot)
            leaving = membership.leaving(snapshot, candidate)
            beside = single_trial.again(snapshot, change.images, candidate, now, wall)
            look = manual_changes.LOOK_EVERY if candidate.by_hand else None
            wake_up = _soonest(beside.wake_up, _asks_in(snapshot, now) if draft.kept.asks else None, looking.due, look)
            actions = (*beside.actions, *change.asking, *retry, *leaving, *looking.actions)
            return draft.live(*store, *actions, wake_up=wake_up)


def _soonest(*times: float | None) -> float | None:
    return min((one for one in times if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Change:
    """What is needed to bring another configuration into the ConfigMap."""

    snapshot: Snapshot
    images: Images
    inputs: ConfInputs
    draft: _Draft
    current: Object | None
    found: Object | None
    """The same, whatever is in it."""

    good: Object | None
    load: Loading
    asking: tuple[Action, ...]
    running: str
    is_live: bool
    first: str = ""
    """What has to come first."""


def _change(  # noqa: PLR0911 - one for each step
    change: _Change, now: float, wall: datetime
) -> Rollout:
    snapshot, draft, current, load = change.snapshot, change.draft, change.current, change.load
    candidate = draft.candidate
    busy = (*change.asking, *load.actions)
    if current is not None:
        refused, why, at = shared_objects.refused_of(current)
        if refused == candidate.hash and abs(wall - (at or wall)) < TRY_REFUSED:
            words = f"slurmctld did not take it, and the last good one is back: {why}"
            return draft.refused(words, *busy, wake_up=load.wake_up, reason=Reason.CONFIG_ROLLED_BACK)
    change_id = _change_id(change.found, change.good)
    body = shared_objects.config_map(snapshot.cluster, candidate.files, candidate.hash, change_id)
    write = Write(Child(CONFIGMAPS, body), change.found)
    # What has never run cannot be broken, and what has run last can be put back without asking again.
    if _never_ran(snapshot, draft.stored, change.good) or (change.good or {}).get("data") == candidate.files:
        return _written(change, write, busy, now)
    if change.first:
        return draft.waiting(change.first, *busy, wake_up=load.wake_up or 5.0)
    live = (change.good or current or {}).get("data") or {}
    trial = decision.trial(snapshot, change.images, candidate, live, now, wall)
    if trial.stage is Stage.PASSED:
        return _passed(change, write, trial.actions, now)
    if trial.stage in {Stage.UNDER_WAY, Stage.STUCK}:
        wake_up = min(one for one in (trial.wake_up, load.wake_up, 5.0) if one is not None)
        words = "; ".join((f"preflight: {trial.message}", *draft.kept.why))
        reason = Reason.CONFIG_UNTRIED if trial.stage is Stage.STUCK else Reason.CONFIG_PENDING
        return draft.waiting(words, *trial.actions, *busy, wake_up=wake_up, reason=reason)
    found = changed(change.inputs, candidate, change.running)
    if found:
        rest = {**change.inputs.held, **{one.name: "" for one in found}}
        others = render(draft.kept.over(replace(change.inputs, held=rest)), change.running)
        alone = len(found) == 1 and current is not None and others.files == current["data"]
        hold = holding(snapshot, change.inputs, found, trial.message, alone=alone)
        return draft.refused(trial.message, *trial.actions, hold, *busy)
    return draft.refused(trial.message, *trial.actions, *busy, wake_up=load.wake_up)


def _passed(change: _Change, write: Write, tidy: Sequence[Action], now: float) -> Rollout:
    draft = change.draft
    if draft.kept.asks and not _is_fresh(change.snapshot, now):
        # Answers that are dear are used for long: what goes now is looked at once more.
        ask = AskUse(draft.stored.applied_hash)
        words = "Slurm is asked once more what is in use"
        return draft.waiting(words, *change.load.actions, ask, wake_up=USE_VALID)
    return _written(change, write, (*tidy, *change.asking), now)


def _never_ran(snapshot: Snapshot, stored: ConfigStatus, good: Object | None) -> bool:
    slurm = snapshot.slurm
    answers = slurm is not None and slurm.contact.state is ContactState.READY
    # A slurmctld that an earlier Cluster of this name has left runs, though this one has never applied anything.
    return not stored.applied_hash and good is None and not answers and not _is_ready(snapshot.controller_pod)


def _is_ready(pod: Object | None) -> bool:
    conditions = ((pod or {}).get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _written(change: _Change, write: Write, others: Sequence[Action], now: float) -> Rollout:
    snapshot, draft = change.snapshot, change.draft
    unasked, questions = manual_changes.unasked(snapshot, now, is_live=change.is_live)
    if unasked:
        asked = any(isinstance(one, AskStates) for one in others)
        return draft.waiting(unasked, *others, *(() if asked else questions), wake_up=1.0)
    if set(draft.stored.node_sets) - set(draft.candidate.node_sets):
        # The status comes first: from then on nobody makes pods that the next configuration would not know.
        return draft.waiting("a NodeSet is being taken out", *others, wake_up=0.0)
    told = manual_changes.events(snapshot, draft.candidate, change.running)
    return draft.waiting(f"ConfigMap {write.child.name} is being written", *others, write, *told)


# Slurm's answers


def _use(snapshot: Snapshot, now: float) -> removals.Use | None:
    use = snapshot.memory.use
    stored = snapshot.cluster.status.config or ConfigStatus()
    if use is None or use.hash != stored.applied_hash or now - use.asked_at > 2 * _pause(use):
        return None
    loaded = snapshot.memory.loaded
    if loaded is not None and use.asked_at < loaded.at:
        # It is about what ran before, though that may have been the same.
        return None
    return use


def _nodes(snapshot: Snapshot) -> int | None:
    """How many nodes Slurm has; those that are about to register count."""
    slurm = snapshot.slurm
    if slurm is None or slurm.contact.state is not ContactState.READY:
        return None
    return max(len(slurm.nodes), len(snapshot.slurmd_pods))


def _may_ask(snapshot: Snapshot, now: float) -> bool:
    use, stored = _use(snapshot, now), snapshot.cluster.status.config
    if snapshot.slurm is None or snapshot.slurm.contact.state is not ContactState.READY or stored is None:
        return False
    return use is None or now - use.asked_at >= _pause(use)


def _pause(use: removals.Use) -> float:
    """Seconds until Slurm is asked again: its jobs are the dearest question there is."""
    return max(USE_VALID, wait_after(use.cost))


def _is_fresh(snapshot: Snapshot, now: float) -> bool:
    """Whether Slurm has said a moment ago what is in use, or that it cannot."""
    use = snapshot.memory.use
    return use is not None and now - use.asked_at - use.cost <= USE_VALID


def _asks_in(snapshot: Snapshot, now: float) -> float:
    """Seconds until the next question."""
    use = _use(snapshot, now)
    return USE_VALID if use is None else max(USE_VALID, use.asked_at + _pause(use) - now)


def _remarks(rendered: Rendered, snapshot: Snapshot, known: Addresses) -> str:
    words = [f"NodeSet {one.node_set}: {one.problem}" for one in rendered.refused]
    words += manual_changes.words(rendered)
    words += [f"NodeSet {error.name}: {error.problems[0]}" for _, error in snapshot.invalid_node_sets]
    if rendered.undefined:
        words.append(f"partitions name NodeSets that do not exist: {', '.join(rendered.undefined)}")
    if known.message:
        words.append(known.message)
    return "; ".join(words)
