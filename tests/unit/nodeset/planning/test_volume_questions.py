"""Which job log servers are asked about their volumes: few at a time, at a pace that falls with the number of pods."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from slinky_api.v1alpha1.common import Condition
from slinky_operator.nodeset.model.pods.output_room import RoomSeen, volume_of
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.planning.volume_questions import ASK_EVERY, MOST, MOST_LOW, due_in, questions
from slinky_operator.slurm.pods.volume_room import Room
from tests.unit.nodeset.builders import NOW, a_pod, nodeset

HALF, LITTLE = Room(100, 50, 0, 0), Room(100, 5, 0, 0)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def pods(count: int, claim: str | None = "") -> tuple[Pod, ...]:
    return tuple(
        a_pod(name=f"a-{number}", uid=f"u{number}", ordinal=number, address="10.0.0.1", output_claim=claim)
        for number in range(count)
    )


def seen(pod: Pod, seconds: float, room: Room | None = HALF) -> RoomSeen:
    return RoomSeen(pod.name, ago(seconds), room, is_low=room is LITTLE)


def snapshot(of: tuple[Pod, ...], rooms: dict[str, RoomSeen] | None = None, in_sight: int = 0) -> Any:
    return SimpleNamespace(pods=of, rooms=rooms or {}, pods_in_sight=in_sight, nodeset=nodeset())


def test_a_server_is_asked_once_a_minute() -> None:
    (pod,) = pods(1)
    assert questions(snapshot((pod,)), NOW) == (pod,)
    assert questions(snapshot((pod,), {"u0": seen(pod, ASK_EVERY - 1)}), NOW) == ()
    assert due_in(snapshot((pod,), {"u0": seen(pod, ASK_EVERY - 10)}), NOW) == 10
    assert questions(snapshot((pod,), {"u0": seen(pod, ASK_EVERY)}), NOW) == (pod,)


def test_who_has_no_server_or_cannot_answer_is_not_asked() -> None:
    (pod,) = pods(1)
    for other in (
        a_pod(address="10.0.0.1"),
        a_pod(output_claim=""),
        a_pod(output_claim="", address="10.0.0.1", deleting=True),
        a_pod(output_claim="", address="10.0.0.1", slurmd=Slurmd.BETWEEN),
    ):
        assert questions(snapshot((other,)), NOW) == ()
        assert due_in(snapshot((other,)), NOW) is None
    assert volume_of(pod) == "u0"


def test_of_pods_with_one_claim_one_is_asked_and_another_one_each_time() -> None:
    shared = pods(3, "out")
    rooms: dict[str, RoomSeen] = {}
    asked = []
    for _ in range(4):
        (pod,) = questions(snapshot(shared, rooms), NOW)
        asked.append(pod.name)
        rooms["claim out"] = seen(pod, ASK_EVERY)
    assert asked == ["a-0", "a-1", "a-2", "a-0"]


def test_five_thousand_pods_cost_what_a_hundred_do() -> None:
    many = pods(5000)
    now, rooms, asked = NOW, dict[str, RoomSeen](), 0
    begun = now
    while len(rooms) < len(many):
        wanted = questions(snapshot(many, rooms, len(many)), now)
        assert len(wanted) <= MOST
        asked += len(wanted)
        rooms |= {pod.uid: RoomSeen(pod.name, now, HALF) for pod in wanted}
        pause = due_in(snapshot(many, rooms, len(many)), now)
        assert pause is not None
        now += timedelta(seconds=pause)
    assert asked == 5000
    assert 0.5 < asked / (now - begun).total_seconds() <= 2
    # And no faster afterwards, nor where a NodeSet is one of many.
    wanted = questions(snapshot(many, rooms, len(many)), now)
    assert len(wanted) <= MOST
    (pod,) = pods(1)
    assert questions(snapshot((pod,), {"u0": seen(pod, 600)}, 5000), NOW) == ()
    assert questions(snapshot((pod,), {"u0": seen(pod, 2500)}, 5000), NOW) == (pod,)


def test_little_room_is_looked_at_each_minute_for_a_few_volumes() -> None:
    many = pods(200)
    rooms = {pod.uid: seen(pod, ASK_EVERY, LITTLE) for pod in many}
    assert len(questions(snapshot(many, rooms, 5000), NOW)) == MOST_LOW


def test_volumes_of_the_stored_condition_come_first_after_a_start() -> None:
    many = pods(200)
    asked = snapshot(many, {}, 5000)
    message = "job-output of a-150 has 3% of 100 MiB left"
    stored = Condition(type="VolumesHaveRoom", status="False", reason="VolumeNearlyFull", message=message)
    status = asked.nodeset.status.model_copy(update={"conditions": (stored,)})
    asked.nodeset = asked.nodeset.model_copy(update={"status": status})
    assert questions(asked, NOW)[0].name == "a-150"
