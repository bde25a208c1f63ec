"""Whether the volumes of slurmctld's state and of MariaDB have room, by the words of the agents beside them. Pure.

From when on room is little is decided in `slurm.volumes.room`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.volumes.room import LOOKED_AT, Room, Volumes, is_low

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
