"""The part of the plan about one preflight: whether to start it, and what its pod shows. Pure.

Its outcome is remembered. The pod of one that has passed stays until the configuration is live, so that an operator
that has just started finds the result; any other is deleted as soon as its outcome is known, and repeated after a
restart. A pod without a result (never scheduled, evicted, too slow) decides nothing, and is recreated later. What to
try, and what follows, is decided in `decision` and `single_trial`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.cluster.actions import ExcludeSlurmdKinds, Remove, StartPreflight, TrialObjects
from slinky_operator.cluster.memory.rollout import LeftOut, Outcome, Verdict, left_out_again
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.preflight import pod_troubles
from slinky_operator.cluster.rollout.preflight.slurmd_kinds import kinds
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Remembered, Rules, Stage, Trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.preflight_pod import Preflight, SlurmdKind, preflight
from slinky_operator.cluster.trials.scripts import REFUSED
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import Rendered, subjects
from slinky_operator.slurm.conf.derive import SLURM_CONF
from slinky_operator.slurm.conf.programs import Programs
from slinky_operator.slurm.pods.exit_messages import ended, short, stuck

PATIENCE: Final = timedelta(seconds=90)
"""How long a preflight's pod may take before it is given up: as long as a pull while an image is being pulled."""


def kinds_of(view: View, rendered: Rendered) -> tuple[SlurmdKind, ...]:
    """The ways in which slurmd is run, or will be with this configuration."""
    members = [one for one, _ in view.snapshot.node_sets if one.name in rendered.node_sets]
    return kinds(members, view.images, view.snapshot.pods.slurmds)


def made(
    view: View,
    tried: Sequence[SlurmdKind],
    rendered: Rendered,
    node: str = "",
    programs: Programs = Programs(),  # noqa: B008 - frozen
) -> Preflight:
    """Build the preflight of a configuration, with slurmctld's running pod."""
    snapshot = view.snapshot
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    running = {} if live is None else live["spec"]["template"]["spec"]
    given = TrialInput(snapshot.cluster, view.images, rendered.files, running, running, node=node)
    return preflight(given, tried, programs)


def attempt(view: View, wanted: Preflight, found: Sequence[SlurmdKind], passed: Collection[str] = ()) -> Trial:
    """Check for the outcome of one preflight, or start it.

    Parameters
    ----------
    passed
        Names of preflights that have passed before it, and belong to the same configuration.
    """
    rules = Rules(
        kind=pods.CONFIGURATION,
        words="slurmctld and slurmd try it",
        result=lambda verdict: engine.remembered(verdict, "its pod gave no result and is created again: "),
        denied=lambda why: Remembered(Stage.STUCK, f"its pod cannot be created: {why}", TRY_AGAIN, keeps=True),
        first=lambda pod, so_far: _without_some(view, pod, wanted, found, so_far),
        read=lambda pod, at, wall: outcome_of(pod, wanted, found, at, wall),
        watched=_watched,
        start=lambda _: start(wanted),
        tried="slurmctld and slurmd have tried it",
    )
    return engine.follow(view, wanted, rules, passed)


def _without_some(
    view: View, pod: Object, wanted: Preflight, found: Sequence[SlurmdKind], so_far: Trial
) -> Trial | None:
    """What follows if slurmds cannot be tried for reasons of their own: the results of the others are still useful."""
    own = pod_troubles.own(pod, wanted.kinds, view.wall)
    if own:
        left_out = still(view.snapshot.memory.rollout.left_out, found)
        new = left_out_again(left_out, own, view.now, on_its_node=bool(wanted.node))
        told = "; ".join(f"slurmd of {whose(kind)}: {own[kind.key]}" for kind in wanted.kinds if kind.key in own)
        return Trial(
            Stage.UNDER_WAY, f"the others are tried without {told}", (ExcludeSlurmdKinds({**left_out, **new}),), 1.0
        )
    if pod["metadata"].get("deletionTimestamp"):
        return replace(so_far, message="an earlier preflight is ending", wake_up=1.0)
    return None


def _watched(pod: Object, so_far: Trial) -> Trial:
    why = stuck(pod) if so_far.stage is Stage.UNDER_WAY else ""
    return replace(so_far, message=f"{so_far.message} ({why})" if why else so_far.message, wake_up=5.0)


def start(wanted: Preflight) -> StartPreflight:
    """Create its objects; if its pod is rejected, find out which part is the cause."""
    parts = {kind.key: wanted.part((number,)).body for number, kind in enumerate(wanted.kinds)}
    return StartPreflight(wanted, parts, wanted.part(()).body if parts else None)


def still(left_out: Mapping[str, LeftOut], found: Iterable[SlurmdKind]) -> dict[str, LeftOut]:
    """The exclusions of kinds that still exist."""
    return {kind.key: left_out[kind.key] for kind in found if kind.key in left_out}


def leftovers(snapshot: Snapshot, current: Collection[str] = ()) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of preflights other than these."""
    return engine.leftovers(snapshot, pods.CONFIGURATION, current)


def outcome_of(
    pod: Object, wanted: Preflight, found: Sequence[SlurmdKind], now: float, wall: datetime
) -> Verdict | None:
    """The outcome that a preflight's pod shows; `None` while there is none."""
    status = pod.get("status") or {}
    ends = ended(pod)
    # slurmctld comes first: what it rejects, slurmd never reads.
    names = sorted(ends, key=lambda name: (name != naming.CONTROLLER_CONTAINER, name))
    for name in names:
        if ends[name].get("exitCode") == REFUSED:
            words = refusal(ends[name].get("message") or "", wanted) or "it has ended without a word"
            return Verdict(Outcome.REFUSED, f"{_named(name, wanted, found)} refuses it: {words}", now)
    if status.get("phase") == "Succeeded":
        return Verdict(Outcome.PASSED, "", now)
    if status.get("phase") == "Failed":
        failed = [name for name in names if ends[name].get("exitCode")]
        words = "; ".join(f"{name}: {short(ends[name].get('message') or '') or 'no word'}" for name in failed)
        why = words or status.get("message") or status.get("reason") or "its pod was removed"
        return Verdict(Outcome.UNDECIDED, why, now)
    patience = problems.PULLING if len(wanted.kinds) == 1 or problems.pulls_slurmctld(pod) else PATIENCE
    if problems.age(pod, wall) > patience:
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
