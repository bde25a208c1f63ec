"""What a NodeSet shows of volumes with little room: condition, Degraded, Event, and what stays after a start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.pod_state import Ready
from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import status, trouble_events, volumes
from slinky_operator.slurm.pods.volume_room import LOOKED_AT, Room, Volumes
from slurm_client.models.node import NodeState
from tests.unit.nodeset.report.test_status import NOW, a_pod, nodeset, seen

KIND = "VolumesHaveRoom"
MIB = 2**20


def room(share: float) -> Room:
    return Room(1000 * MIB, int(1000 * MIB * share), 1000, 1000)


def served(number: int, claim: str = "") -> Pod:
    return replace(a_pod(number, "new"), address="10.0.0.1", output_claim=claim)


def answered(pod: Pod, share: float | None, before: RoomSeen | None = None, **answer: Any) -> RoomSeen:
    rooms = {} if share is None else {"job-output": room(share)}
    return output_room.seen(pod, Volumes(pod.uid, 0.0, rooms, **answer), before, frozenset(), NOW)


def with_rooms(snapshot: Snapshot, **rooms: RoomSeen) -> Snapshot:
    return replace(snapshot, rooms=rooms)


def reported(snapshot: Snapshot) -> status.Report:
    found = Decisions(Layout(len(snapshot.pods)), states={pod.name: Ready() for pod in snapshot.pods})
    return status.report(snapshot, found, NOW)


def told(snapshot: Snapshot) -> dict[str, Condition]:
    return {one.type: one for one in reported(snapshot).status.conditions}


def stored(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the status that it leads to, as the next pass sees it."""
    nodeset = snapshot.nodeset.model_copy(update={"status": reported(snapshot).status})
    return replace(snapshot, nodeset=nodeset)


def test_a_volume_with_little_room_is_told_and_its_nodes_serve() -> None:
    pods = served(0), served(1)
    found = told(with_rooms(seen(*pods), u0=answered(pods[0], 0.08), u1=answered(pods[1], 0.5)))
    assert (found[KIND].status, found[KIND].reason) == ("False", "VolumeNearlyFull")
    assert found[KIND].message == (
        "job-output of a-0 has 8% of 1000 MiB left. When it is full, what jobs write there is cut off, and jobs may "
        "fail with No space left on device. Remove old output, or enlarge the volume"
    )
    assert (found["Degraded"].status, found["Degraded"].reason) == ("True", "VolumeNearlyFull")
    assert (found["Ready"].status, found["Ready"].reason) == ("True", "AsExpected")
    assert found["Ready"].message == "2 of 2 nodes are ready"


def test_the_claim_is_named_and_many_are_cut() -> None:
    pods = tuple(served(number, f"out-{number}") for number in range(9))
    rooms = {f"claim out-{pod.ordinal}": answered(pod, 0.0 if pod.ordinal == 4 else 0.05) for pod in pods}
    found = reported(replace(seen(*pods), rooms=rooms)).status
    (condition,) = [one for one in found.conditions if one.type == KIND]
    assert condition.reason == "VolumeFull"
    assert condition.message.startswith("job-output of a-4 (claim out-4) has 0% of 1000 MiB left; job-output of a-0 (")
    assert "and 4 more. When it is full" in condition.message
    assert "job-output of a-4 (claim out-4) is full, and 8 more" in (found.summary or "")


def test_pods_with_one_claim_are_one_volume() -> None:
    pods = served(0, "out"), served(1, "out"), served(2, "out")
    found = told(replace(seen(*pods), rooms={"claim out": answered(pods[1], 0.05)}))
    assert found[KIND].message.startswith("job-output of a-0 and 2 more (claim out) has 5% of 1000 MiB left. ")


def test_a_volume_has_room_again_from_15_percent_on() -> None:
    pod, before, found = served(0), None, []
    for share in (0.11, 0.09, 0.14, 0.16, 0.14):
        before = answered(pod, share, before)
        found.append(told(with_rooms(seen(pod), u0=before))[KIND].status)
    assert found == ["True", "False", "False", "True", "True"]


def test_a_server_that_restarts_changes_nothing() -> None:
    pod = served(0)
    low = answered(pod, 0.05)
    again = answered(pod, None, low, why="the agent cannot be asked for it: refused")
    assert again == low
    assert answered(pod, None, None, why="it answered 400") == RoomSeen(pod.name, NOW)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("its file system does not answer", ("Unknown", "VolumeSilent")),
        (LOOKED_AT, ("Unknown", "Connecting")),
    ],
)
def test_what_is_not_known_is_told(said: str, expected: tuple[str, str]) -> None:
    pod = served(0)
    found = told(with_rooms(seen(pod), u0=answered(pod, None, silent={"job-output": said})))
    assert (found[KIND].status, found[KIND].reason) == expected
    assert found["Degraded"].status == "False"


def test_without_a_server_there_is_no_condition() -> None:
    assert KIND not in told(seen(a_pod(0)))


