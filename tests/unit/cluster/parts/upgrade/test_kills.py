"""An operator that is killed right after each of its writes still brings an upgrade to its end."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

from slinky_operator.cluster.actions import Remove, StartPreflight, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.rollout.preflight.state_copy import HOLDS
from tests.unit.cluster.parts.upgrade.test_order import CONTROLLER, DATABASE, RESTAPI, image, images, ready, running
from tests.unit.cluster.rollout.preflight.test_jobs_copy import MARK, closed
from tests.unit.cluster.world import World

MOST_WRITES = 150
WORKLOADS = (DATABASE, CONTROLLER, RESTAPI)


def with_kills(world: World, tag: str) -> Counter[str]:
    """Go on until all daemons have their images, with a new operator after each write; returns trials by kind."""
    trials: Counter[str] = Counter()
    for _ in range(MOST_WRITES):
        if all(image(world, key).endswith(tag) for key in WORKLOADS) and not world.preflights:
            return trials
        before = copy.deepcopy({key: obj["spec"] for key, obj in world.children.items() if key in WORKLOADS})
        written = first_write(world)
        for key, spec in before.items():
            if world.children[key]["spec"] != spec:
                ready(world, key)
                if key == CONTROLLER and world.slurm is not None:
                    world.slurm = replace(world.slurm, slurm_version=tag)
        if isinstance(written, StartPreflight):
            trials[written.preflight.name.split("-preflight-")[1][0]] += 1
        # Whatever it remembered is lost.
        world.memory = Memory("cluster-uid")
    raise AssertionError(f"no end after {MOST_WRITES} writes: {[image(world, key) for key in WORKLOADS]}, {trials}")


def first_write(world: World) -> object:
    """Pass after pass, until one writes: what it would have done after that does not happen."""
    for _ in range(40):
        status = copy.deepcopy(world.raw.get("status"))
        made = world.plan()
        world.memory.keys.known, world.memory.keys.troubled = made.keys.known, made.keys.troubled
        for action in made.actions:
            world.happen(action)
            if isinstance(action, (Write, Remove, StartPreflight)):
                return action
        if made.status is not None:
            world.raw = {**world.raw, "status": made.status.to_dict()}
        world.now += 0.5
        if world.raw.get("status") != status:
            return "status"
    return None


def test_every_trial_of_an_upgrade_is_made_once_however_often_the_operator_is_killed() -> None:
    world = running()
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-1"}
    world.raw = {**world.raw, "spec": images("26.05.5")}
    world.version = "slurm 26.05.5"
    trials = with_kills(world, "26.05.5")
    # Of the state, of the pod without it, and of the releases, which are asked for each step.
    assert trials["t"] == 1
    assert trials["r"] == 1


def test_a_result_that_an_earlier_operator_has_left_does_not_hold_longer_for_that() -> None:
    world = running()
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-1"}
    world.raw = {**world.raw, "spec": images("26.05.5")}
    world.version = "slurm 26.05.5"
    states: list[str] = []
    for _ in range(MOST_WRITES):
        written = first_write(world)
        world.memory = Memory("cluster-uid")
        ready(world, DATABASE)
        if isinstance(written, StartPreflight) and "-preflight-t" in written.preflight.name:
            states.append(written.preflight.name)
            if len(states) == 1:
                # It ended long before the next operator saw it.
                (container,) = world.preflights[states[0]]["status"]["containerStatuses"]
                container["state"]["terminated"]["finishedAt"] = f"2025-12-31T{23 - int(HOLDS // 3600):02}:59:00Z"
        if image(world, CONTROLLER).endswith("26.05.5"):
            break
    assert len(states) == 2


def test_a_configuration_is_tried_once_however_often_the_operator_is_killed() -> None:
    world = running()
    world.raw = {**world.raw, "spec": {**images("24.11.5"), "extraConf": "MaxArraySize=5"}}
    world.tried = []
    for _ in range(MOST_WRITES):
        written = first_write(world)
        world.memory = Memory("cluster-uid")
        if written is None:
            break
    assert "MaxArraySize=5" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"
    assert len(world.tried) == 1
    assert not world.preflights


def test_so_is_one_that_touches_jobs_with_a_copy_of_them() -> None:
    world = closed()
    trials = 0
    for _ in range(MOST_WRITES):
        written = first_write(world)
        trials += isinstance(written, StartPreflight) and MARK in written.preflight.name
        world.memory = Memory("cluster-uid")
        if written is None and "PartitionName=night" not in world.slurm_conf:
            break
    assert "PartitionName=night" not in world.slurm_conf
    assert trials == 1
    assert not world.preflights
