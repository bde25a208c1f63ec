"""The part of the plan about slurmdbd.conf: whether a disposable slurmdbd accepts it before the running one does. Pure.

A slurmdbd that runs keeps its configuration, and the daemons their Secrets, until a trial has accepted the next one
(`trials.slurmdbd_pod`). Only the user's keys are tried: a change of the database or of a password alone
needs no trial, and none can tell whether the database accepts it.

There is nothing to protect if slurmdbd does not run: the change may be the correction. What containers of the user's
prepare cannot be tried without them; such a slurmdbd takes its configuration untried, and says itself what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from slinky_operator.cluster.actions import Remove, TrialObjects
from slinky_operator.cluster.memory import Outcome, Verdict
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf, stored
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Remembered, Rules, Stage, Trial
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
from slinky_operator.slurm.exit_messages import stuck

KEEPS: Final = "slurmdbd goes on with its earlier configuration"


def trial(
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
    rules = Rules(
        kind=pods.SLURMDBD_CONF,
        words="",
        result=_remembered,
        denied=lambda why: Remembered(
            Stage.STUCK, f"the pod of its trial cannot be created: {why}", TRY_AGAIN, keeps=True
        ),
        read=lambda pod, at: _verdict(pod, at, wall),
        watched=_watched,
    )
    return engine.follow(snapshot, tried, rules, snapshot.memory.verdicts.get(tried.name), now, wall)


def _remembered(verdict: Verdict) -> Remembered:
    if verdict.outcome is Outcome.UNDECIDED:
        return Remembered(Stage.STUCK, f"its trial gave no result and is repeated: {verdict.why}", TRY_AGAIN)
    passed = verdict.outcome is Outcome.PASSED
    return Remembered(Stage.PASSED if passed else Stage.REFUSED, verdict.why, keeps=passed)


def _watched(pod: Object, so_far: Trial) -> Trial:
    why = stuck(pod)
    if not why:
        return replace(so_far, wake_up=engine.LOOK_AGAIN)
    return Trial(Stage.STUCK, f"the pod of its trial does not start: {why}", so_far.actions, 5.0)


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
    end = problems.ended(pod).get(naming.ACCOUNTING_CONTAINER)
    if end is not None and end.get("exitCode") == 0:
        return Verdict(Outcome.PASSED, "", now)
    if end is not None:
        said = problems.last_word(end)
        if end.get("exitCode") == REFUSED:
            return Verdict(Outcome.REFUSED, said, now)
        why = f"its image has no slurmdbd that can be run: {said}" if end.get("exitCode") == UNTRIED else said
        return Verdict(Outcome.UNDECIDED, why, now)
    if problems.failed(pod):
        return Verdict(Outcome.UNDECIDED, problems.failed(pod), now)
    if problems.age(pod, wall) > problems.PULLING:
        why = stuck(pod) or f"its pod has not ended in {problems.PULLING.seconds} s"
        return Verdict(Outcome.UNDECIDED, why, now)
    return None


def _leftovers(snapshot: Snapshot, current: str = "") -> tuple[Remove, ...]:
    """Objects of trials other than this one."""
    return engine.others(snapshot, pods.SLURMDBD_CONF, (current,))