def test_disk_pressure_is_told_with_the_pods_it_threatens() -> None:
    snapshot = replace(seen(a_pod(0), a_pod(1)), hosts={"host": KubernetesNode("host", disk_pressure=True)})
    found = told(snapshot)
    assert (found[KIND].status, found[KIND].reason) == ("False", "NodeDiskPressure")
    assert found[KIND].message.startswith("kubelets report DiskPressure: Node host (pods a-0, a-1). slurmd's spool ")
    assert found["Ready"].status == "True"
    # Once it is over, nothing stays.
    after = replace(stored(snapshot), hosts={"host": KubernetesNode("host")})
    assert KIND not in told(after)
    assert told(after)["Degraded"].status == "False"


def test_a_node_whose_pod_was_evicted_is_told_until_it_has_one_again() -> None:
    owner = nodeset(scalingMode="DaemonSet", replicas=None, template={"spec": {"nodeSelector": {"slurm": "yes"}}})
    mine = KubernetesNode("a", labels={"slurm": "yes"}, disk_pressure=True)
    hosts = {"a": mine, "b": KubernetesNode("b", disk_pressure=True), "c": KubernetesNode("c")}
    snapshot = replace(seen(owner=owner), hosts=hosts)
    found = told(snapshot)
    assert found[KIND].message.startswith("kubelets report DiskPressure: Node a (no pod). ")
    assert KIND not in told(replace(snapshot, hosts={"a": KubernetesNode("a", labels={"slurm": "yes"})}))


def test_a_full_spool_is_told_in_the_words_of_slurm() -> None:
    snapshot = seen(a_pod(0), a_pod(1))
    record = snapshot.slurm.nodes["a-1"]
    drained = replace(
        record, state=NodeState.from_words(["IDLE", "DRAIN", "DYNAMIC_NORM"]), reason="SlurmdSpoolDir is full"
    )
    slurm = replace(snapshot.slurm, nodes={**snapshot.slurm.nodes, "a-1": drained})
    snapshot = replace(snapshot, slurm=slurm)
    found = told(snapshot)
    assert (found[KIND].status, found[KIND].reason) == ("False", "VolumeFull")
    assert found[KIND].message.startswith("slurmd's spool is full on a-1: Slurm has drained these nodes, and holds ")
    back = "SlurmdSpoolDir is full; make room there, then scontrol update NodeName=a-1 State=RESUME)"
    assert back in found["NodesOutOfService"].message
    assert reported(snapshot).troubles[0].names == {"a-1"}
    # With a full volume of output beside it, that is one trouble with two pods.
    (trouble,) = reported(with_rooms(replace(snapshot, pods=(served(0), a_pod(1))), u0=answered(served(0), 0))).troubles
    assert trouble.names == {"a-0", "a-1"}
    assert trouble.brief == "spool full on a-1; job-output of a-0 is full"
    resumed = replace(drained, state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]))
    slurm = replace(slurm, nodes={**slurm.nodes, "a-1": resumed})
    assert KIND not in told(replace(stored(snapshot), slurm=slurm))


def test_an_event_tells_of_it_once_and_of_further_pods() -> None:
    pods, memory = (served(0), served(1)), Memory()
    calm = with_rooms(seen(*pods), u0=answered(pods[0], 0.5), u1=answered(pods[1], 0.5))
    one = with_rooms(stored(calm), u0=answered(pods[0], 0.05), u1=answered(pods[1], 0.5))
    two = with_rooms(stored(one), u0=answered(pods[0], 0.05), u1=answered(pods[1], 0.05))

    def due(snapshot: Snapshot) -> list[Reason]:
        before = snapshot.nodeset.status
        return [trouble.reason for trouble in trouble_events.due(memory, before, reported(snapshot).troubles)]

    nearly = [Reason.VOLUME_NEARLY_FULL]
    assert [due(calm), due(one), due(stored(one)), due(two), due(stored(two))] == [[], nearly, [], nearly, []]


def test_what_was_told_stays_until_the_pod_was_asked_by_a_new_process() -> None:
    pods = served(0), served(1)
    before = stored(with_rooms(seen(*pods), u0=answered(pods[0], 0.05), u1=answered(pods[1], 0.5)))
    fresh = with_rooms(before)
    assert told(fresh)[KIND] == told(before)[KIND]
    assert told(with_rooms(before, u1=answered(pods[1], 0.5)))[KIND].status == "False"
    # The distance between the two thresholds counts across the start.
    was = output_room.named_in(before.nodeset.status)
    between = output_room.seen(pods[0], Volumes("u0", 0.0, {"job-output": room(0.12)}), None, was, NOW)
    assert told(with_rooms(before, u0=between))[KIND].status == "False"
    assert told(with_rooms(before, u0=answered(pods[0], 0.5)))[KIND].status == "True"
    # A pod that has gone keeps nobody waiting.
    assert volumes.told(replace(fresh, pods=(pods[1],))) == []


def test_what_is_kept_of_volumes_goes_with_their_pods() -> None:
    pods, memory = (served(0), served(1, "out")), Memory()
    memory.note_rooms({"u0": answered(pods[0], 0.5), "claim out": answered(pods[1], 0.5)}, pods)
    assert output_room.least(memory.rooms) == (0.5, 1.0)
    memory.note_rooms({}, pods[1:])
    assert set(memory.rooms) == {"claim out"}
    memory.note_rooms({}, ())
    assert output_room.least(memory.rooms) is None
