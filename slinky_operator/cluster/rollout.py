"""The part of the plan about the configuration: how far the wanted one has come. Pure.

A change goes through these steps. Each is told from what can be seen, so that the operator may die between any two:

1. it is rendered, with what must stay because jobs use it (`in_use`);
2. throw-away daemons try it (`preflights`); what they refuse goes no further;
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

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster_status import ConfigStatus, RefusedNodeSet
from slinky_operator.cluster import in_use, loading, membership, preflights
from slinky_operator.cluster.actions import Action, AskUse, Hold, Write
from slinky_operator.cluster.children import Child, is_current
from slinky_operator.cluster.daemons import Images, shared
from slinky_operator.cluster.in_use import Kept
from slinky_operator.cluster.loading import Loading
from slinky_operator.cluster.memory import Held
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.slurm import naming
from slinky_operator.slurm.clients import ContactState
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, Rendered, render
from slinky_operator.slurm.conf.admit import lines_of
from slinky_operator.slurm.conf.render import SLURM_CONF, hash_of

USE_VALID: Final = 3.0
"""Seconds for which Slurm's answer to what is in use counts."""

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
    wake_up: float | None = None
    """Seconds until something is due that no event will tell."""


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

    def waiting(self, message: str, *actions: Action, wake_up: float | None = None) -> Rollout:
        """The wanted configuration is on its way."""
        return self._rollout(Reason.CONFIG_PENDING, message, actions, wake_up)

    def refused(
        self, message: str, *actions: Action, wake_up: float | None = None, reason: Reason = Reason.CONFIG_REFUSED
    ) -> Rollout:
        """The wanted configuration cannot be used; what runs stays, and so do the NodeSets in it."""
        return self._rollout(reason, message, actions, wake_up, self._status(self.stored.node_sets))

    def live(self, *actions: Action, wake_up: float | None = None) -> Rollout:
        """What can be live is; what must stay for now is told."""
        status = self._status(tuple(sorted(self.candidate.node_sets)), self.candidate.hash)
        if not self.kept.why:
            return self._rollout(Reason.AS_EXPECTED, self.remarks, actions, wake_up, status)
        words = "; ".join((*self.kept.why, *filter(None, (self.remarks,))))
        return self._rollout(self.kept.reason, words, actions, wake_up, status)

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
        return Rollout((*self.joining, *actions), status, applied, reason, message, self.wanted, wake_up)


