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
from typing import Any, Final

from slinky_operator.cluster.actions import Remove, TrialObjects
from slinky_operator.cluster.memory.rollout import Outcome
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf, stored
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Remembered, Rules, Stage, Trial
from slinky_operator.cluster.trials.scripts import REFUSED, UNTRIED
from slinky_operator.cluster.trials.slurmdbd_pod import is_judged, slurmdbd_trial, unmounted
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import SLURMDBD_CONF
from slinky_operator.slurm.accounting.trial_conf import derive
from slinky_operator.slurm.pods.exit_messages import stuck

KEEPS: Final = "slurmdbd goes on with its earlier configuration"


def trial(view: View, wanted: stored.Contents, template: Mapping[str, Any] | None) -> Trial:
    """Check for the outcome of the trial of a slurmdbd.conf, or start it.

    Parameters
    ----------
    wanted
        What the Secrets are to hold.
    template
        Spec of slurmdbd's next pod; `None` if nothing is to be tried.
    """
    tried = None if template is None else _needed(view.snapshot, wanted, template)
    if tried is None:
        return Trial(Stage.PASSED, "", leftovers(view.snapshot))
    return engine.follow(view, tried, _RULES)


def leftovers(snapshot: Snapshot) -> tuple[Remove, ...]:
    """Pods and ConfigMaps of all such trials."""
    return engine.leftovers(snapshot, pods.SLURMDBD_CONF)


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


def _of_end(end: Mapping[str, Any]) -> tuple[Outcome, str]:
    """What the end of the container says."""
    code = end.get("exitCode")
    if code == 0:
        return Outcome.PASSED, ""
    said = problems.last_word(end)
    if code == REFUSED:
        return Outcome.REFUSED, said
    return Outcome.UNDECIDED, f"its image has no slurmdbd that can be run: {said}" if code == UNTRIED else said


_RULES: Final = Rules(
    kind=pods.SLURMDBD_CONF,
    words="",
    result=lambda verdict: engine.remembered(verdict, "its trial gave no result and is repeated: "),
    denied=lambda why: Remembered(Stage.STUCK, f"the pod of its trial cannot be created: {why}", TRY_AGAIN, keeps=True),
    read=engine.read_daemon(naming.ACCOUNTING_CONTAINER, _of_end, lambda _: problems.PULLING),
    watched=_watched,
)
