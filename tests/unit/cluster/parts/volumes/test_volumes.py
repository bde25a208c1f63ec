"""The condition about volumes that are nearly full, and when their agents are asked."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, asks
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods.volume_room import LOOKED_AT, Room, Volumes
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

KIND = "VolumesHaveRoom"
MIB = 2**20


def watched(spec: dict[str, Any] | None = None) -> World:
    """A Cluster whose pods have agents that look at volumes."""
    world = settled(spec)
    assert world.controller_pod is not None
    world.controller_pod["metadata"].setdefault("annotations", {})[volumes.ANNOTATION] = volumes.STATE
    about = {"name": "slurm-database-0", "uid": "db", "annotations": {volumes.ANNOTATION: volumes.DATABASE}}
    pod = {"metadata": about, "status": {"podIP": "10.0.0.9"}}
    world.daemon_pods = {**world.daemon_pods, naming.COMPONENT_DATABASE: (pod,)}
    world.settle()
    return world


def told(world: World) -> tuple[str, str]:
    found = world.condition(KIND)
    return found["status"], found["reason"]


def with_room(world: World, share: float, *, inodes: float = 1.0, seconds: float = 31) -> list[EmitEvent]:
    """Let slurmctld's volume have so much room, and return the Events that follow."""
    world.rooms["slurmctld"] = Room(1000 * MIB, int(1000 * MIB * share), 1000, int(1000 * inodes))
    world.now += seconds
    world.settle()
    return [one for one in world.log if isinstance(one, EmitEvent)]


def test_a_volume_is_told_before_it_is_full_and_once() -> None:
    world = watched()
    assert told(world) == ("True", "AsExpected")
    assert with_room(world, 0.11) == []
    (event,) = with_room(world, 0.08)
    assert told(world) == ("False", "VolumeNearlyFull")
    assert world.condition(KIND)["message"] == (
        "The volume of slurmctld has 8% of 1000 MiB left. When it is full, slurmctld refuses new jobs with an I/O "
        "error and saves no state: a restart loses what happened since. Running jobs go on. Enlarge "
        "spec.controller.persistence.size"
    )
    assert event.message == world.condition(KIND)["message"]
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "VolumeNearlyFull")
    assert world.condition("Ready")["status"] == "True"
    # A job that ends makes room for one that starts.
    for share in (0.12, 0.09, 0.14, 0.1):
        assert with_room(world, share) == []
        assert told(world) == ("False", "VolumeNearlyFull")
    assert [one.reason for one in with_room(world, 0.0)] == ["VolumeFull"]
    assert with_room(world, 0.5)
    assert told(world) == ("True", "AsExpected")
    assert world.condition("Degraded")["status"] == "False"


def test_inodes_count_as_bytes_do() -> None:
    world = watched()
    with_room(world, 0.9, inodes=0.02)
    assert told(world) == ("False", "VolumeNearlyFull")
    assert "has 2% of its 1000 inodes left" in world.condition(KIND)["message"]
    # A file system without a fixed number of inodes says 0.
    world.rooms["slurmctld"] = Room(1000, 900, 0, 0)
    world.now += 31
    world.settle()
    assert told(world) == ("True", "AsExpected")


def test_the_database_has_a_volume_too() -> None:
    world = watched()
    world.rooms["MariaDB"] = Room(1000 * MIB, 10 * MIB, 0, 0)
    world.now += 31
    world.settle()
    message = world.condition(KIND)["message"]
    assert message.startswith(
        "The volume of MariaDB has 1% of 1000 MiB left. When it is full, MariaDB records nothing "
    )
    assert "spec.accounting.mariadb.persistence.size" in message


def test_agents_are_asked_seldom_and_more_often_while_there_is_little_room() -> None:
    world = watched()

    def asked(seconds: float) -> int:
        world.now += seconds
        return len([one for one in world.settle() if asks(one, VolumesQuestion)])

    assert [asked(seconds) for seconds in (0, 5, 26, 0)] == [0, 0, 2, 0]
    world.rooms["slurmctld"] = Room(100, 5, 0, 0)
    assert [asked(seconds) for seconds in (31, 5, 6)] == [2, 0, 1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"why": "the agent cannot be asked for it: timeout"}, "The volume of slurmctld: the agent cannot be asked"),
        ({"silent": {"slurmctld": "its file system does not answer"}}, "slurmctld: its file system does not answer"),
    ],
)
def test_a_volume_of_which_nothing_is_known_is_told(answer: dict[str, object], words: str) -> None:
    world = watched()
    assert world.controller_pod is not None
    pod = world.controller_pod["metadata"]
    answered = Volumes(pod["uid"], world.now, **answer)  # type: ignore[arg-type]
    world.memory.answers.note(VolumesQuestion, answered, pod["name"])
    world.settle()
    assert told(world) == ("Unknown", "VolumeSilent")
    assert words in world.condition(KIND)["message"]
    assert world.condition("Degraded")["status"] == "False"


def test_a_volume_that_is_being_looked_at_is_no_trouble() -> None:
    """The agent of a new pod has not seen it yet: nothing is wrong that an Event should tell."""
    world = watched()
    assert world.controller_pod is not None
    pod = world.controller_pod["metadata"]
    looked_at = Volumes(pod["uid"], world.now, silent={"slurmctld": LOOKED_AT})
    world.memory.answers.note(VolumesQuestion, looked_at, pod["name"])
    before = told(world)
    world.settle()
    assert told(world) == before == ("True", "AsExpected")
    world.raw["status"]["conditions"] = [one for one in world.raw["status"]["conditions"] if one["type"] != KIND]
    world.memory.answers.note(VolumesQuestion, looked_at, pod["name"])
    assert not [one for one in world.settle() if isinstance(one, EmitEvent)]
    assert told(world) == ("Unknown", "Connecting")


def test_an_agent_that_does_not_run_is_not_asked_and_one_that_is_silent_seldom() -> None:
    world = watched()
    world.daemon_pods = {}
    assert world.controller_pod is not None
    status, name = world.controller_pod["status"], world.controller_pod["metadata"]["name"]

    def asked(seconds: float) -> int:
        world.now += seconds
        return len([one for one in world.settle() if asks(one, VolumesQuestion)])

    status["containerStatuses"] = [{"name": "agent", "ready": False}]
    assert asked(31) == 0
    status["containerStatuses"] = [{"name": "agent", "ready": True}]
    assert asked(0) == 1
    silent = Volumes(world.controller_pod["metadata"]["uid"], world.now, why="timeout")
    world.memory.answers.note(VolumesQuestion, silent, name)
    assert [asked(seconds) for seconds in (31, 30)] == [0, 1]


def test_an_operator_that_has_just_started_keeps_what_was_known() -> None:
    world = watched()
    with_room(world, 0.08)
    before = world.condition(KIND)
    world.memory = Memory(world.memory.uid)
    world.rooms["slurmctld"] = Room(1000 * MIB, 120 * MIB, 0, 0)
    world.settle()
    assert world.condition(KIND)["status"] == before["status"]


def test_a_pod_of_an_earlier_version_is_not_asked() -> None:
    world = watched()
    assert world.controller_pod is not None
    del world.controller_pod["metadata"]["annotations"][volumes.ANNOTATION]
    world.daemon_pods = {}
    world.memory = Memory(world.memory.uid)
    world.now += 31
    assert not [one for one in world.settle() if asks(one, VolumesQuestion)]
    assert KIND not in {one["type"] for one in world.raw["status"]["conditions"]}
