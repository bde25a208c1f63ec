"""The part of the plan about one preflight: whether to start it, and what its pod shows. Pure.

Its outcome is remembered. The pod of one that has passed stays until the configuration is live, so that an operator
that has just started finds the result; any other is deleted as soon as its outcome is known, and repeated after a
restart. A pod without a result (never scheduled, evicted, too slow) decides nothing, and is recreated later. What to
try, and what follows, is decided in `decision` and `single_trial`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from slinky_operator.cluster.actions import (
    Action,
    EndPreflight,
    ExcludeSlurmdKinds,
    Remove,
    StartPreflight,
    TrialObjects,
)
from slinky_operator.cluster.components import Images
from slinky_operator.cluster.memory import Denied, LeftOut, Outcome, Verdict, left_out_again
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.preflight import pod_troubles
from slinky_operator.cluster.preflight.slurmd_kinds import kinds
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialKind
from slinky_operator.cluster.trials.preflight_pod import Preflight, SlurmdKind, preflight
from slinky_operator.cluster.trials.scripts import REFUSED
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import Rendered, subjects
from slinky_operator.slurm.conf.derive import SLURM_CONF
from slinky_operator.slurm.conf.programs import Programs
from slinky_operator.slurm.exit_messages import short, stuck

TRY_AGAIN: Final = 30.0
"""Seconds until a configuration is tried again whose preflight has decided nothing."""

PATIENCE: Final = timedelta(seconds=90)
"""How long a preflight's pod may take before it is given up."""

PULLING: Final = timedelta(seconds=540)
"""The same while the image of slurmctld is being pulled, or of a slurmd in a single trial."""


class Stage(Enum):
    """The state of a configuration's trial."""

    UNDER_WAY = auto()
    STUCK = auto()
    """It cannot be tried, or not completely, unless somebody helps."""

    PASSED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of a configuration's preflight, and what to do."""

    stage: Stage
    message: str = ""
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None

    def after(self, first: Trial) -> Trial:
        """Both of two trials that run at once; this one matters once the first has passed."""
        due = [one for one in (first.wake_up, self.wake_up) if one is not None]
        shown = self if first.stage is Stage.PASSED else first
        return replace(shown, actions=(*first.actions, *self.actions), wake_up=min(due, default=None))


def kinds_of(snapshot: Snapshot, images: Images, rendered: Rendered) -> tuple[SlurmdKind, ...]:
    """The ways in which slurmd is run, or will be with this configuration."""
    members = [one for one, _ in snapshot.node_sets if one.name in rendered.node_sets]
    return kinds(members, images, snapshot.slurmd_objects)


def made(
    snapshot: Snapshot,
    images: Images,
    tried: Sequence[SlurmdKind],
    rendered: Rendered,
    node: str = "",
    programs: Programs = Programs(),  # noqa: B008 - frozen
) -> Preflight:
    """Build the preflight of a configuration, with slurmctld's running pod."""
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    running = None if live is None else live["spec"]["template"]["spec"]
    files, digest = rendered.files, rendered.hash
    return preflight(snapshot.cluster, images, tried, files, digest, running=running, node=node, programs=programs)


def attempt(  # noqa: C901, PLR0911 - one for each stage
    snapshot: Snapshot,
    wanted: Preflight,
    found: Sequence[SlurmdKind],
    now: float,
    wall: datetime,
    passed: Collection[str] = (),
) -> Trial:
    """Check for the outcome of one preflight, or start it.

    Parameters
    ----------
    passed
        Names of preflights that have passed before it, and belong to the same configuration.
    """
    stale = leftovers(snapshot, (*passed, wanted.name))
    verdict, denied = snapshot.memory.verdicts.get(wanted.name), denied_of(snapshot, wanted)
    stage, words = Stage.UNDER_WAY, "slurmctld and slurmd try it"
    if verdict is not None and verdict.outcome is not Outcome.UNDECIDED:
        if verdict.outcome is Outcome.PASSED:
            return Trial(Stage.PASSED, verdict.why, stale)
        return Trial(Stage.REFUSED, verdict.why, leftovers(snapshot, passed))
    if verdict is not None:
        stage, words = Stage.STUCK, f"its pod gave no result and is created again: {verdict.why}"
        if now - verdict.at < TRY_AGAIN:
            return Trial(stage, words, leftovers(snapshot, passed), TRY_AGAIN - (now - verdict.at))
    if denied is not None:
        stage, words = Stage.STUCK, f"its pod cannot be created: {denied.why}"
        if now - denied.at < TRY_AGAIN:
            return Trial(stage, words, stale, TRY_AGAIN - (now - denied.at))
    pod = snapshot.preflights.get(wanted.name)
    if pod is None:
        return Trial(stage, words, (*stale, start(wanted)), 1.0)
    left_out = still(snapshot.memory.left_out, found)
    own = pod_troubles.own(pod, wanted.kinds, wall)
    if own:
        # The results of the others are still useful.
        new = left_out_again(left_out, own, now, on_its_node=bool(wanted.node))
        told = "; ".join(f"slurmd of {whose(kind)}: {own[kind.key]}" for kind in wanted.kinds if kind.key in own)
        return Trial(
            Stage.UNDER_WAY, f"the others are tried without {told}", (ExcludeSlurmdKinds({**left_out, **new}),), 1.0
        )
    if pod["metadata"].get("deletionTimestamp"):
        return Trial(stage, "an earlier preflight is ending", stale, 1.0)
    outcome = outcome_of(pod, wanted, found, now, wall)
    if outcome is None:
        why = stuck(pod)
        return Trial(stage, f"{words} ({why})" if why and stage is Stage.UNDER_WAY else words, stale, 5.0)
    return Trial(stage, "slurmctld and slurmd have tried it", (*stale, EndPreflight(wanted.name, outcome)))


