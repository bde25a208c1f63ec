"""The part about volumes: asks the agents how much room they have, and shows it. Pure.

From when on room is little is decided in `slurm.pods.volume_room`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.volume_room import LOOKED_AT, Room, Volumes, is_low

Word = Literal["True", "False", "Unknown"]

_EFFECTS: Final = {
    volumes.STATE: "When it is full, slurmctld refuses new jobs with an I/O error and saves no state: a restart loses "
    "what happened since. Running jobs go on. Enlarge spec.controller.persistence.size",
    volumes.DATABASE: "When it is full, MariaDB records nothing and may end; slurmctld keeps records in its own state "
    "until there is room. Running jobs go on. Enlarge spec.accounting.mariadb.persistence.size, or let slurmdbd purge "
    "old records",
}


def of_volumes(snapshot: Snapshot) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `VolumesHaveRoom`; `None` where no agent looks at a volume."""
    before = find(snapshot.cluster.status.conditions, ClusterCondition.VOLUMES_HAVE_ROOM)
    answers = [(pod, snapshot.memory.answers.of(VolumesQuestion, pod["metadata"]["name"])) for pod in _pods(snapshot)]
    if not answers:
        return None
    rooms: dict[str, Room] = {}
    silent: dict[str, str] = {}
    for pod, answer in answers:
        if answer is None or answer.pod_uid != pod["metadata"]["uid"] or LOOKED_AT in answer.silent.values():
            if before is not None and before.status != "Unknown":
                # An operator that has just started, or a pod that is new, knows nothing yet.
                return before.status, Reason(before.reason), before.message
            return "Unknown", Reason.CONNECTING, "the agents have not looked at the volumes yet"
        rooms |= answer.rooms
        silent |= _silent(pod, answer)
    was = before.message if before is not None and before.status == "False" else ""
    low = {name: room for name, room in rooms.items() if is_low(room, was_low=_named(name) in was)}
    if low:
        full = any(room.is_full for room in low.values())
        words = ". ".join(f"{_named(name)} has {room.left()}. {_EFFECTS[name]}" for name, room in sorted(low.items()))
        return "False", Reason.VOLUME_FULL if full else Reason.VOLUME_NEARLY_FULL, words
    if silent:
        words = "; ".join(f"{_named(name)}: {why}" for name, why in sorted(silent.items()))
        return "Unknown", Reason.VOLUME_SILENT, f"Nothing is known of a volume. {words}"
    return "True", Reason.AS_EXPECTED, ""


def _pods(snapshot: Snapshot) -> list[Object]:
    database = snapshot.pods.daemons.get(naming.COMPONENT_DATABASE, ())
    found = (snapshot.pods.controller, *database)
    return [pod for pod in found if pod is not None and volumes.of_pod(pod)]


def _silent(pod: Object, answer: Volumes) -> Mapping[str, str]:
    return dict.fromkeys(volumes.of_pod(pod), answer.why) if answer.why else answer.silent


def _named(name: str) -> str:
    return f"The volume of {name}"


class VolumesPart(Part):
    """Whether volumes have room."""

    name = "volumes"
    condition = ClusterCondition.VOLUMES_HAVE_ROOM
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_volumes(state.snapshot)


VOLUMES: Final = VolumesPart()


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
