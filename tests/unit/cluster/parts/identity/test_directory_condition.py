"""The condition about a directory of users that SSSD cannot reach."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, asks
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.identity.question import Directory, DirectoryQuestion
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

SSSD = {"identity": {"sssd": {"confRef": {"name": "directory"}}}}
KIND = "DirectoryReachable"
SINCE = 1_767_225_600


def events(world: World) -> list[str]:
    return [f"{one.reason}: {one.message}" for one in world.log if isinstance(one, EmitEvent)]


def others(world: World) -> dict[str, Any]:
    return {one["type"]: one for one in world.raw["status"]["conditions"] if one["type"] != KIND}


def later(world: World) -> None:
    world.now += 31
    world.settle()


def test_a_directory_that_is_away_is_told_once_and_affects_nothing_else() -> None:
    world = settled(SSSD)
    assert world.condition(KIND)["status"] == "True"
    before = others(world)

    world.offline = {"site": SINCE}
    later(world)

    away = world.condition(KIND)
    assert (away["status"], away["reason"]) == ("False", "DirectoryAway")
    assert away["message"] == (
        "SSSD beside slurmctld: Backend is offline, domain site (since 2026-01-01T00:00:00Z). Users that SSSD knows "
        "stay known, others are not found; running jobs go on. The cause is in its log: kubectl -n here logs "
        "slurm-controller-0 -c sssd"
    )
    assert events(world) == [f"DirectoryAway: {away['message']}"]
    assert others(world) == before
    later(world)
    assert events(world) == []

    world.offline = {}
    later(world)
    assert world.condition(KIND)["status"] == "True"
    assert others(world) == before


@pytest.mark.parametrize("spec", [{}, {"identity": {"passwd": {"configMapRef": {"name": "people"}}}}])
def test_without_sssd_nobody_is_asked_and_nothing_is_said(spec: dict[str, Any]) -> None:
    world = settled(spec)
    world.now += 31
    log = world.settle()
    assert not [one for one in log if asks(one, DirectoryQuestion)]
    assert KIND not in {one["type"] for one in world.raw["status"]["conditions"]}


def test_it_is_asked_again_only_after_a_while() -> None:
    world = settled(SSSD)
    assert not [one for one in world.settle() if asks(one, DirectoryQuestion)]
    world.now += 31
    assert len([one for one in world.settle() if asks(one, DirectoryQuestion)]) == 1


def test_an_operator_that_has_just_started_keeps_what_was_known() -> None:
    world = settled(SSSD)
    world.offline = {"site": SINCE}
    later(world)
    known = world.condition(KIND)

    world.memory = Memory(world.memory.uid)
    world.step()

    assert world.condition(KIND) == known


def test_a_container_that_does_not_say_is_not_taken_for_one_that_reaches_it() -> None:
    world = settled(SSSD)
    assert world.controller_pod is not None
    why = "SSSD's container does not say whether it reaches the directory"
    world.memory.answers.note(DirectoryQuestion, Directory(world.controller_pod["metadata"]["uid"], world.now, why=why))
    world.step()
    told = world.condition(KIND)
    assert (told["status"], told["message"]) == ("Unknown", why)


def test_many_domains_are_counted() -> None:
    world = settled(SSSD)
    world.offline = {f"d{number:02}": SINCE for number in range(60)}
    later(world)
    assert len(world.condition(KIND)["message"]) < 1000
