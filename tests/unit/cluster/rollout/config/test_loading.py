"""How a running slurmctld loads a change, and what is rolled back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.cluster.actions import Reload, TouchPod, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.plan import plan
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import PARTITION, config_maps, settled, until
from tests.unit.cluster.world import ENVIRONMENT, WALL, World


def test_what_slurmctld_does_not_take_is_put_back_and_left_alone_until_it_changes() -> None:
    world = settled()
    before = world.slurm_conf
    world.raw["spec"] = PARTITION
    reload = until(world, Reload)
    world.memory.rollout.loaded = Loaded(
        "pod-uid", reload.change, world.now, proven=False, why="slurm_reconfigure() failed"
    )
    assert config_maps(world.step()) == ["slurm-config"]
    assert world.slurm_conf == before
    condition = world.condition("ConfigApplied")
    assert (condition["reason"], "slurm_reconfigure() failed" in condition["message"]) == ("ConfigRolledBack", True)
    tried = len(world.tried)
    world.settle()
    world.memory = Memory("cluster-uid")
    world.slurm = None
    world.settle()
    assert len(world.tried) == tried, "an operator that restarts knows what was refused"
    assert world.condition("ConfigApplied")["reason"] == "ConfigRolledBack"
    assert "slurm_reconfigure() failed" in world.condition("ConfigApplied")["message"]
    world.raw["spec"] = {"partitions": [{"name": "day", "nodeSets": ["ALL"]}]}
    world.settle()
    assert "day" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


@pytest.mark.parametrize("before", ["", "slurmctld: Terminate signal SIGTERM received\n"])
def test_a_slurmctld_that_keeps_ending_gets_the_last_good_configuration_back(before: str) -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, Reload)
    assert world.controller_pod is not None
    assert world.slurm is not None
    world.trouble(Trouble.CONTROLLER_DOWN)
    ended = {"terminated": {"exitCode": 1, "message": f"{before}slurmctld: fatal: something that only shows with jobs"}}
    status = {"name": "slurmctld", "ready": False, "lastState": ended}
    world.controller_pod["status"]["containerStatuses"] = [{**status, "state": {"running": {}}}]
    assert config_maps(world.step()) == [], "one end may have any cause"
    world.controller_pod["status"]["containerStatuses"] = [
        {**status, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    ]
    world.step()
    assert "night" not in world.slurm_conf
    assert "only shows with jobs" in world.condition("ConfigApplied")["message"]


ASKED = "slurmctld: error: _find_node_record: lookup failure\nslurmctld: Terminate signal SIGTERM received\n"


@pytest.mark.parametrize(
    "ended",
    [
        {"exitCode": 0, "message": "slurmctld: error: _find_node_record: lookup failure"},
        # scontrol shutdown: the first process was asked nothing.
        {"exitCode": 1, "message": f"{ASKED}slurmctld: Saving all slurm state\nslurmctld has ended\n"},
    ],
)
def test_a_slurmctld_that_was_asked_to_end_twice_has_refused_nothing(ended: dict[str, Any]) -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, Reload)
    assert world.controller_pod is not None
    world.trouble(Trouble.CONTROLLER_DOWN)
    status = {"name": "slurmctld", "ready": False, "lastState": {"terminated": ended}}
    states: tuple[dict[str, Any], ...] = ({"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}})
    for state in states:
        world.controller_pod["status"]["containerStatuses"] = [{**status, "state": state}]
        assert config_maps(world.step()) == []
        assert "night" in world.slurm_conf
        assert "lookup failure" not in world.condition("ConfigApplied")["message"]
    world.controller_pod["status"]["containerStatuses"] = []
    world.slurm = None
    world.settle()
    assert "night" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


def test_the_last_good_configuration_is_kept_before_the_status_says_applied() -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, Reload)
    world.step()
    good = world.children["ConfigMap", "slurm-config-good"]["data"]["slurm.conf"]
    assert "night" not in good
    assert config_maps(world.plan()) == ["slurm-config-good"]


def test_a_kubelet_that_mounts_an_old_file_is_called_again() -> None:
    world = settled()
    world.stale = {"slurm.conf": world.slurm_conf}
    world.raw["spec"] = PARTITION
    first = until(world, TouchPod)
    world.step()
    world.step()
    world.now += 10
    again = until(world, TouchPod)
    assert again.hash == first.hash
    assert again.value != first.value
    world.stale = {}
    world.settle()
    assert world.condition("ConfigApplied")["status"] == "True"


def test_an_edit_taken_back_while_it_is_loaded_is_loaded_once_more() -> None:
    for dies in (False, True):
        world = settled()
        world.raw["spec"] = PARTITION
        until(world, Reload)
        world.step()
        if dies:
            world.memory, world.slurm = Memory("cluster-uid"), None
        world.raw["spec"] = {}
        assert any(isinstance(one, Reload) for one in world.settle())
        assert "night" not in world.slurm_conf
        assert world.condition("ConfigApplied")["status"] == "True"


def test_an_operator_that_starts_anew_loads_nothing_again() -> None:
    world = settled(PARTITION)
    world.memory, world.slurm = Memory("cluster-uid"), None
    assert not any(isinstance(one, Reload | TouchPod | Write) for one in world.settle())


@pytest.mark.parametrize("spec", [{}, {"extraConf": "Bogus=1"}, {"configFileRefs": [{"name": "missing"}]}])
@pytest.mark.parametrize("harm", ["edited", "without slurm.conf", "without data", "deleted"])
def test_what_somebody_else_does_to_the_configmap_is_put_back_and_never_loaded(harm: str, spec: dict[str, Any]) -> None:
    world = settled()
    before = world.slurm_conf
    world.refuses = lambda text: "no" if "Bogus" in text else ""
    world.raw["spec"] = spec
    world.settle()
    key = ("ConfigMap", "slurm-config")
    match harm:
        case "edited":
            world.children[key]["data"] = {**world.children[key]["data"], "slurm.conf": before + "Handmade=1\n"}
        case "without slurm.conf":
            del world.children[key]["data"]["slurm.conf"]
        case "without data":
            del world.children[key]["data"]
        case _:
            del world.children[key]
    world.log = []
    world.settle()
    assert world.slurm_conf == before
    assert not any("Handmade" in text for text in world.tried)


def test_a_last_good_configmap_that_is_gone_is_made_again() -> None:
    world = settled()
    del world.children["ConfigMap", "slurm-config-good"]
    world.settle()
    assert world.children["ConfigMap", "slurm-config-good"]["data"]["slurm.conf"] == world.slurm_conf


def test_a_slurmctld_that_answers_gets_nothing_untried_even_before_the_first_status() -> None:
    world = World()
    until(world, Reload)
    world.step()
    world.refuses = lambda text: "no" if "Bogus" in text else ""
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    for _ in range(8):
        world.step()
    assert "Bogus" not in world.slurm_conf


def test_a_lost_status_is_no_licence_to_try_on_the_running_slurmctld() -> None:
    world = settled()
    del world.raw["status"]
    world.refuses = lambda text: "no" if "Bogus" in text else ""
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    world.settle()
    assert "Bogus" not in world.slurm_conf


def test_what_slurmctld_has_ended_on_is_not_tried_again_by_itself() -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, Reload)
    assert world.controller_pod is not None
    world.trouble(Trouble.CONTROLLER_DOWN)
    ended = {"terminated": {"exitCode": 1, "message": "slurmctld: fatal: no"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"name": "slurmctld", "ready": False, "lastState": ended, "state": waiting}
    world.controller_pod["status"]["containerStatuses"] = [status]
    world.step()
    world.controller_pod["status"]["containerStatuses"] = []
    world.slurm = None
    world.settle()
    assert "night" not in world.slurm_conf
    for made in (world.plan(), plan(world.snapshot(), ENVIRONMENT, world.now, WALL + timedelta(days=1))):
        assert not config_maps(made)
