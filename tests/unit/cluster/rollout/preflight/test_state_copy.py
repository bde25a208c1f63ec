"""slurmctld of another image starts with a copy of the state before it may replace the running one."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, EndPreflight, StartPreflight
from slinky_operator.cluster.memory.rollout import Outcome
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.trials.scripts import NOT_COPIED
from tests.unit.cluster.rollout_stories import settled, until
from tests.unit.cluster.world import WALL, World

NEXT = {"controller": {"image": "mine:2"}}
LONG_AGO = "2025-01-01T00:00:00Z"
REFUSAL = "slurmctld: fatal: Can not recover job state, incompatible version, got 11264 need >= 10240 <= 10752"
UNSCHEDULED = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        }
    ],
}


def running(spec: dict[str, Any] | None = None) -> World:
    """A Cluster whose slurmctld runs on a Node."""
    world = settled(spec)
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-1"}
    return world


def image(world: World) -> str:
    containers = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]["spec"]["containers"]
    return next(str(one["image"]) for one in containers if one["name"] == "slurmctld")


def tried(world: World) -> StartPreflight:
    """Go on until the trial of the state begins; its pod says nothing yet."""
    for _ in range(20):
        started: StartPreflight = until(world, StartPreflight)
        if is_of_state(started):
            return started
        world.step()
    raise AssertionError("no trial of the state")


def is_of_state(started: StartPreflight) -> bool:
    return "-preflight-t" in started.preflight.name


def show(world: World, status: dict[str, Any], created: str = WALL.isoformat(), node: str = "node-1") -> None:
    pod = next(one for name, one in world.preflights.items() if "-preflight-t" in name)
    pod["status"], pod["metadata"]["creationTimestamp"] = status, created
    pod["spec"]["nodeName"] = node


def end(world: World, code: int, message: str = "", **more: Any) -> None:
    """Let the trial of the state end, and the plan see it."""
    tried(world)
    world.step()
    ended = {"exitCode": code, "message": message, **more}
    phase = "Failed" if code else "Succeeded"
    show(world, {"phase": phase, "containerStatuses": [{"name": "slurmctld", "state": {"terminated": ended}}]})


def started(log: list[Any]) -> list[StartPreflight]:
    return [one for one in log if isinstance(one, StartPreflight) and is_of_state(one)]


def told(world: World) -> list[str]:
    """What Events say of upgrades without a trial."""
    return [one.message for one in world.log if isinstance(one, EmitEvent) and one.reason == "StateNotTried"]


def test_another_image_reads_a_copy_of_the_state_before_it_replaces_the_running_one() -> None:
    world = running()
    world.raw["spec"] = NEXT
    made = tried(world).preflight
    assert image(world) == "slurmctld:1"
    spec = made.pod.body["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "mine:2"
    claim = {"claimName": "state-slurm-controller-0", "readOnly": True}
    assert [one["persistentVolumeClaim"] for one in spec["volumes"] if "persistentVolumeClaim" in one] == [claim]
    assert {"name": "state", "mountPath": "/live-state", "readOnly": True} in container["volumeMounts"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    world.settle()
    assert image(world) == "mine:2"
    assert not world.preflights
    assert not told(world)


def test_it_has_no_key_and_does_not_change_the_owners_of_the_live_files() -> None:
    world = running()
    world.raw["spec"] = {"controller": {**NEXT["controller"], "template": {"spec": {"priorityClassName": "urgent"}}}}
    spec = tried(world).preflight.pod.body["spec"]
    assert not any("secret" in one or "projected" in one for one in spec["volumes"])
    assert "fsGroup" not in spec["securityContext"]
    assert spec["securityContext"]["supplementalGroups"] == [64030]
    # Of the running pod's priority: a claim for one pod alone is never taken from it.
    assert "priorityClassName" not in spec
    assert spec["restartPolicy"] == "Never"


def test_what_its_slurmctld_refuses_keeps_the_running_one() -> None:
    world = running()
    world.raw["spec"] = NEXT
    end(world, 1, REFUSAL)
    world.settle()
    assert image(world) == "slurmctld:1"
    shown = world.condition("Degraded")
    assert (shown["status"], shown["reason"]) == ("True", "ReplacementHeldBack")
    assert shown["message"].startswith(
        "slurmctld's pod stays as it is: one that follows spec.controller.image does not start with a copy of "
        "slurmctld's state: slurmctld: fatal: Can not recover job state, incompatible version"
    )
    # The pod that has started without state stays, for an operator that has to begin from the start.
    assert not [name for name in world.preflights if "-preflight-t" in name]
    # slurmctld writes its state all the time: a later copy may be better.
    assert not started(world.settle())
    world.now += 301
    assert started(world.settle())
    assert image(world) == "mine:2"
    assert world.condition("Degraded")["status"] == "False"


def test_another_image_is_tried_at_once_after_a_refusal() -> None:
    world = running()
    world.raw["spec"] = NEXT
    end(world, 1, REFUSAL)
    world.settle()
    world.raw["spec"] = {"controller": {"image": "mine:3"}}
    world.settle()
    assert image(world) == "mine:3"


@pytest.mark.parametrize(
    ("code", "message", "more", "words"),
    [
        (1, "slurmctld: fatal: was ended by signal 11", {}, "was ended by signal 11"),
        (137, "", {"reason": "OOMKilled"}, "killed for want of memory"),
        (3, "sh: slurmctld: not found", {}, "not found"),
    ],
)
def test_a_slurmctld_that_ends_with_the_state_is_refused(
    code: int, message: str, more: dict[str, Any], words: str
) -> None:
    world = running()
    world.raw["spec"] = NEXT
    end(world, code, message, **more)
    found = until(world, EndPreflight)
    assert found.verdict.outcome is Outcome.REFUSED
    world.settle()
    assert image(world) == "slurmctld:1"
    assert words in world.condition("Degraded")["message"]


@pytest.mark.parametrize(
    ("status", "created", "node", "words"),
    [
        (UNSCHEDULED, LONG_AGO, "", "ReadWriteOncePod access mode"),
        ({"phase": "Pending"}, LONG_AGO, "node-1", "its pod has not ended"),
        ({"phase": "Failed", "message": "Pod was evicted"}, WALL.isoformat(), "node-1", "Pod was evicted"),
    ],
)
def test_a_state_that_cannot_be_copied_is_told_and_holds_nothing_up(
    status: dict[str, Any], created: str, node: str, words: str
) -> None:
    world = running()
    world.raw["spec"] = NEXT
    tried(world)
    world.step()
    show(world, status, created, node)
    world.settle()
    assert image(world) == "mine:2"
    (said,) = told(world)
    assert said.startswith("slurmctld gets mine:2 without a trial on a copy of its state: ")
    assert words in said
    assert not world.preflights


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (NOT_COPIED, "it has 2048 MiB, and at most 1024 are copied", "it has 2048 MiB"),
        (2, "slurmctld: still reading", "neither runs nor ends: still reading"),
    ],
)
def test_a_state_that_is_too_large_is_told_and_holds_nothing_up(code: int, message: str, words: str) -> None:
    world = running()
    world.raw["spec"] = NEXT
    end(world, code, message)
    world.settle()
    assert image(world) == "mine:2"
    (said,) = told(world)
    assert words in said


def test_a_pod_that_the_api_server_refuses_holds_nothing_up() -> None:
    world = running()
    world.raw["spec"] = NEXT
    made = tried(world).preflight
    world.preflights.clear()
    world.memory.writes.denied[made.pod.key] = Denied(made.pod.digest, "no second pod with this claim", world.now)
    world.settle()
    assert image(world) == "mine:2"
    assert "no second pod with this claim" in told(world)[0]


def test_a_pod_that_waits_for_a_moment_is_waited_for() -> None:
    world = running()
    world.raw["spec"] = NEXT
    tried(world)
    world.step()
    show(world, UNSCHEDULED, node="")
    for _ in range(4):
        world.step()
    assert image(world) == "slurmctld:1"
    shown = world.condition("Progressing")
    assert "slurmctld of its image reads a copy of the state" in shown["message"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Nothing of its image changes.
        ({}, {"controller": {"template": {"metadata": {"annotations": {"example.com/now": "yes"}}}}}),
        # The state is not the one that the next pod finds.
        (
            {"controller": {"persistence": {"existingClaim": "old"}}},
            {"controller": {"image": "mine:2", "persistence": {"existingClaim": "new"}}},
        ),
        # It ends with the pod.
        (
            {"controller": {"persistence": {"enabled": False}}},
            {"controller": {"image": "mine:2", "persistence": {"enabled": False}}},
        ),
    ],
)
def test_nothing_is_copied_where_there_is_nothing_to_find_out(before: dict[str, Any], after: dict[str, Any]) -> None:
    world = running(before)
    world.raw["spec"] = after
    assert not started(world.settle())


def test_slurmctld_without_a_node_has_no_state_to_copy() -> None:
    world = settled()
    world.raw["spec"] = NEXT
    assert not started(world.settle())
    assert image(world) == "mine:2"


def test_the_pod_goes_when_slurmctld_moves_or_the_image_is_taken_back() -> None:
    world = running()
    world.raw["spec"] = NEXT
    tried(world)
    world.step()
    show(world, {"phase": "Running"})
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-2"}
    again = tried(world).preflight
    assert [name for name in world.preflights if "-preflight-t" in name] in ([], [again.name])
    world.step()
    show(world, {"phase": "Running"})
    world.raw["spec"] = {}
    world.settle()
    assert not world.preflights
    assert image(world) == "slurmctld:1"
