"""The part of the plan about jobs: whether slurmctld, with a copy of them, ends any by a new configuration. Pure.

Only where the rules say that a change takes away what jobs may refer to (`in_use.touched`), and there are jobs. A
disposable slurmctld then starts with a copy of the live state beside the preflight (`trials.jobs_pod`), and
the change waits for the jobs that would end, be requeued, or be forgotten.

Where the state cannot be copied (it is in an emptyDir, no second pod may mount its claim, or its image has no
`squeue`), the rules alone guard the jobs; an Event says that the change goes on without a trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.parts.slurmctld.manifests import claim_name
from slinky_operator.cluster.rollout.in_use.parameters import users
from slinky_operator.cluster.rollout.preflight import attempts
from slinky_operator.cluster.trials import engine, pods, problems
from slinky_operator.cluster.trials.engine import TRY_AGAIN, Remembered, Rules, Stage, Trial
from slinky_operator.cluster.trials.jobs_pod import GONE, jobs_trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.scripts import NOT_COPIED, REFUSED
from slinky_operator.cluster.trials.state_pod import READING
from slinky_operator.cluster.view import View
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import LONGEST, short

AGAIN: Final = 60.0
"""Seconds until a change that would end jobs is tried again."""

HOLDS: Final = 30.0
"""Seconds for which a trial without harm holds: new jobs are submitted all the time."""

UNTRIED_HOLDS: Final = 300.0
"""Seconds for which it holds that there can be no trial."""

PATIENCE: Final = timedelta(seconds=2 * READING + 60)
"""How long the pod may take."""

WOULD_END: Final = "it would end "
"""First words of a verdict about jobs."""

MOST_BYTES: Final = 900_000
"""Characters of the files of both configurations: the API server accepts ConfigMaps of 1 MiB."""

_WAITING: Final = frozenset(("PENDING", "CONFIGURING"))
_STARTED: Final = frozenset(("RUNNING", "SUSPENDED", "STOPPED"))


@dataclass(frozen=True, slots=True)
class Harm:
    """What becomes of a job that has not ended."""

    job: int
    before: str
    after: str


def harmed(message: str) -> tuple[Harm, ...]:
    """Jobs that would end, be requeued or be forgotten, from the message of the trial's container."""
    rows = [line.split() for line in message.splitlines()[1:]]
    found = [Harm(int(row[0]), *row[1:]) for row in rows if len(row) == 3 and row[0].isascii() and row[0].isdigit()]  # noqa: PLR2004 - as the script writes them
    return tuple(
        one
        for one in found
        if (one.before in _STARTED and one.after not in _STARTED)
        or (one.before in _WAITING and one.after not in _WAITING | _STARTED)
    )


def trial(view: View, live: Mapping[str, str], files: Mapping[str, str]) -> Trial:
    """Check for the outcome of the trial of a configuration with a copy of the jobs, or start it.

    Parameters
    ----------
    live
        The files that slurmctld runs.
    files
        The new configuration.

    Returns
    -------
    Trial
        Passed with a message if there can be no trial: why. Stuck while jobs would end; refused if slurmctld ends with
        the nodes and jobs there are.
    """
    snapshot = view.snapshot
    running = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    node = ((snapshot.pods.controller or {}).get("spec") or {}).get("nodeName") or ""
    claim = claim_name(snapshot)
    if running is None or not node or not claim or not slurmctld_pod.keeps_state(running["spec"]["template"]):
        return Trial(Stage.PASSED, "", engine.leftovers(snapshot, pods.JOBS))
    if sum(map(len, (*live.values(), *files.values()))) > MOST_BYTES:
        why = "the files of both configurations are too large for a ConfigMap"
        return Trial(Stage.PASSED, _untried(why), engine.leftovers(snapshot, pods.JOBS))
    spec = running["spec"]["template"]["spec"]
    tried = jobs_trial(TrialInput(snapshot.cluster, view.images, files, spec, spec, claim, node), live)
    # The result of an earlier change from and to the same files is about the jobs of that time.
    loaded = snapshot.memory.rollout.loaded
    return engine.follow(view, tried, _rules(tried, -math.inf if loaded is None else loaded.at))


def would_end(found: Trial) -> bool:
    """Whether a trial waits for jobs that would end."""
    return found.message.startswith(WOULD_END)


def _rules(tried: TrialObjects, since: float) -> Rules:
    return Rules(
        kind=pods.JOBS,
        words="slurmctld tries it with a copy of its jobs",
        result=_remembered,
        denied=lambda why: Remembered(
            Stage.STUCK, f"the pod that tries it with a copy of the jobs cannot be created: {why}", TRY_AGAIN
        ),
        read=engine.read_daemon(
            naming.CONTROLLER_CONTAINER, lambda end: _of_end(end, tried), lambda _: PATIENCE, on_one_node=True
        ),
        since=since,
        expires=HOLDS,
    )


def _remembered(verdict: Verdict) -> Remembered:
    if verdict.outcome is Outcome.REFUSED:
        would = verdict.why.startswith(WOULD_END)
        return Remembered(Stage.STUCK if would else Stage.REFUSED, verdict.why, AGAIN)
    holds = HOLDS if verdict.outcome is Outcome.PASSED else UNTRIED_HOLDS
    return Remembered(Stage.PASSED, _untried(verdict.why), holds, keeps=True)


def _untried(why: str) -> str:
    return f"the configuration is applied without a trial with a copy of the jobs: {why}"[:LONGEST] if why else ""


def _of_end(end: Mapping[str, Any], tried: TrialObjects) -> tuple[Outcome, str]:
    """What the end of the container says."""
    code, message = end.get("exitCode"), str(end.get("message") or "")
    if not code:
        return _of_jobs(harmed(message))
    if code == REFUSED:
        words = attempts.refusal(message, tried) or "no word"
        return Outcome.REFUSED, f"slurmctld refuses it with the nodes and jobs there are: {words}"
    why = message if code == NOT_COPIED else problems.not_started(end) or short(message)
    return Outcome.UNDECIDED, (why or str(end.get("reason") or code))[:LONGEST]


def _of_jobs(harm: tuple[Harm, ...]) -> tuple[Outcome, str]:
    if not harm:
        return Outcome.PASSED, ""
    first = harm[0]
    becomes = "is forgotten" if first.after == GONE else f"becomes {first.after}"
    words = f"{WOULD_END}{users([one.job for one in harm], ())}: with a copy of its state, slurmctld says that"
    return Outcome.REFUSED, f"{words} job {first.job}, {first.before}, {becomes}"
