"""When Slurm's reservations are looked at, and what a Cluster shows and reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from slinky_operator.cluster.parts.maintenance.part import AGAIN_AFTER, LOOK_EVERY, PACE
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from tests.unit.cluster.parts.maintenance.worlds import NIGHT, NODES, asked, events, node, show, world
from tests.unit.cluster.world import World

ON = datetime.fromisoformat("2026-11-28T03:00:00Z")


def answered(one: World) -> Reserved:
    found = one.memory.answers.of(ReservationsQuestion)
    assert found is not None
    return found


def note(one: World, answer: Reserved) -> None:
    one.memory.answers.note(ReservationsQuestion, replace(answer, at=one.now))


def test_without_windows_nothing_is_asked_or_shown() -> None:
    one = world()
    assert asked(one) is None
    assert "maintenance" not in one.raw["status"]
    assert not [each for each in one.raw["status"]["conditions"] if "aintenance" in each["type"]]


def test_slurm_is_asked_again_for_a_reason_and_otherwise_now_and_then() -> None:
    one = world(NIGHT)
    assert asked(one) is not None
    one.settle()
    assert asked(one) is None
    show(one, (*NODES, node("a-2", "a")))
    one.now = answered(one).at + PACE
    assert asked(one) is not None
    one.settle()
    one.now = answered(one).at + LOOK_EVERY - 0.1
    assert asked(one) is None
    one.now = answered(one).at + LOOK_EVERY
    assert asked(one) is not None


def test_nodes_that_come_and_go_fast_are_batched() -> None:
    one = world(NIGHT)
    one.settle()
    one.now = answered(one).at + PACE / 2
    show(one, (*NODES, node("a-2", "a")))
    assert asked(one) is None
    wake_up = one.plan().wake_up
    assert wake_up is not None
    assert wake_up <= PACE / 2


def test_what_failed_is_tried_again_and_told() -> None:
    one = world(NIGHT)
    one.settle()
    good = answered(one)
    (name,) = good.there
    for wrong, status, reason, words in (
        ({"why": "no answer"}, "Unknown", "SlurmUnreachable", "no answer"),
        ({"refused": {name: "nodes busy"}, "there": frozenset()}, "False", "ReservationRefused", "nodes busy"),
        ({"taken": (name,), "there": frozenset()}, "False", "ReservationTaken", f"changed {name}"),
        ({"not_supported": True, "there": frozenset()}, "False", "ReservationNotSupported", f"ReservationName={name} "),
        ({"there": frozenset()}, "False", "ReservationPending", name),
    ):
        note(one, replace(good, **wrong))
        one.step()
        found = one.condition("MaintenanceReserved")
        assert (found["status"], found["reason"]) == (status, reason)
        assert words in found["message"]
    degraded = one.condition("Degraded")["reason"]
    assert degraded == "AsExpected"
    note(one, replace(good, refused={name: "nodes busy"}))
    one.step()
    assert one.condition("Degraded")["reason"] == "ReservationRefused"
    one.now = answered(one).at + AGAIN_AFTER
    assert asked(one) is not None


def test_nothing_is_asked_while_slurm_does_not_answer_and_what_was_known_stays() -> None:
    one = world(NIGHT)
    one.settle()
    before = one.condition("MaintenanceReserved")
    assert before["status"] == "True"
    slurm = one.slurm
    one.slurm = None
    assert asked(one) is None
    one.step()
    assert one.condition("MaintenanceReserved")["status"] == "True"
    # An operator that has just started has no answer yet.
    one.slurm = slurm
    one.memory.answers.note(ReservationsQuestion, None)
    made = one.plan()
    assert made.status is not None
    assert {each.type: each.status for each in made.status.conditions}["MaintenanceReserved"] == "True"


def test_a_window_shows_on_the_cluster_and_its_begin_and_end_are_reported_once() -> None:
    one = world(NIGHT)
    one.settle()
    assert one.raw["status"]["maintenance"]["next"] == "night 2026-11-29T02:00:00Z"
    assert one.condition("InMaintenance")["status"] == "False"
    one.wall = ON + timedelta(days=1)
    assert events(one) == [("MaintenanceBegun", "maintenance window night has begun, and ends at 2026-11-29T06:00:00Z")]
    one.settle()
    assert events(one) == []
    assert one.raw["status"]["maintenance"]["next"] == "night until 2026-11-29T06:00:00Z"
    assert one.condition("InMaintenance")["reason"] == "MaintenanceWindow"
    assert one.raw["status"]["summary"] == "Running, maintenance night until 2026-11-29T06:00:00Z"
    one.wall += timedelta(hours=3)
    assert events(one) == [("MaintenanceEnded", "maintenance window night is over: its time is up")]
    one.settle()
    assert events(one) == []
    assert one.condition("InMaintenance")["status"] == "False"


def test_a_window_that_is_removed_while_it_is_on_ends_at_once() -> None:
    one = world(NIGHT, now=ON)
    one.settle()
    assert one.condition("InMaintenance")["status"] == "True"
    one.raw = {**one.raw, "spec": {}}
    assert events(one) == [("MaintenanceEnded", "maintenance window night is over: its window was changed or removed")]
    one.now += PACE
    question = asked(one)
    assert question is not None
    assert question.wanted == ()
    # Until Slurm has answered the status remembers that there may be reservations: an operator may die now.
    one.memory.answers.note(ReservationsQuestion, None)
    made = one.plan()
    assert made.status is not None
    assert made.status.maintenance is not None
    note(one, Reserved(0.0, (), refused={"slurm-operator-night-x-1": "busy"}))
    one.step()
    assert "maintenance" in one.raw["status"]
    note(one, Reserved(0.0, ()))
    one.step()
    assert "maintenance" not in one.raw["status"]
    assert asked(one) is None


def test_wrong_windows_are_told_by_field_and_others_are_kept() -> None:
    one = world({**NIGHT, "duration": "25h"}, {**NIGHT, "name": "other", "nodeSets": ["a", "nobody"]})
    one.settle()
    found = one.condition("MaintenanceReserved")
    assert found["reason"] == "WindowInvalid"
    assert "spec.maintenance.windows[0] (night): it starts again" in found["message"]
    assert (
        "spec.maintenance.windows[1] (other): nodeSets has no NodeSet of this Cluster named nobody" in found["message"]
    )
    assert [each.name.split("-")[2] for each in answered(one).wanted] == ["other"]


def test_a_window_that_was_released_early_says_so() -> None:
    one = world({**NIGHT, "holdUpdates": True, "releaseEarly": True}, now=ON)
    one.settle()
    assert one.condition("InMaintenance")["status"] == "True"
    for each in one.node_sets.values():
        each["metadata"]["generation"] = 1
        counts = dict.fromkeys(("desired", "replicas", "updatedReplicas", "readyReplicas"), 1)
        each["status"] = {"observedGeneration": 1, **counts}
    assert events(one) == [
        ("MaintenanceEnded", "maintenance window night is over: no update is left, its nodes run jobs again")
    ]
    one.settle()
    assert one.raw["status"]["maintenance"]["windows"][0]["released"]
    found = one.condition("InMaintenance")
    assert (found["status"], found["message"]) == ("False", "night has ended early, its updates are done")
    # Another update, and the nodes are free of jobs again.
    one.node_sets["a"]["metadata"]["generation"] = 2
    assert [reason for reason, _ in events(one)] == ["MaintenanceBegun"]
    one.settle()
    assert one.condition("InMaintenance")["status"] == "True"


def test_a_pass_is_due_when_a_window_begins() -> None:
    one = world(NIGHT, now=datetime.fromisoformat("2026-11-28T01:59:50Z"))
    one.settle()
    wake_up = one.plan().wake_up
    assert wake_up is not None
    assert wake_up <= 10
