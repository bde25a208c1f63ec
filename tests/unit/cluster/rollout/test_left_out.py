"""A slurmd kind that cannot be tried blocks nothing else, and is named; running ones are not put at risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.conditions import PodCondition
from slinky_operator.cluster.actions import EmitEvent, ExcludeSlurmdKinds, StartPreflight
from tests.unit.cluster.rollout_stories import PARTITION, settled, until
from tests.unit.cluster.world import WALL, World, node_set_object

PRIVILEGED = {"template": {"spec": {"containers": [{"name": "slurmd", "securityContext": {"privileged": True}}]}}}
LONG_AGO = "2025-01-01T00:00:00Z"

TROUBLES: dict[str, dict[str, Any]] = {
    "no image": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
    "refused by the kubelet": {"waiting": {"reason": "CreateContainerConfigError", "message": "will run as root"}},
    "no shell": {"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: /bin/sh: no such file"}},
    "no slurmd": {"terminated": {"exitCode": 3, "reason": "Error", "message": "slurmd: not found"}},
    "a slow pull": {"waiting": {"reason": "ContainerCreating"}},
}


def slurmds(pod: dict[str, Any]) -> list[str]:
    return [one["image"] for one in pod["spec"]["containers"][1:]]


def show(world: World, image: str, state: dict[str, Any], *, begun: str = LONG_AGO) -> None:
    """Let slurmctld and the other slurmds of the preflight be up, and that of one image be in a state."""
    pod = next(reversed(world.preflights.values()))
    statuses = [{"name": "slurmctld", "state": {"running": {"startedAt": begun}}}]
    statuses += [
        {"name": f"slurmd-{number}", "state": state if one == image else {"terminated": {"exitCode": 0}}}
        for number, one in enumerate(slurmds(pod))
    ]
    pod["status"] = {"phase": "Running", "containerStatuses": statuses}


def running_pod(
    name: str, image: str, registered: Sequence[str] = (PodCondition.REGISTERED,), node: str = "n1"
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {labels.LABEL_NODESET_NAME: "old"}},
        "spec": {"nodeName": node, "containers": [{"name": "slurmd", "image": image}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": one, "status": "True"} for one in ("Ready", *registered)],
        },
    }


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_cannot_be_tried_for_reasons_of_its_own_is_left_out_and_named(trouble: str) -> None:
    world = settled(None, node_set_object("good"), node_set_object("bad", {"image": "nowhere:1"}))
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    show(world, "nowhere:1", TROUBLES[trouble])
    until(world, ExcludeSlurmdKinds)
    world.step()
    assert slurmds(until(world, StartPreflight).preflight.pod.body) == ["slurmd:1"]
    for _ in range(15):
        world.step()
    assert "night" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ConfigUntried")
    assert degraded["message"].startswith("NodeSet bad: ")
    assert "image nowhere:1: " in degraded["message"]
    told = [one for one in world.log if isinstance(one, EmitEvent) and one.reason == "ConfigUntried"]
    assert [one.obj["metadata"]["name"] for one in told] == ["bad"]


def test_a_pull_that_has_just_begun_is_waited_for() -> None:
    world = settled(None, node_set_object("good"), node_set_object("bad", {"image": "nowhere:1"}))
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    show(world, "nowhere:1", TROUBLES["a slow pull"], begun=WALL.isoformat())
    assert not any(isinstance(one, ExcludeSlurmdKinds) for one in world.plan().actions)


def left_out(trouble: str = "no image") -> World:
    world = settled(None, node_set_object("good"), node_set_object("bad", {"image": "nowhere:1"}))
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    show(world, "nowhere:1", TROUBLES[trouble])
    until(world, ExcludeSlurmdKinds)
    for _ in range(15):
        world.step()
    assert world.condition("Degraded")["status"] == "True"
    return world


def test_it_is_tried_again_beside_the_rest_and_counts_once_its_image_is_there() -> None:
    world = left_out()
    assert not any(isinstance(one, StartPreflight) for one in world.plan().actions), "not at once"
    world.now += 70
    wanted = until(world, StartPreflight).preflight
    assert slurmds(wanted.pod.body) == ["nowhere:1"]
    world.step()
    show(world, "nowhere:1", {"waiting": {"reason": "ContainerCreating"}})
    for _ in range(3):
        world.step()
    assert world.condition("ConfigApplied")["status"] == "True"
    show(world, "nowhere:1", {"terminated": {"exitCode": 0}})
    for _ in range(3):
        world.step()
    assert world.condition("Degraded")["status"] == "False"
    assert not world.preflights


def test_it_is_tried_more_and_more_seldom() -> None:
    world = left_out()
    gaps = []
    for _ in range(4):
        before = world.now
        while not world.preflights:
            world.now += 5
            world.step()
        gaps.append(world.now - before)
        show(world, "nowhere:1", TROUBLES["no image"])
        world.step()
        world.step()
    assert gaps == sorted(gaps)
    assert gaps[-1] > 300


def test_a_change_is_not_held_up_by_what_is_tried_beside_it() -> None:
    world = left_out()
    world.now += 70
    until(world, StartPreflight)
    world.step()
    world.raw["spec"] = {"extraConf": "KillWait=5"}
    for _ in range(15):
        world.step()
    assert "KillWait=5" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_slurmd_that_runs_is_tried_though_its_nodeset_asks_for_another_by_now() -> None:
    world = settled(None, node_set_object("old", {"image": "new:2"}))
    world.running = [running_pod("old-0", "slurmd:1")]
    world.raw["spec"] = PARTITION
    assert slurmds(until(world, StartPreflight).preflight.pod.body) == ["slurmd:1", "new:2"]


def test_a_pod_that_never_came_to_slurm_puts_nothing_at_risk() -> None:
    world = settled(None, node_set_object("good"), node_set_object("bad", {"image": "nowhere:1"}))
    world.running = [running_pod("bad-0", "nowhere:1", ())]
    world.raw["spec"] = {"extraConf": "KillWait=5"}
    until(world, StartPreflight)
    world.step()
    show(world, "nowhere:1", TROUBLES["no shell"])
    for _ in range(15):
        world.step()
    assert "KillWait=5" in world.slurm_conf


def at_risk(trouble: str = "no image") -> World:
    """A NodeSet whose pod runs, and whose image the preflight's Node does not get."""
    world = settled(None, node_set_object("old", {"image": "gone:1"}))
    world.running = [running_pod("old-0", "gone:1")]
    world.raw["spec"] = {"extraConf": "KillWait=5"}
    until(world, StartPreflight)
    world.step()
    show(world, "gone:1", TROUBLES[trouble])
    until(world, ExcludeSlurmdKinds)
    world.step()
    return world


