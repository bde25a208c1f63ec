"""The part of the plan about slurmctld's state: whether slurmctld of another image reads it. Pure.

Once the pod that would replace slurmctld's has started without state, another one starts with a copy of it
(`trials.state_pod`). What its slurmctld refuses keeps the running one. A state that cannot be copied is no
reason to keep a release forever: the upgrade goes on, and an Event says that it does so without a trial. slurmctld
ends rather than change a state that it cannot read, so that only time is lost then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.parts.slurmctld.manifests import claim_name
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import Remembered, Rules, Stage, Trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.scripts import NOT_COPIED, REFUSED, UNTRIED
from slinky_operator.cluster.trials.state_pod import READING, state_trial
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import LONGEST, short

AGAIN: Final = 300.0
"""Seconds until a state that was refused is tried again: slurmctld writes it all the time."""

HOLDS: Final = 3600.0
"""Seconds for which the result of a trial holds."""

PATIENCE: Final = timedelta(seconds=READING + 60)
"""How long the pod may take, but for its image."""

_OUT_OF_MEMORY: Final = "OOMKilled"


def trial(view: View, wanted: Child, live: Object, files: Mapping[str, str]) -> Trial:
    """Check for the outcome of the trial of the state, or start it.

    Parameters
    ----------
    wanted, live
        slurmctld's StatefulSet as it is to be, and as it is.
    files
        The live configuration.

    Returns
    -------
    Trial
        Passed with a message if the state could not be tried: why.
    """
    snapshot = view.snapshot
    new, old = wanted.body["spec"]["template"], live["spec"]["template"]
    node = ((snapshot.pods.controller or {}).get("spec") or {}).get("nodeName") or ""
    claim = claim_name(snapshot)
    image = slurmctld_pod.image(new)
    is_there = bool(node and claim) and slurmctld_pod.same_state(new, old)
    if image == slurmctld_pod.image(old) or not is_there:
        return Trial(Stage.PASSED, "", engine.leftovers(snapshot, pods.STATE))
    given = TrialInput(snapshot.cluster, view.images, files, new["spec"], old["spec"], claim, node)
    return engine.follow(view, state_trial(given), _rules(image))


def _rules(image: str) -> Rules:
    def result(verdict: Verdict) -> Remembered:
        if verdict.outcome is Outcome.REFUSED:
            return Remembered(Stage.REFUSED, verdict.why, AGAIN)
        why = verdict.why if verdict.outcome is Outcome.UNDECIDED else ""
        return Remembered(Stage.PASSED, _untried(image, why), HOLDS, keeps=True)

    return Rules(
        kind=pods.STATE,
        words="slurmctld of its image reads a copy of the state",
        result=result,
        denied=lambda why: Remembered(
            Stage.PASSED, _untried(image, f"the API server refuses the pod that copies it: {why}")
        ),
        read=engine.read_daemon(naming.CONTROLLER_CONTAINER, _of_end, _patience, on_one_node=True),
        expires=HOLDS,
    )


def _untried(image: str, why: str) -> str:
    if not why:
        return ""
    return (
        f"slurmctld gets {image} without a trial on a copy of its state: {why}. slurmctld ends if it cannot read the "
        "state, and leaves it as it is"
    )[: 2 * LONGEST]


def _patience(pod: Object) -> timedelta:
    return problems.PULLING if problems.pulls_slurmctld(pod) else PATIENCE


def _of_end(end: Mapping[str, Any]) -> tuple[Outcome, str]:
    """What the end of the container says."""
    code, message = end.get("exitCode"), str(end.get("message") or "")
    if not code:
        return Outcome.PASSED, message
    if end.get("reason") == _OUT_OF_MEMORY:
        return Outcome.REFUSED, "slurmctld: killed for want of memory; see spec.controller.resources.limits"
    if code in {REFUSED, UNTRIED}:
        return Outcome.REFUSED, f"slurmctld: {short(message) or 'no word'}"
    if code == NOT_COPIED:
        return Outcome.UNDECIDED, message[:LONGEST] or "it cannot be copied"
    why = problems.not_started(end) or short(message) or str(end.get("reason") or code)
    return Outcome.UNDECIDED, f"slurmctld neither runs nor ends: {why}"[:LONGEST]
