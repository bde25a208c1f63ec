"""The part of the plan about slurmdbd.conf: whether a disposable slurmdbd accepts it before the running one does. Pure.

A slurmdbd that runs keeps its configuration, and the daemons their Secrets, until a trial has accepted the next one
(`trials.slurmdbd_pod`). Only the user's keys are tried: a change of the database or of a password alone
needs no trial, and none can tell whether the database accepts it.

There is nothing to protect if slurmdbd does not run: the change may be the correction. What containers of the user's
prepare cannot be tried without them; such a slurmdbd takes its configuration untried, and says itself what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from slinky_operator.cluster.accounting import in_conf, stored
from slinky_operator.cluster.actions import EndPreflight, Remove, StartPreflight, TrialObjects
from slinky_operator.cluster.memory import Outcome, Verdict
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.preflight import attempts, pod_troubles
from slinky_operator.cluster.preflight.attempts import Stage, Trial
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.scripts import REFUSED, UNTRIED
from slinky_operator.cluster.trials.slurmdbd_pod import (
    is_judged,
    slurmdbd_trial,
    unmounted,
)
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import SLURMDBD_CONF
from slinky_operator.slurm.accounting.trial_conf import derive
from slinky_operator.slurm.exit_messages import short, stuck

KEEPS: Final = "slurmdbd goes on with its earlier configuration"


def trial(  # noqa: C901, PLR0911 - one for each stage
    snapshot: Snapshot, wanted: stored.Contents, template: Mapping[str, Any] | None, now: float, wall: datetime
) -> Trial:
    """Check for the outcome of the trial of a slurmdbd.conf, or start it.

    Parameters
    ----------
    wanted
        What the Secrets are to hold.
    template
        Spec of slurmdbd's next pod; `None` if nothing is to be tried.
    """
    tried = None if template is None else _needed(snapshot, wanted, template)
    if tried is None:
        return Trial(Stage.PASSED, "", _leftovers(snapshot))
    verdict, denied = snapshot.memory.verdicts.get(tried.name), attempts.denied_of(snapshot, tried)
    stage, words = Stage.UNDER_WAY, ""
    if verdict is not None and verdict.outcome is not Outcome.UNDECIDED:
        if verdict.outcome is Outcome.PASSED:
            # The pod stays until the Secret is written: another operator finds the result there.
            return Trial(Stage.PASSED, verdict.why, _leftovers(snapshot, tried.name))
        return Trial(Stage.REFUSED, verdict.why, _leftovers(snapshot))
    if verdict is not None:
        stage, words = Stage.STUCK, f"its trial gave no result and is repeated: {verdict.why}"
        if now - verdict.at < attempts.TRY_AGAIN:
            return Trial(stage, words, _leftovers(snapshot), attempts.TRY_AGAIN - (now - verdict.at))
    if denied is not None:
        stage, words = Stage.STUCK, f"the pod of its trial cannot be created: {denied.why}"
        if now - denied.at < attempts.TRY_AGAIN:
            return Trial(stage, words, _leftovers(snapshot, tried.name), attempts.TRY_AGAIN - (now - denied.at))
    stale, pod = _leftovers(snapshot, tried.name), snapshot.preflights.get(tried.name)
    if pod is None:
        return Trial(stage, words, (*stale, StartPreflight(tried)), 1.0)
    if pod["metadata"].get("deletionTimestamp"):
        return Trial(stage, words, stale, 1.0)
    outcome = _verdict(pod, now, wall)
    if outcome is not None:
        return Trial(stage, words, (*stale, EndPreflight(tried.name, outcome)))
    why = stuck(pod)
    return (
        Trial(Stage.STUCK, f"the pod of its trial does not start: {why}", stale, 5.0)
        if why
        else Trial(stage, words, stale, 2.0)
    )


def _needed(snapshot: Snapshot, wanted: stored.Contents, template: Mapping[str, Any]) -> TrialObjects | None:
    """The trial; `None` if slurmdbd may take its file without one."""
    name = naming.accounting(snapshot.cluster.name)
    new = wanted.secrets.get(name)
    if new is None or not in_conf.slurmdbd_is_ready(snapshot) or not is_judged(template):
        return None
    folders = unmounted(template)
    text = derive(new[SLURMDBD_CONF].decode(), folders)
    before = derive(stored.value_in(snapshot, name, SLURMDBD_CONF).decode("ascii", errors="replace"), folders)
    return None if text is None or text == before else slurmdbd_trial(snapshot.cluster, template, text)


def _verdict(pod: Object, now: float, wall: datetime) -> Verdict | None:
    """The result of a trial; `None` while it runs."""
    status = pod.get("status") or {}
    end = pod_troubles.ended(pod).get(naming.ACCOUNTING_CONTAINER)
    if end is not None and end.get("exitCode") == 0:
        return Verdict(Outcome.PASSED, "", now)
    if end is not None:
        said = pod_troubles.not_started(end) or short(end.get("message") or "") or end.get("reason") or "no word"
        if end.get("exitCode") == REFUSED:
            return Verdict(Outcome.REFUSED, said, now)
        why = f"its image has no slurmdbd that can be run: {said}" if end.get("exitCode") == UNTRIED else said
        return Verdict(Outcome.UNDECIDED, why, now)
    if status.get("phase") == "Failed":
        why = status.get("message") or status.get("reason") or "its pod was removed"
        return Verdict(Outcome.UNDECIDED, why, now)
    if wall - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) > attempts.PULLING:
        why = stuck(pod) or f"its pod has not ended in {attempts.PULLING.seconds} s"
        return Verdict(Outcome.UNDECIDED, why, now)
    return None


def _leftovers(snapshot: Snapshot, current: str = "") -> tuple[Remove, ...]:
    """Objects of trials other than this one."""
    return attempts.others(snapshot, pods.SLURMDBD_CONF, (current,))
