"""slurmctld's pod does not end while the volume of its state is full: it could not save what the next one reads."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import Action, Ask
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.parts.slurmctld.pod import ANNOTATION_RESTART
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.rollout.preflight import running_release
from slinky_operator.cluster.rollout.preflight.state_room import FRESH
from slinky_operator.slurm.pods.volume_room import Room, Volumes
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

KEEPS = {"controller": {"persistence": {"enabled": True}}}
FULL, ROOM = Room(1000, 5, 1000, 900), Room(1000, 500, 1000, 900)
NO_INODES = Room(1000, 500, 1000, 5)


def watched(spec: dict[str, Any], room: Room) -> World:
    """A Cluster at rest whose agent looks at the volume of slurmctld's state."""
    world = settled(spec)
    assert world.controller_pod is not None
    world.controller_pod["metadata"].setdefault("annotations", {})[volumes.ANNOTATION] = volumes.STATE
    world.settle()
    fill(world, room)
    return world


def fill(world: World, room: Room) -> None:
    """Fill the volume, or empty it, longer ago than an answer counts."""
    world.rooms["slurmctld"] = room
    world.now += FRESH + 1


def edited(world: World) -> World:
    """slurmctld is to have another pod."""
    controller = {**world.raw["spec"].get("controller", {}), "resources": {"requests": {"cpu": "2"}}}
    world.raw["spec"] = {**world.raw["spec"], "controller": controller}
    return live(world, steps=12)


def live(world: World, steps: int) -> World:
    for _ in range(steps):
        world.now += 2
        world.step()
    return world


def template(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]
    return found


def has_two_cpus(world: World) -> bool:
    containers: list[dict[str, Any]] = template(world)["spec"]["containers"]
    return any(one.get("resources", {}).get("requests") == {"cpu": "2"} for one in containers)


@pytest.mark.parametrize("room", [FULL, NO_INODES])
def test_an_edit_waits_for_room(room: Room) -> None:
    world = edited(watched(KEEPS, room))
    assert not has_two_cpus(world)
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReplacementHeldBack")
    left = "0% of its 1000 inodes left" if room is NO_INODES else "0% of 0 MiB left"
    assert degraded["message"].startswith(f"slurmctld's pod stays as it is: the volume of slurmctld has {left}, so ")
    assert "the next one would forget jobs. Enlarge spec.controller.persistence.size" in degraded["message"]
    fill(world, ROOM)
    assert has_two_cpus(live(world, steps=12))


def test_the_release_of_an_image_that_waits_is_not_noted_for_the_one_that_runs() -> None:
    world = watched(KEEPS, FULL)
    world.raw["spec"] = {"controller": {**KEEPS["controller"], "image": "slurmctld:mine"}}
    world.version = "slurm 26.05.5"

    def noted() -> str | None:
        live(world, steps=20)
        metadata = world.children["StatefulSet", "slurm-controller"]["metadata"]
        found: str | None = (metadata.get("annotations") or {}).get(running_release.ANNOTATION)
        return found

    assert noted() is None
    assert world.condition("Degraded")["reason"] == "ReplacementHeldBack"
    fill(world, ROOM)
    assert noted() == "26.05.5"


def test_what_was_seen_a_while_ago_is_asked_again_before_the_pod_ends() -> None:
    world = watched(KEEPS, ROOM)
    world.settle()
    last = world.memory.answers.of(VolumesQuestion, "slurm-controller-0")
    assert last is not None and not last.rooms["slurmctld"].is_full  # noqa: PT018 - one thing
    fill(world, FULL)
    assert not has_two_cpus(edited(world))


def test_an_agent_that_does_not_answer_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = watched(KEEPS, FULL)

    happen = world.happen

    def silent(action: Action) -> None:
        if isinstance(action, Ask) and isinstance(action.question, VolumesQuestion):
            pod = action.question.pod["metadata"]
            world.memory.answers.note(VolumesQuestion, Volumes(pod["uid"], world.now, why="refused"), pod["name"])
        else:
            happen(action)

    monkeypatch.setattr(world, "happen", silent)
    assert has_two_cpus(edited(world))


def test_state_that_ends_with_the_pod_or_that_nobody_reads_again_needs_no_room() -> None:
    lost_anyway = watched({"controller": {"persistence": {"enabled": False}}}, FULL)
    assert has_two_cpus(edited(lost_anyway))
    moved = watched({"controller": {"persistence": {"enabled": True, "existingClaim": "small"}}}, FULL)
    moved.raw["spec"] = {"controller": {"persistence": {"enabled": True, "existingClaim": "larger"}}}
    claims = [one.get("persistentVolumeClaim") for one in template(live(moved, steps=12))["spec"]["volumes"]]
    assert {"claimName": "larger"} in claims


def test_keys_that_are_read_at_start_wait_for_room_too() -> None:
    world = watched(KEEPS, FULL)
    notes = template(world)["metadata"]["annotations"]
    notes[ANNOTATION_RESTART] = "before"
    live(world, steps=6)
    assert template(world)["metadata"]["annotations"][ANNOTATION_RESTART] == "before"
    assert world.condition("Degraded")["reason"] == "ReplacementHeldBack"
    fill(world, ROOM)
    live(world, steps=12)
    assert template(world)["metadata"]["annotations"][ANNOTATION_RESTART] != "before"