def start(wanted: Preflight) -> StartPreflight:
    """Create its objects; if its pod is rejected, find out which part is the cause."""
    parts = {kind.key: wanted.part((number,)).body for number, kind in enumerate(wanted.kinds)}
    return StartPreflight(wanted, parts, wanted.part(()).body if parts else None)


def denied_of(snapshot: Snapshot, wanted: TrialObjects) -> Denied | None:
    """Why its objects could not be created; `None` if they could, or it has not been tried."""
    known = snapshot.memory.denied
    return (known.get(wanted.config_map.key) if wanted.config_map else None) or known.get(wanted.pod.key)


def still(left_out: Mapping[str, LeftOut], found: Iterable[SlurmdKind]) -> dict[str, LeftOut]:
    """The exclusions of kinds that still exist."""
    return {kind.key: left_out[kind.key] for kind in found if kind.key in left_out}


def leftovers(snapshot: Snapshot, current: Collection[str] = ()) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of preflights other than these."""
    return others(snapshot, pods.CONFIGURATION, current)


def others(snapshot: Snapshot, kind: TrialKind, current: Collection[str]) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of one kind of trial, other than these."""
    found = [
        Remove(PODS, name, pod["metadata"]["uid"])
        for name, pod in sorted(snapshot.preflights.items())
        if name not in current and kind.has(snapshot.cluster, pod) and not pod["metadata"].get("deletionTimestamp")
    ]
    maps = [
        Remove(CONFIGMAPS, name, obj["metadata"]["uid"])
        for (resource, name), obj in sorted(snapshot.children.items())
        if resource == CONFIGMAPS.kind and name not in current and kind.has(snapshot.cluster, obj)
    ]
    return (*found, *maps)


def outcome_of(
    pod: Object, wanted: Preflight, found: Sequence[SlurmdKind], now: float, wall: datetime
) -> Verdict | None:
    """The outcome that a preflight's pod shows; `None` while there is none."""
    status = pod.get("status") or {}
    ended = pod_troubles.ended(pod)
    # slurmctld comes first: what it rejects, slurmd never reads.
    names = sorted(ended, key=lambda name: (name != naming.CONTROLLER_CONTAINER, name))
    for name in names:
        if ended[name].get("exitCode") == REFUSED:
            words = refusal(ended[name].get("message") or "", wanted) or "it has ended without a word"
            return Verdict(Outcome.REFUSED, f"{_named(name, wanted, found)} refuses it: {words}", now)
    if status.get("phase") == "Succeeded":
        return Verdict(Outcome.PASSED, "", now)
    if status.get("phase") == "Failed":
        failed = [name for name in names if ended[name].get("exitCode")]
        words = "; ".join(f"{name}: {short(ended[name].get('message') or '') or 'no word'}" for name in failed)
        why = words or status.get("message") or status.get("reason") or "its pod was removed"
        return Verdict(Outcome.UNDECIDED, why, now)
    begun = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    patience = PULLING if len(wanted.kinds) == 1 or pod_troubles.pulls_slurmctld(pod) else PATIENCE
    if wall - begun > patience:
        why = stuck(pod)
        return Verdict(
            Outcome.UNDECIDED, f"its pod has not ended in {patience.seconds} s{f' ({why})' if why else ''}", now
        )
    return None


def refusal(said: str, wanted: TrialObjects) -> str:
    """The lines with which a daemon refuses a configuration, after the partitions or nodes that they are about."""
    words = short(said)
    files = wanted.config_map.body["data"] if wanted.config_map else {}
    about = subjects.refused(said, files.get(SLURM_CONF, "")) if words else ()
    return f"{named(about)}: {words}" if about else words


def _named(container: str, wanted: Preflight, found: Sequence[SlurmdKind]) -> str:
    """A daemon's usual name: with its NodeSets, if there are several kinds of slurmd."""
    if container == naming.CONTROLLER_CONTAINER:
        return container
    kind = wanted.kinds[pod_troubles.place(container)]
    return "slurmd" if len(found) <= 1 else f"slurmd of {whose(kind)}"


def whose(kind: SlurmdKind) -> str:
    """The NodeSets of a kind; the operator's default has none."""
    return f"NodeSet {', '.join(kind.node_sets)}" if kind.node_sets else f"image {kind.image}"
