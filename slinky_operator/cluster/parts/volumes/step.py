"""Step about volumes: ask the agents how much room they have. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.volumes.room import Volumes, is_low

ASK_EVERY: Final = 30.0
"""Seconds between two questions to a pod."""

ASK_EVERY_WHILE_LOW: Final = 10.0
"""The same while a volume has little room, or has not been looked at yet."""

ASK_EVERY_WHILE_SILENT: Final = 60.0
"""The same while its agent does not answer, which holds up a pass for seconds each time."""


def ask_volumes(state: PassState) -> Iterator[Action]:
    """Ask each agent whose last answer is old enough."""
    snapshot = state.snapshot
    for pod in pods(snapshot):
        last, due = snapshot.memory.answers.of(VolumesQuestion, pod["metadata"]["name"]), 0.0
        if last is not None and last.pod_uid == pod["metadata"]["uid"]:
            due = last.asked_at + _pause(last) - state.now
        if due <= 0:
            yield Ask(VolumesQuestion(pod))
        state.wake_up(due if due > 0 else ASK_EVERY_WHILE_LOW)


def _pause(last: Volumes) -> float:
    """Seconds until a pod is asked again."""
    if last.why:
        return ASK_EVERY_WHILE_SILENT
    calm = not last.silent and not any(is_low(room, was_low=False) for room in last.rooms.values())
    return ASK_EVERY if calm else ASK_EVERY_WHILE_LOW


def pods(snapshot: Snapshot) -> Iterator[Object]:
    """Pods with an agent that looks at volumes and can be asked."""
    database = snapshot.pods.daemons.get(naming.COMPONENT_DATABASE, ())
    for pod in (snapshot.pods.controller, *database):
        if pod is not None and (pod.get("status") or {}).get("podIP") and volumes.of_pod(pod) and _is_up(pod):
            yield pod


def _is_up(pod: Object) -> bool:
    """Whether the agent in a pod runs, as far as its kubelet says."""
    statuses = pod["status"].get("containerStatuses") or ()
    return all(one.get("ready") for one in statuses if one.get("name") == naming.AGENT_CONTAINER)
