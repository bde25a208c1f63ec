"""The part of the rollout before the write: disposable daemons try a new configuration, then it is written. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import Action, Ask, EmitEvent, Write, asks
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.rollout.config import manual_changes
from slinky_operator.cluster.rollout.config.candidate import Candidate, Refused, Step, Waiting
from slinky_operator.cluster.rollout.config.held_nodesets import changed, holding
from slinky_operator.cluster.rollout.in_use import answer, licenses, static_nodes
from slinky_operator.cluster.rollout.in_use.answer import USE_VALID, is_fresh
from slinky_operator.cluster.rollout.in_use.removals import changed_gres
from slinky_operator.cluster.rollout.preflight import decision, jobs_copy
from slinky_operator.cluster.rollout.slurm_questions import StatesQuestion, UseQuestion
from slinky_operator.cluster.trials import engine, pods
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.cluster.trials.preflight_pod import Preflight
from slinky_operator.kube.events import EventType
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.conf import render
from slinky_operator.slurm.conf.syntax.parsed import ConfFiles

TRY_REFUSED: Final = timedelta(minutes=5)
"""How long a configuration that slurmctld rejected is not retried, unless it changes."""


def bring_in(candidate: Candidate) -> Step:
    """Write a new configuration to the ConfigMap that slurmctld mounts: tried first, unless none has ever run."""
    view, stored, load = candidate.view, candidate.stored, candidate.load
    busy = (*candidate.asking, *load.actions)
    why = _rejected_before(candidate)
    if why is not None:
        words = f"slurmctld rejected it, and the last good one is restored: {why}"
        done = (*leftovers(candidate), *busy)
        return Refused(words, done, wake_up=load.wake_up, reason=Reason.CONFIG_ROLLED_BACK)
    # What has never run cannot break, and what ran last can be restored without a query.
    ran_last = (stored.last or {}).get("data") == candidate.rendered.files
    if stored.is_lost:
        ran_last = candidate.is_applied
        if not ran_last and candidate.kept.why and not _is_accepted(candidate):
            words = "; ".join((*candidate.kept.why, _acceptance(candidate)))
            return Waiting(words, busy, wake_up=load.wake_up or USE_VALID, reason=candidate.kept.reason)
    if stored.never_ran(view.snapshot, candidate.status) or ran_last:
        return _written(candidate, busy)
    if candidate.first:
        return Waiting(candidate.first, busy, wake_up=load.wake_up or 5.0)
    return _tried(candidate)


def _is_accepted(candidate: Candidate) -> bool:
    """Whether an administrator has accepted that this configuration ends jobs."""
    annotations = candidate.view.snapshot.cluster.metadata.annotations
    return annotations.get(labels.ANNOTATION_WRITE_CONFIG) == candidate.rendered.hash


def _acceptance(candidate: Candidate) -> str:
    about = candidate.view.snapshot.cluster.metadata
    note = f"{labels.ANNOTATION_WRITE_CONFIG}={candidate.rendered.hash}"
    command = f"kubectl -n {about.namespace} annotate --overwrite clusters.slinky.slurm.net {about.name} {note}"
    return f"to write it before that, whatever it ends: {command}"


def _tried(candidate: Candidate) -> Step:
    """Write the configuration once disposable daemons have accepted it."""
    view, stored, load = candidate.view, candidate.stored, candidate.load
    busy = (*candidate.asking, *load.actions)
    later = [one.name for one in _later(candidate)]
    preflight = decision.trial(view, candidate.rendered, stored.proven, beside=later)
    trial = _with_later(candidate, _with_jobs(candidate, preflight).after(preflight))
    if trial.stage is Stage.PASSED:
        return _passed(candidate, trial)
    if trial.stage in {Stage.UNDER_WAY, Stage.STUCK}:
        wake_up = min(one for one in (trial.wake_up, load.wake_up, 5.0) if one is not None)
        words = "; ".join((f"preflight: {trial.message}", *candidate.kept.why))
        return Waiting(words, (*trial.actions, *busy), wake_up=wake_up, reason=_reason(trial))
    if preflight.stage is Stage.PASSED:
        return Refused(trial.message, (*trial.actions, *busy), wake_up=trial.wake_up)
    return _refused(candidate, trial)


def later_part(candidate: Candidate, *, beside: Collection[str] = ()) -> Trial:
    """The trial of what is wanted in the end, if keys of slurm.conf keep their running value for now.

    A value that no daemon takes would otherwise be found when the last job has ended, in a maintenance window.

    Parameters
    ----------
    beside
        Names of preflights of what is to be live before; they stay.
    """
    if not _waits(candidate):
        return Trial(Stage.PASSED)
    found = decision.trial(candidate.view, candidate.wanted, candidate.stored.proven, beside=beside)
    if found.stage is not Stage.REFUSED:
        return found
    return replace(found, message=f"what waits for jobs cannot be used then: {found.message}")


def leftovers(candidate: Candidate) -> tuple[Action, ...]:
    """Objects of trials of all configurations, if none is to be tried."""
    snapshot = candidate.view.snapshot
    if not knows(candidate):
        return ()
    return tuple(one for kind in (pods.CONFIGURATION, pods.JOBS) for one in engine.leftovers(snapshot, kind))


def knows(candidate: Candidate) -> bool:
    """Whether it is known what is in use.

    Before the first answer of Slurm an operator that has just started does not know what an earlier one was trying.
    """
    return not candidate.kept.asks or answer.use(candidate.view.snapshot, candidate.view.now) is not None


def _rejected_before(candidate: Candidate) -> str | None:
    """Why slurmctld has rejected this configuration a short time ago; `None` if it has not."""
    current, wall = candidate.stored.current, candidate.view.wall
    if current is None:
        return None
    refused, why, at = shared_objects.refused_of(current)
    return why if refused == candidate.rendered.hash and abs(wall - (at or wall)) < TRY_REFUSED else None


def _waits(candidate: Candidate) -> bool:
    """Whether keys of slurm.conf keep their running value for now."""
    return bool(candidate.kept.keys) and candidate.wanted.hash != candidate.rendered.hash


def _later(candidate: Candidate) -> tuple[Preflight, ...]:
    """The preflights of what is wanted in the end, if that is tried too."""
    if not _waits(candidate):
        return ()
    return decision.preflights(candidate.view, candidate.wanted, candidate.stored.proven)


def _with_later(candidate: Candidate, trial: Trial) -> Trial:
    """A trial that has passed, followed by that of what waits; one that cannot be made delays nothing."""
    if trial.stage is not Stage.PASSED:
        return trial
    own = decision.preflights(candidate.view, candidate.rendered, candidate.stored.proven)
    later = later_part(candidate, beside=[one.name for one in own])
    if later.stage in {Stage.PASSED, Stage.STUCK}:
        return trial
    return replace(later, actions=(*trial.actions, *later.actions))


def _reason(trial: Trial) -> Reason:
    """Why a configuration is not applied that is being tried, or cannot be."""
    if jobs_copy.would_end(trial):
        return Reason.WAITING_FOR_JOBS
    return Reason.CONFIG_UNTRIED if trial.stage is Stage.STUCK else Reason.CONFIG_PENDING


def _with_jobs(candidate: Candidate, trial: Trial) -> Trial:
    """The trial with a copy of the jobs, if the change may concern any."""
    view, live = candidate.view, candidate.stored.proven
    use = answer.use(view.snapshot, view.now)
    nobody = use is not None and not use.why and not use.jobs and not use.reservations
    if trial.stage is Stage.REFUSED or nobody or not touches_jobs(live, candidate.rendered):
        return Trial(Stage.PASSED, "", engine.leftovers(view.snapshot, pods.JOBS))
    return jobs_copy.trial(view, live.files, candidate.rendered.files)


def _refused(candidate: Candidate, trial: Trial) -> Step:
    """What disposable daemons have rejected: the changes of NodeSets in it are held back, to find the cause."""
    view, stored, inputs = candidate.view, candidate.stored, candidate.inputs
    actions = (*trial.actions, *candidate.asking, *candidate.load.actions)
    found = changed(inputs, candidate.rendered, stored.running.lines)
    if not found or stored.is_lost:
        # Where nothing shows what runs, a NodeSet that is held back would be left out.
        return Refused(trial.message, actions, wake_up=candidate.load.wake_up)
    rest = {**inputs.held, **{one.name: "" for one in found}}
    others = render(candidate.kept.over(replace(inputs, held=rest)), stored.running.lines)
    alone = len(found) == 1 and stored.current is not None and others.files == stored.current["data"]
    hold = holding(view.snapshot, inputs, found, trial.message, alone=alone)
    return Refused(trial.message, (*trial.actions, hold, *candidate.asking, *candidate.load.actions))


def _passed(candidate: Candidate, trial: Trial) -> Step:
    snapshot = candidate.view.snapshot
    if candidate.kept.asks and not is_fresh(snapshot, candidate.view.now):
        # Expensive answers are used for a long time: what is removed now is checked once more.
        ask = Ask(UseQuestion(candidate.status.applied_hash))
        words = "Slurm is asked once more what is in use"
        return Waiting(words, (*candidate.load.actions, ask), wake_up=USE_VALID)
    told = []
    if trial.message and snapshot.memory.last_events.get(Reason.STATE_NOT_TRIED) != trial.message:
        told = [EmitEvent(snapshot.raw, EventType.WARNING, Reason.STATE_NOT_TRIED, trial.message)]
    return _written(candidate, (*trial.actions, *candidate.asking, *told))


def _written(candidate: Candidate, others: tuple[Action, ...]) -> Step:
    snapshot, stored, rendered = candidate.view.snapshot, candidate.stored, candidate.rendered
    unasked, questions = manual_changes.unasked(snapshot, candidate.view.now, is_live=stored.is_live)
    if unasked:
        asked = any(asks(one, StatesQuestion) for one in others)
        return Waiting(unasked, (*others, *(() if asked else questions)), wake_up=1.0)
    if set(candidate.status.node_sets) - set(rendered.node_sets):
        # The status comes first: from then on no pods are created that the next configuration would not contain.
        return Waiting("a NodeSet is being taken out", others, wake_up=0.0)
    body = shared_objects.config_map(snapshot.cluster, rendered.files, rendered.hash, stored.next_change)
    write = Write(Child(CONFIGMAPS, body), stored.mounted)
    told = manual_changes.events(snapshot, rendered, stored.running.lines)
    return Waiting(f"ConfigMap {write.child.name} is being written", (*others, write, *told))


_TOPOLOGY_FILES: Final = ("topology.conf", "topology.yaml")
_TOPOLOGY_KEYS: Final = ("topologyparam", "topologyplugin")


def touches_jobs(running: ConfFiles, candidate: ConfFiles) -> bool:
    """Whether jobs may refer to something that the candidate no longer has, or has less of.

    Parameters
    ----------
    running
        The files that slurmctld runs.
    candidate
        The files that it is to get, with what stays for now.
    """
    if not running.files:
        return False
    old, new = running.lines, candidate.lines
    return (
        not old.partitions.keys() <= new.partitions.keys()
        or bool(static_nodes.changed_lines(old, new))
        or bool(licenses.lowered(old, new))
        or any(changed_gres(running, candidate))
        or _topology(running) != _topology(candidate)
    )


def _topology(conf: ConfFiles) -> tuple[object, ...]:
    return (*map(conf.files.get, _TOPOLOGY_FILES), *map(conf.lines.keys.get, _TOPOLOGY_KEYS))
