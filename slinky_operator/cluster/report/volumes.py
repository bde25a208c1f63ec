"""Whether the volumes of slurmctld's state and of MariaDB have room, by the words of the agents beside them. Pure.

A volume is reported before it is full, and until it has clearly more room: a job that ends and one that starts must
not write an Event each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.components.shared import volumes
from slinky_operator.cluster.memory import LOOKED_AT, Room, Volumes
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming

Word = Literal["True", "False", "Unknown"]

LOW: Final = 0.10
"""Share of bytes or inodes below which a volume has little room."""

ENOUGH: Final = 0.15
"""Share from which it has room again."""

FULL: Final = 0.01
"""Share below which it counts as full."""

_EFFECTS: Final = {
    volumes.STATE: "When it is full, slurmctld refuses new jobs with an I/O error and saves no state: a restart loses "
    "what happened since. Running jobs go on. Enlarge spec.controller.persistence.size",
    volumes.DATABASE: "When it is full, MariaDB records nothing and may end; slurmctld keeps records in its own state "
    "until there is room. Running jobs go on. Enlarge spec.accounting.mariadb.persistence.size, or let slurmdbd purge "
    "old records",
}
_MIB: Final = 2**20


def is_low(room: Room, *, was_low: bool) -> bool:
    """Whether a volume has little room; one that had little has it until there is clearly more."""
    return _share(room) < (ENOUGH if was_low else LOW)


def of_volumes(snapshot: Snapshot) -> tuple[Word, Reason, str] | None:
    """Status, reason and message of `VolumesHaveRoom`; `None` where no agent looks at a volume."""
    before = find(snapshot.cluster.status.conditions, ClusterCondition.VOLUMES_HAVE_ROOM)
    answers = [(pod, snapshot.memory.volumes.get(pod["metadata"]["name"])) for pod in _pods(snapshot)]
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
        full = any(_share(room) < FULL for room in low.values())
        words = ". ".join(f"{_named(name)} {_left(room)}. {_EFFECTS[name]}" for name, room in sorted(low.items()))
        return "False", Reason.VOLUME_FULL if full else Reason.VOLUME_NEARLY_FULL, words
    if silent:
        words = "; ".join(f"{_named(name)}: {why}" for name, why in sorted(silent.items()))
        return "Unknown", Reason.VOLUME_SILENT, f"Nothing is known of a volume. {words}"
    return "True", Reason.AS_EXPECTED, ""


def _pods(snapshot: Snapshot) -> list[Object]:
    database = snapshot.daemon_pods.get(naming.COMPONENT_DATABASE, ())
    found = (snapshot.controller_pod, *database)
    return [pod for pod in found if pod is not None and volumes.of_pod(pod)]


def _silent(pod: Object, answer: Volumes) -> Mapping[str, str]:
    return dict.fromkeys(volumes.of_pod(pod), answer.why) if answer.why else answer.silent


def _share(room: Room) -> float:
    return min(room.share_of_bytes, room.share_of_inodes)


def _named(name: str) -> str:
    return f"The volume of {name}"


def _left(room: Room) -> str:
    if room.share_of_inodes < room.share_of_bytes:
        return f"has {int(100 * room.share_of_inodes)}% of its inodes left ({room.inodes_free} of {room.inodes})"
    return f"has {int(100 * room.share_of_bytes)}% of {room.size // _MIB} MiB left"