def plan_rollout(snapshot: Snapshot, images: Images, now: float, wall: datetime) -> Rollout:
    """Decide the next steps.

    Parameters
    ----------
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
    current = shared.intact(found)
    good = shared.intact(snapshot.children.get(("ConfigMap", naming.good_config(cluster.name))))
    running: Mapping[str, str] = (current or good or {}).get("data") or {}
    text = running.get(SLURM_CONF, "")
    members, joining = membership.members(snapshot, text)
    parts = [*map(NodeSetConf.of, members), *membership.unreadable(snapshot, text)]
    inputs = ConfInputs.of(cluster, parts, snapshot.texts)
    inputs = replace(inputs, held=_held(snapshot, inputs))
    wanted = render(inputs, text)
    is_live = _is_live(stored, current, good)
    kept = Kept()
    if not wanted.problems:
        kept = in_use.keep(running, wanted.files, _use(snapshot, now), _nodes(snapshot), live=is_live)
    candidate = render(kept.over(inputs), text)
    draft = _Draft(wanted, candidate, kept, stored, tuple(joining), _remarks(wanted, snapshot))
    asking = (AskUse(stored.applied_hash),) if kept.asks and _may_ask(snapshot, now) else ()
    load = Loading(loading.Stage.LOADED)
    if current is not None and not is_live:
        load = loading.loading(snapshot, current, now)
    usable = not wanted.problems and not candidate.problems
    if current is None and good is not None and not (usable and candidate.files == good["data"]):
        # Whatever is refused or tried meanwhile: slurmctld must find what it runs.
        back = shared.config_map(cluster, good["data"], hash_of(good["data"]), _change_id(found, good))
        return draft.waiting("what somebody else has changed is put back", Write(Child(CONFIGMAPS, back), found))
    if wanted.problems:
        strangers = [
            one for one in membership.leaving(snapshot, wanted) if lines_of(one.obj["metadata"]["name"], text) is None
        ]
        words = "; ".join(map(str, wanted.problems))
        reason = Reason.CONFIG_SOURCE_NOT_FOUND if wanted.missing else Reason.CONFIG_REFUSED
        return draft.refused(words, *load.actions, *strangers, wake_up=load.wake_up, reason=reason)
    if candidate.problems:
        # What stays and what is wanted do not go together; neither is given up for the other.
        words = "; ".join((*map(str, candidate.problems), *kept.why))
        return draft.refused(words, *load.actions, *asking, wake_up=load.wake_up or USE_VALID, reason=kept.reason)
    if current is not None and hash_of(current.get("data") or {}) == candidate.hash:
        return _settle(snapshot, draft, current, good, load, asking, wall)
    return _change(_Change(snapshot, images, inputs, draft, current, found, good, load, asking, text), now, wall)


def _is_live(stored: ConfigStatus, current: Object | None, good: Object | None) -> bool:
    """Whether slurmctld runs what the ConfigMap holds, and has shown so since that was written."""
    if current is None or good is None or stored.applied_hash != hash_of(current["data"]):
        return False
    return current["data"] == good["data"] and shared.change_of(current) == shared.change_of(good)


def _change_id(found: Object | None, good: Object | None) -> str:
    """Tells the write that follows from all others, and is the same as long as it has not happened."""
    return "-".join(str(one["metadata"].get("resourceVersion", "")) if one else "none" for one in (found, good))


def _settle(
    snapshot: Snapshot,
    draft: _Draft,
    current: Object,
    good: Object | None,
    load: Loading,
    asking: Sequence[Action],
    wall: datetime,
) -> Rollout:
    """The ConfigMap holds what it is to hold."""
    cluster, candidate = snapshot.cluster, draft.candidate
    tidy = preflights.leftovers(snapshot)
    change = shared.change_of(current)
    child = Child(CONFIGMAPS, shared.config_map(cluster, candidate.files, candidate.hash, change))
    if not is_current(child.body, current):
        return draft.waiting("the configuration is being written", Write(child, current))
    match load.stage:
        case loading.Stage.UNDER_WAY:
            return draft.waiting(load.message, *tidy, *load.actions, wake_up=load.wake_up)
        case loading.Stage.REFUSED if good is not None and hash_of(good["data"]) != candidate.hash:
            back = shared.config_map(cluster, good["data"], hash_of(good["data"]), _change_id(current, good))
            # What it has ended on is not tried again by itself: each time nobody could be asked for a while.
            marked = shared.marked_refused(back, candidate.hash, load.message, None if load.ended else wall)
            words = f"slurmctld did not take it, and the last good one is put back: {load.message}"
            write = Write(Child(CONFIGMAPS, marked), current)
            return draft.refused(words, write, reason=Reason.CONFIG_ROLLED_BACK)
        case loading.Stage.REFUSED:
            return draft.refused(load.message, *tidy, *load.actions, wake_up=load.wake_up)
        case loading.Stage.LOADED:
            name = naming.good_config(cluster.name)
            keep_good = Child(CONFIGMAPS, shared.config_map(cluster, candidate.files, candidate.hash, change, name))
            store = [] if good is not None and is_current(keep_good.body, good) else [Write(keep_good, good)]
            retry = [] if draft.stored.applied_hash != candidate.hash else _next_suspect(snapshot)
            leaving = membership.leaving(snapshot, candidate)
            wake_up = USE_VALID if draft.kept.asks else None
            return draft.live(*store, *tidy, *asking, *retry, *leaving, wake_up=wake_up)


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


def _change(change: _Change, now: float, wall: datetime) -> Rollout:
    snapshot, draft, current, load = change.snapshot, change.draft, change.current, change.load
    candidate = draft.candidate
    busy = (*change.asking, *load.actions)
    if current is not None:
        refused, why, at = shared.refused_of(current)
        if refused == candidate.hash and abs(wall - (at or wall)) < TRY_REFUSED:
            words = f"slurmctld did not take it, and the last good one is back: {why}"
            return draft.refused(words, *busy, wake_up=load.wake_up, reason=Reason.CONFIG_ROLLED_BACK)
    change_id = _change_id(change.found, change.good)
    body = shared.config_map(snapshot.cluster, candidate.files, candidate.hash, change_id)
    write = Write(Child(CONFIGMAPS, body), change.found)
    # What has never run cannot be broken, and what has run last can be put back without asking again.
    if _never_ran(snapshot, draft, change.good) or (change.good or {}).get("data") == candidate.files:
        return _written(draft, write, busy)
    trial = preflights.trial(snapshot, change.images, candidate, now, wall)
    if trial.stage is preflights.Stage.PASSED:
        return _written(draft, write, (*trial.actions, *change.asking))
    if trial.stage is preflights.Stage.UNDER_WAY:
        wake_up = min(one for one in (trial.wake_up, load.wake_up, 5.0) if one is not None)
        words = "; ".join((f"preflight: {trial.message}", *draft.kept.why))
        return draft.waiting(words, *trial.actions, *busy, wake_up=wake_up)
    suspects = _changed(change.inputs, candidate, change.running)
    if suspects:
        rest = {**change.inputs.held, **{one.name: "" for one in suspects}}
        others = render(draft.kept.over(replace(change.inputs, held=rest)), change.running)
        alone = len(suspects) == 1 and current is not None and others.files == current["data"]
        hold = _holding(snapshot, change.inputs, suspects, trial.message, alone=alone)
        return draft.refused(trial.message, *trial.actions, hold, *busy)
    return draft.refused(trial.message, *trial.actions, *busy, wake_up=load.wake_up)


def _never_ran(snapshot: Snapshot, draft: _Draft, good: Object | None) -> bool:
    slurm = snapshot.slurm
    answers = slurm is not None and slurm.contact.state is ContactState.READY
    return not draft.stored.applied_hash and good is None and not answers


def _written(draft: _Draft, write: Write, others: Sequence[Action]) -> Rollout:
    if set(draft.stored.node_sets) - set(draft.candidate.node_sets):
        # The status comes first: from then on nobody makes pods that the next configuration would not know.
        return draft.waiting("a NodeSet is being taken out", *others, wake_up=0.0)
    return draft.waiting("the configuration is being written", *others, write)


# NodeSets held back


def _held(snapshot: Snapshot, inputs: ConfInputs) -> dict[str, str]:
    """NodeSets that are left as they were, and why."""
    memory = snapshot.memory
    if memory.held_for != _own_part(inputs):
        return {}
    texts = {one.name: repr(one) for one in inputs.node_sets}
    return {name: one.why for name, one in memory.held.items() if texts.get(name) == one.text}


def _own_part(inputs: ConfInputs) -> str:
    """Tells whether the Cluster's own part of the configuration is another one."""
    return hashlib.sha256(repr(replace(inputs, node_sets=(), held={})).encode()).hexdigest()[:16]


