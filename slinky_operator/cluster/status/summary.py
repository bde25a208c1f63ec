"""The status text of a Cluster, as `kubectl get` shows it: trouble, else what is in progress, else success. Pure.

It names one thing, in a few words that do not change with the clock; the conditions have the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Condition
from slinky_operator.cluster.status.answers import Answers
from slinky_operator.reconcile.text import cut, named

LONGEST: Final = 100
"""Maximum characters of the whole text."""

RUNNING: Final = "Running"

_AWAY: Final[Mapping[Reason, str]] = {
    Reason.CONTROLLER_DOWN: "slurmctld does not answer",
    Reason.SLURM_UNREACHABLE: "slurmrestd does not answer",
    Reason.UNAUTHORIZED: "token refused by Slurm",
    Reason.UNSUPPORTED_VERSION: "version of Slurm not supported",
    Reason.CONNECTING: "Connecting",
    Reason.DAEMONS_STARTING: "Starting",
    Reason.KEY_PENDING: "Connecting",
}
"""Why Slurm does not serve."""

_TROUBLE: Final[Mapping[Reason, str]] = {
    Reason.KEY_LOST: "key lost",
    Reason.KEY_CHANGED: "key changed",
    Reason.SECRET_NOT_FOUND: "Secret missing",
    Reason.SECRET_KEY_NOT_FOUND: "key missing in Secret",
    Reason.SECRET_INVALID: "Secret cannot be used",
    Reason.SECRET_NOT_ALLOWED: "Secret not meant for this server",
    Reason.TOO_MANY_CLUSTERS: "too many Clusters with server in this namespace",
    Reason.CHILD_REFUSED: "an object cannot be written",
    Reason.CONFIG_REFUSED: "configuration refused",
    Reason.CONFIG_ROLLED_BACK: "configuration rolled back",
    Reason.CONFIG_UNTRIED: "configuration cannot be tried",
    Reason.CONFIG_SOURCE_NOT_FOUND: "ConfigMap missing",
    Reason.CLAIM_REFUSED: "claim cannot be changed",
    Reason.UPGRADE_REFUSED: "upgrade refused",
    Reason.REPLACEMENT_HELD_BACK: "new slurmctld pod held back",
    Reason.INVALID_SPEC: "spec invalid",
}
"""Troubles that need somebody's help."""

_UNDER_WAY: Final[Mapping[Reason, str]] = {
    Reason.CONFIG_PENDING: "applying configuration",
    Reason.PARTITION_IN_USE: "change waits for jobs",
    Reason.NODES_IN_USE: "change waits for jobs",
    Reason.GRES_IN_USE: "change waits for jobs",
    Reason.WAITING_FOR_JOBS: "change waits for jobs",
    Reason.KEY_PENDING: "loading changed key",
    Reason.DAEMONS_STARTING: "trying new slurmctld pod",
    Reason.CLAIM_GROWING: "a claim grows",
    Reason.UPGRADING: "upgrading",
}


def summary(cluster: Cluster, answers: Answers, conditions: Sequence[Condition], left: int) -> str:
    """Build the status text.

    Parameters
    ----------
    conditions
        The new conditions.
    left
        How many slurmd pods there are.
    """
    if cluster.deleting:
        deleting = find(conditions, ClusterCondition.DELETING)
        changed = deleting is not None and deleting.reason == Reason.APPLIED_WHILE_DELETING
        waits = f", {left} slurmd {'pod' if left == 1 else 'pods'} left" if left else ""
        if deleting is not None and deleting.reason == Reason.NODES_IN_USE:
            waits = ", jobs outside Kubernetes"
        return f"Deleting{waits}{'; apply it again afterwards' if changed else ''}"
    ready = find(conditions, ClusterCondition.READY)
    if ready is not None and ready.status != "True":
        return cut(_away(Reason(ready.reason), answers), LONGEST)
    found = _blocks(answers) or answers.remark or _goes_on(conditions)
    return cut(f"{RUNNING}, {found}" if found else RUNNING, LONGEST)


def _away(reason: Reason, answers: Answers) -> str:
    if answers.stuck and reason not in _TROUBLE:
        return named([f"{one.daemon}: {one.reason}" for one in answers.stuck])
    return _AWAY.get(reason) or _TROUBLE.get(reason) or str(reason)


def _blocks(answers: Answers) -> str:
    """The trouble that needs somebody's help while Slurm serves."""
    reason = next((one.reason for one in answers.problems if one.in_summary), None)
    if reason is not None:
        return _TROUBLE.get(reason, str(reason))
    stuck = [f"{one.daemon}: {one.reason}" for one in answers.stuck if not one.passing]
    if stuck:
        return named(stuck)
    return next((one.local for one in answers.problems if one.local), "")


def _goes_on(conditions: Sequence[Condition]) -> str:
    progressing, degraded = (find(conditions, one) for one in (ClusterCondition.PROGRESSING, ClusterCondition.DEGRADED))
    if progressing is not None and progressing.status == "True":
        return _UNDER_WAY.get(Reason(progressing.reason), "")
    return "fields without effect" if degraded is not None and degraded.reason == Reason.NOT_SUPPORTED else ""
