"""The condition about a slurmctld that waited for itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.parts.slurmctld import part as hang
from slinky_operator.reconcile.text import stamp
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.controller_process import HUNG
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

KIND = "ControllerHung"


def ended(world: World, code: int = HUNG, *, ago: timedelta = timedelta(0), state: str = "lastState") -> None:
    """Let slurmctld's container have ended."""
    assert world.controller_pod is not None
    when = stamp(world.wall - ago)
    status: dict[str, Any] = {"name": naming.CONTROLLER_CONTAINER, "restartCount": 1}
    status[state] = {"terminated": {"exitCode": code, "finishedAt": when}}
    world.controller_pod["status"]["containerStatuses"] = [{"name": "agent"}, status]


def told(world: World) -> list[EmitEvent]:
    world.settle()
    return [one for one in world.log if isinstance(one, EmitEvent) and one.reason == "WaitedForItself"]


def conditions(world: World) -> dict[str, Any]:
    return {one["type"]: one for one in world.raw["status"]["conditions"]}


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_a_slurmctld_that_was_ended_is_told_once_and_for_an_hour(state: str) -> None:
    world = settled()
    assert KIND not in conditions(world)
    ended(world, state=state)
    (event,) = told(world)
    found = conditions(world)[KIND]
    assert (found["status"], found["reason"]) == ("True", "WaitedForItself")
    assert f"its container was ended at {stamp(world.wall)}" in found["message"]
    assert "spec.accounting" in found["message"]
    assert event.message == found["message"]
    assert told(world) == []
    world.wall += hang.REPORTED
    assert told(world) == []
    assert KIND not in conditions(world)


@pytest.mark.parametrize("code", [0, 1, 137])
def test_any_other_end_is_not_told(code: int) -> None:
    world = settled()
    ended(world, code)
    assert told(world) == []
    assert KIND not in conditions(world)


def test_an_end_without_a_time_is_not_told() -> None:
    assert not hang.words(
        {"status": {"containerStatuses": [{"name": "slurmctld", "lastState": {"terminated": {"exitCode": HUNG}}}]}},
        settled().wall,
    )
    assert not hang.words(None, settled().wall)