def _changed(inputs: ConfInputs, candidate: Rendered, running: str) -> list[NodeSetConf]:
    """NodeSets whose lines in a configuration are not those that run."""
    text = candidate.files[SLURM_CONF]
    out = {one.node_set for one in candidate.refused}
    return [
        one
        for one in inputs.node_sets
        if one.name in candidate.node_sets
        and one.name not in out
        and lines_of(one.name, text) != lines_of(one.name, running)
    ]


def _holding(snapshot: Snapshot, inputs: ConfInputs, suspects: Sequence[NodeSetConf], why: str, *, alone: bool) -> Hold:
    """Hold back what was refused; what was alone is known to be the cause, others are tried one by one later."""
    words = why if alone else f"waits until the others are through, since with all of them {why}"
    before = {name: one for name, one in snapshot.memory.held.items() if name in _held(snapshot, inputs)}
    return Hold({**before, **{one.name: Held(repr(one), words, alone) for one in suspects}}, _own_part(inputs))


def _next_suspect(snapshot: Snapshot) -> list[Hold]:
    """Let one of the NodeSets be tried that were held back together."""
    memory = snapshot.memory
    suspects = sorted(name for name, one in memory.held.items() if not one.proven)
    if not suspects:
        return []
    return [Hold({name: one for name, one in memory.held.items() if name != suspects[0]}, memory.held_for)]


# Slurm's answers


def _use(snapshot: Snapshot, now: float) -> in_use.Use | None:
    use = snapshot.memory.use
    stored = snapshot.cluster.status.config or ConfigStatus()
    if use is None or use.hash != stored.applied_hash or now - use.asked_at > 2 * USE_VALID:
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
    return use is None or now - use.asked_at >= USE_VALID


def _remarks(rendered: Rendered, snapshot: Snapshot) -> str:
    words = [f"NodeSet {one.node_set}: {one.problem}" for one in rendered.refused]
    words += [f"NodeSet {error.name}: {error.problems[0]}" for _, error in snapshot.invalid_node_sets]
    if rendered.undefined:
        words.append(f"partitions name NodeSets that do not exist: {', '.join(rendered.undefined)}")
    return "; ".join(words)
