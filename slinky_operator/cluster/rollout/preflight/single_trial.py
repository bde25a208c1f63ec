"""The part of the plan about slurmds that preflights leave out: they are retried while the Cluster is idle. Pure.

One after the other, with the live files, and with time for a slow pull: nothing waits for it. A slurmd that accepts
those files counts again from then on; one that rejects them is still left out, since it is no change that it rejects.

It does not live by `trials.engine`: what is remembered is the kind that is left out, whatever pod has shown it last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.cluster.actions import ExcludeSlurmdKinds
from slinky_operator.cluster.memory.rollout import Outcome, left_out_again
from slinky_operator.cluster.rollout.preflight import attempts, pod_troubles
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Stage, Trial, denied_of
from slinky_operator.cluster.trials.preflight_pod import Preflight, SlurmdKind
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.conf import Rendered

APART: Final = 60.0
"""Seconds until an excluded kind is tried again separately; doubled after each attempt."""

APART_AT_MOST: Final = 960.0


def again(view: View, rendered: Rendered) -> Trial:  # noqa: PLR0911 - one for each step
    """Try excluded kinds with the live files, one slurmd kind after the other.

    Parameters
    ----------
    rendered
        The live configuration.

    Returns
    -------
    Trial
        Passed while nothing is due; its time is in seconds from now.
    """
    snapshot, now = view.snapshot, view.now
    left_out = snapshot.memory.rollout.left_out
    if not left_out:
        return Trial(Stage.PASSED, "", attempts.leftovers(snapshot))
    found = attempts.kinds_of(view, rendered)
    known = attempts.still(left_out, found)
    due = {
        kind.key: known[kind.key].at + min(APART * 2.0 ** (known[kind.key].attempts - 1), APART_AT_MOST)
        for kind in found
        if kind.key in known
    }
    if not due:
        return Trial(Stage.PASSED, "", (*attempts.leftovers(snapshot), ExcludeSlurmdKinds({})))
    kind = min((one for one in found if one.key in due), key=lambda one: due[one.key])
    if due[kind.key] > now:
        return Trial(Stage.PASSED, "", attempts.leftovers(snapshot), due[kind.key] - now)
    wanted = attempts.made(view, (kind,), rendered, kind.node)
    stale, pod = attempts.leftovers(snapshot, (wanted.name,)), snapshot.pods.preflights.get(wanted.name)
    denied = denied_of(snapshot, wanted)
    if pod is None and (denied is None or now - denied.at >= TRY_AGAIN):
        return Trial(Stage.UNDER_WAY, "", (*stale, attempts.start(wanted)), 5.0)
    why: str | None = None if denied is None else f"its pod cannot be created: {denied.why}"
    if pod is not None and not pod["metadata"].get("deletionTimestamp"):
        if pod_troubles.passed(pod, 0):
            rest = {key: one for key, one in known.items() if key != kind.key}
            return Trial(Stage.PASSED, "", (*attempts.leftovers(snapshot), ExcludeSlurmdKinds(rest)), 0.0)
        why = _why_not(view, pod, wanted, found)
    if why is None:
        return Trial(Stage.UNDER_WAY, "", stale, 5.0)
    new = left_out_again(known, {kind.key: why}, now, on_its_node=bool(wanted.node))
    return Trial(Stage.UNDER_WAY, "", (*attempts.leftovers(snapshot), ExcludeSlurmdKinds({**known, **new})), 0.0)


def _why_not(view: View, pod: Object, wanted: Preflight, found: Sequence[SlurmdKind]) -> str | None:
    """Why a slurmd in a single trial is still left out; `None` while it may start."""
    own = pod_troubles.own(pod, wanted.kinds, view.wall, patient=True)
    if own:
        return next(iter(own.values()))
    verdict = attempts.outcome_of(pod, wanted, found, view.now, view.wall)
    if verdict is None or verdict.outcome is Outcome.PASSED:
        return None
    if verdict.outcome is Outcome.REFUSED:
        return f"with the configuration that is live, {verdict.why}"
    return verdict.why