def test_a_slurmd_that_runs_is_tried_on_its_own_node_before_a_change_reaches_it() -> None:
    world = at_risk()
    for _ in range(2):
        world.step()
    pod = until(world, StartPreflight).preflight.pod.body
    assert slurmds(pod) == ["gone:1"]
    term = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]
    assert {one["imagePullPolicy"] for one in pod["spec"]["containers"]} == {"IfNotPresent"}
    assert "KillWait=5" not in world.slurm_conf
    for _ in range(6):
        world.step()
    assert "KillWait=5" in world.slurm_conf


def blocked(trouble: str = "no shell") -> World:
    world = at_risk(trouble)
    while not any("affinity" in one["spec"] for one in world.preflights.values()):
        world.step()
    show(world, "gone:1", TROUBLES[trouble])
    for _ in range(6):
        world.step()
    return world


def test_what_could_end_a_running_slurmd_waits_where_it_can_be_tried_nowhere() -> None:
    world = blocked()
    assert "KillWait=5" not in world.slurm_conf
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ConfigUntried")
    assert "NodeSet old" in degraded["message"]
    assert "no such file" in degraded["message"]
    world.running = []
    for _ in range(15):
        world.step()
    assert "KillWait=5" in world.slurm_conf, "once none of them runs"


def test_partitions_and_nodesets_come_and_go_all_the_same() -> None:
    world = blocked()
    world.raw["spec"] = {}
    world.step()
    world.add(node_set_object("more"))
    for _ in range(12):
        world.step()
    assert world.raw["status"]["config"]["nodeSets"] == ["more", "old"]
    assert world.condition("ConfigApplied")["status"] == "True"
    assert world.condition("Degraded")["reason"] == "ConfigUntried"


def test_a_slurmd_that_hangs_where_others_take_the_files_is_left_out() -> None:
    world = settled(None, node_set_object("good"), node_set_object("bad", {"image": "nowhere:1"}))
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    show(world, "nowhere:1", {"terminated": {"exitCode": 2, "message": "slurmd: waiting for a device"}})
    assert "waiting for a device" in str(until(world, ExcludeSlurmdKinds).left_out)


def test_its_pull_secrets_come_along() -> None:
    template = {"spec": {"imagePullSecrets": [{"name": "mine"}]}}
    world = settled(None, node_set_object("one", {"template": template}))
    world.raw["spec"] = PARTITION
    assert until(world, StartPreflight).preflight.pod.body["spec"]["imagePullSecrets"] == [{"name": "mine"}]


def test_each_slurmd_can_be_asked_for_alone() -> None:
    world = settled(None, node_set_object("good"), node_set_object("bad", PRIVILEGED))
    world.raw["spec"] = PARTITION
    start = until(world, StartPreflight)
    assert start.alone is not None
    assert slurmds(start.alone) == []
    assert [len(slurmds(one)) for one in start.parts.values()] == [1, 1]
