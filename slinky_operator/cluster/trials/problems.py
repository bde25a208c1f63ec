"""What the pod of a trial shows about its end, or about why there is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.exit_messages import LONGEST, ended, held_up, short, stuck

PULLING: Final = timedelta(seconds=540)
"""How long a pod may take while the image is being pulled whose daemon is tried."""

UNSCHEDULED: Final = timedelta(seconds=20)
"""How long a pod may find no place on the one Node that it is for: only the end of other pods will change that."""

_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun", "ContainerStatusUnknown"})


def ended_ago(pod: Object, container: str, wall: datetime) -> float:
    """Seconds since a container has ended; 0 while it runs."""
    end = str((ended(pod).get(container) or {}).get("finishedAt") or "")
    return max(0.0, (wall - datetime.fromisoformat(end)).total_seconds()) if end else 0.0


def age(pod: Object, wall: datetime) -> timedelta:
    """How long a pod has existed."""
    return wall - datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def has_no_place(pod: Object, wall: datetime) -> bool:
    """Whether a pod is still without a Node after `UNSCHEDULED`."""
    return not (pod.get("spec") or {}).get("nodeName") and age(pod, wall) > UNSCHEDULED


def failed(pod: Object, otherwise: str = "its pod was removed") -> str:
    """Why a pod has ended without the end of its container: evicted, too slow; empty if it has not failed.

    Parameters
    ----------
    otherwise
        What is said if nobody says why.
    """
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return ""
    return str(status.get("message") or status.get("reason") or otherwise)


def given_up(pod: Object, wall: datetime, patience: timedelta, *, on_one_node: bool = False) -> str:
    """Why a pod is not waited for any longer: it has failed, has no place, or takes too long; empty if it is."""
    why, took = failed(pod), age(pod, wall)
    if why or (took <= patience and not (on_one_node and has_no_place(pod, wall))):
        return why
    return stuck(pod) or f"its pod has not ended in {(took if on_one_node else patience).seconds} s"


def pulls_slurmctld(pod: Object) -> bool:
    """Whether a pod has a Node, and slurmctld's container is neither started nor failing."""
    status = pod.get("status") or {}
    for one in status.get("containerStatuses") or ():
        if one["name"] == naming.CONTROLLER_CONTAINER:
            return bool((one.get("state") or {}).get("waiting")) and not held_up(one)
    return False


def not_started(end: Mapping[str, Any]) -> str:
    """Why a container could not be started; empty if it could."""
    if end.get("reason") not in _NOT_STARTED:
        return ""
    return f"its container cannot be started: {end.get('message') or end['reason']}"[:LONGEST]


def last_word(end: Mapping[str, Any]) -> str:
    """What a container that has ended says, or what the kubelet says of it."""
    return not_started(end) or short(end.get("message") or "") or end.get("reason") or "no word"
