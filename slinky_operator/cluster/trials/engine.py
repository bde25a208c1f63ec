"""The life of a disposable pod, the same for each kind of trial: what is known, created, watched and deleted. Pure.

A result is remembered, and holds for a while or for good. What happens next is decided from what is there: a result, a
refusal of the API server, the pod. So an operator that has just started continues where an earlier one was: it finds
the pod by its name, and whatever has another name is deleted. A pod that ends without a result is created again later.

What a result means, and how a pod shows it, are the `Rules` of each kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from slinky_operator.cluster.actions import Action, EndPreflight, Remove, StartPreflight, TrialObjects
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.trials import problems
from slinky_operator.cluster.trials.pods import TrialKind
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import ended

TRY_AGAIN: Final = 30.0
"""Seconds until something is tried again whose trial has decided nothing."""

LOOK_AGAIN: Final = 2.0
"""Seconds until a pod is looked at again if no event comes."""


class Stage(Enum):
    """The state of a trial."""

    UNDER_WAY = auto()
    STUCK = auto()
    """It cannot be made, or not completely, unless somebody helps."""

    PASSED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of a trial, and what to do."""

    stage: Stage
    message: str = ""
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    """Why parts of it do not start, by their keys, for a kind that has parts."""

    def after(self, first: Trial) -> Trial:
        """Both of two trials that run at once; this one matters once the first has passed."""
        due = [one for one in (first.wake_up, self.wake_up) if one is not None]
        shown = self if first.stage is Stage.PASSED else first
        return replace(shown, actions=(*first.actions, *self.actions), wake_up=min(due, default=None))


@dataclass(frozen=True, slots=True)
class Remembered:
    """What follows from a result, or from a refusal of the API server.

    Once its time is over, the trial is repeated; its words stay meanwhile, unless it had passed.
    """

    stage: Stage
    message: str
    holds: float = math.inf
    """Seconds."""

    keeps: bool = False
    """Whether its objects stay as long: another operator finds the result there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What distinguishes the life of one kind of trial."""

    kind: TrialKind
    words: str
    """While it is under way, and nothing is known."""

    result: Callable[[Verdict], Remembered]
    denied: Callable[[str], Remembered]
    """By the message of the API server."""

    read: Callable[[Object, float, datetime], Verdict | None]
    """The result that a pod shows: of that time, seen at that time of day; `None` while there is none."""

    watched: Callable[[Object, Trial], Trial] = lambda _, trial: replace(trial, wake_up=LOOK_AGAIN)
    """A trial whose pod shows no result yet."""

    first: Callable[[Object, Trial], Trial | None] = lambda _, __: None
    """What matters before the result of a pod, or while it is being deleted."""

    start: Callable[[TrialObjects], StartPreflight] = StartPreflight
    tried: str = ""
    """In the pass that finds the result; as before if empty."""

    since: float = -math.inf
    """The time before which a remembered result was found that does not count."""

    expires: float = math.inf
    """Seconds after slurmctld's end for which what a pod shows holds; one that was left from earlier shows no more."""


def follow(  # noqa: PLR0911 - one for each stage
    view: View, objects: TrialObjects, rules: Rules, beside: Collection[str] = ()
) -> Trial:
    """Check for the result of a trial, or start it.

    Parameters
    ----------
    beside
        Names of other trials of the kind that stay.
    """
    snapshot, now, wall = view.snapshot, view.now, view.wall
    all_gone, stale = (leftovers(snapshot, rules.kind, names) for names in (beside, (*beside, objects.name)))
    denied, verdict = denied_of(snapshot, objects), snapshot.memory.rollout.verdicts.get(objects.name)
    known = [] if verdict is None or verdict.at < rules.since else [(rules.result(verdict), verdict.at)]
    known += [] if denied is None else [(rules.denied(denied.why), denied.at)]
    so_far = Trial(Stage.UNDER_WAY, rules.words, stale)
    for one, at in known:
        left = one.holds - (now - at)
        if left > 0:
            due = None if one.stage is Stage.PASSED or math.isinf(left) else left
            return Trial(one.stage, one.message, stale if one.keeps else all_gone, due)
        if one.stage is not Stage.PASSED:
            so_far = Trial(one.stage, one.message, stale)
    pod = snapshot.pods.preflights.get(objects.name)
    if pod is None:
        return replace(so_far, actions=(*stale, rules.start(objects)), wake_up=1.0)
    first = rules.first(pod, so_far)
    if first is not None:
        return first
    if pod["metadata"].get("deletionTimestamp"):
        return replace(so_far, wake_up=1.0)
    ago = 0.0 if math.isinf(rules.expires) else problems.ended_ago(pod, naming.CONTROLLER_CONTAINER, wall)
    if ago >= rules.expires:
        return replace(so_far, actions=all_gone, wake_up=1.0)
    found = rules.read(pod, now - ago, wall)
    if found is not None:
        shown = rules.tried or so_far.message
        return replace(so_far, message=shown, actions=(*stale, EndPreflight(objects.name, found)))
    return rules.watched(pod, so_far)


def denied_of(snapshot: Snapshot, objects: TrialObjects) -> Denied | None:
    """Why its objects could not be created; `None` if they could, or it has not been tried."""
    known = snapshot.memory.writes.denied
    return (known.get(objects.config_map.key) if objects.config_map else None) or known.get(objects.pod.key)


def remembered(verdict: Verdict, unclear: str = "") -> Remembered:
    """What follows from a result that holds for good; a trial that has decided nothing is repeated.

    Parameters
    ----------
    unclear
        Goes before the words about a trial that has decided nothing.
    """
    match verdict.outcome:
        case Outcome.PASSED:
            return Remembered(Stage.PASSED, verdict.why, keeps=True)
        case Outcome.REFUSED:
            return Remembered(Stage.REFUSED, verdict.why)
        case Outcome.UNDECIDED:
            return Remembered(Stage.STUCK, f"{unclear}{verdict.why}", TRY_AGAIN)


def read_daemon(
    container: str,
    meaning: Callable[[Mapping[str, Any]], tuple[Outcome, str]],
    patience: Callable[[Object], timedelta],
    *,
    on_one_node: bool = False,
) -> Callable[[Object, float, datetime], Verdict | None]:
    """How a pod shows its result that tries one daemon.

    Parameters
    ----------
    meaning
        The result, by the end of the daemon's container.
    patience
        How long the pod may take to end.
    on_one_node
        Whether it can run on one Node alone, and is given up soon if that has no room.
    """

    def read(pod: Object, at: float, wall: datetime) -> Verdict | None:
        end = ended(pod).get(container)
        if end is not None:
            return Verdict(*meaning(end), at)
        why = problems.given_up(pod, wall, patience(pod), on_one_node=on_one_node)
        return Verdict(Outcome.UNDECIDED, why, at) if why else None

    return read


def leftovers(snapshot: Snapshot, kind: TrialKind, current: Collection[str] = ()) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of one kind of trial, other than these."""
    found = [
        Remove(PODS, name, pod["metadata"]["uid"])
        for name, pod in sorted(snapshot.pods.preflights.items())
        if name not in current and kind.has(snapshot.cluster, pod) and not pod["metadata"].get("deletionTimestamp")
    ]
    maps = [
        Remove(CONFIGMAPS, name, obj["metadata"]["uid"])
        for (resource, name), obj in sorted(snapshot.children.items())
        if resource == CONFIGMAPS.kind and name not in current and kind.has(snapshot.cluster, obj)
    ]
    return (*found, *maps)
