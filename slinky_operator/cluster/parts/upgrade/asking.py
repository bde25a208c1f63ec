"""Which Slurm images have: what is known, and the pod that asks those that are not. Pure.

Answers are remembered by program and image. The pod that gave them stays while anything depends on them, so that they
outlive a restart of the operator. An image that gives no answer is asked again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import LOOK_AGAIN, TRY_AGAIN, Remembered, Rules, Stage
from slinky_operator.cluster.trials.version_pod import Question, version_pod
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.pods.exit_messages import LONGEST, ended, held_up, stuck
from slinky_operator.slurm.releases import Release


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known of the images."""

    releases: Mapping[str, Release] = field(default_factory=dict)
    """By `Question.key`."""

    untold: Mapping[str, str] = field(default_factory=dict)
    """Why an image has not answered, by `Question.key`."""

    asked: frozenset[str] = frozenset()
    """Images without an answer, by `Question.key`: they are being asked, or will be asked again."""

    actions: tuple[Action, ...] = ()
    wake_up: float | None = None


def ask(view: View, needed: Iterable[Question], template: Mapping[str, Any], pull_secrets: Iterable[str]) -> Answers:
    """Find the releases of images, or ask for them.

    Parameters
    ----------
    needed
        At most two for each daemon, and one for each entry of `spec.login`.
    template
        Spec of slurmctld's pod.
    pull_secrets
        Pull secrets of the images.
    """
    snapshot = view.snapshot
    told = {key: text for one in snapshot.memory.rollout.verdicts.values() for key, text in one.releases.items()}
    known = {key: release for key, text in told.items() if (release := Release.read(text)) is not None}
    every = tuple(sorted({one.key: one for one in needed}.values()))
    asked = tuple(one for one in every if one.key not in known)
    if not asked:
        # The pod stays as long as its answers are needed: another operator finds them there.
        whole = version_pod(snapshot.cluster, every, template, pull_secrets).name if every else ""
        return Answers(known, actions=engine.leftovers(snapshot, pods.VERSIONS, (whole,)))
    keys = frozenset(one.key for one in asked)
    wanted = version_pod(snapshot.cluster, asked, template, pull_secrets)
    rules = Rules(
        kind=pods.VERSIONS,
        words="",
        result=lambda verdict: Remembered(Stage.STUCK, verdict.why, TRY_AGAIN),
        denied=lambda why: Remembered(Stage.STUCK, f"the API server refuses the pod that asks it: {why}", TRY_AGAIN),
        read=lambda pod, at, wall: _verdict(pod, asked, at, wall),
        watched=lambda pod, so_far: replace(so_far, parts=_held_up(pod, asked), wake_up=LOOK_AGAIN),
    )
    found = engine.follow(view, wanted, rules)
    untold = {one.key: found.message for one in asked} if found.stage is Stage.STUCK else {}
    wake_up = LOOK_AGAIN if found.wake_up is None else found.wake_up
    return Answers(known, {**untold, **found.parts}, keys, found.actions, wake_up)


def _verdict(pod: Object, asked: Sequence[Question], now: float, wall: datetime) -> Verdict | None:
    """What the pod shows; `None` while an answer may come."""
    ends = ended(pod)
    releases, why = {}, []
    for number, one in enumerate(asked):
        end = ends.get(f"asked-{number}") or {}
        text = str(end.get("message") or "")
        if end and not end.get("exitCode") and Release.read(text) is not None:
            releases[one.key] = text.strip()[:LONGEST]
        elif end:
            said = problems.last_word(end)
            why.append(f"no {one.daemon} can be run in {one.image}: {said}"[:LONGEST])
    if len(releases) == len(asked):
        return Verdict(Outcome.PASSED, "", now, releases)
    status = pod.get("status") or {}
    if len(ends) == len(asked) or status.get("phase") == "Failed" or problems.age(pod, wall) > problems.PULLING:
        words = "; ".join(why) or status.get("message") or stuck(pod) or "its pod has ended without an answer"
        return Verdict(Outcome.UNDECIDED, words[:LONGEST], now, releases)
    return None


def _held_up(pod: Object, asked: Sequence[Question]) -> dict[str, str]:
    """Why containers do not start, as the scheduler and the kubelet report."""
    statuses = {one["name"]: one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
    if not statuses:
        why = stuck(pod)
        return {one.key: why for one in asked} if why else {}
    found = {one.key: held_up(statuses.get(f"asked-{number}", {})) for number, one in enumerate(asked)}
    return {key: why for key, why in found.items() if why}
