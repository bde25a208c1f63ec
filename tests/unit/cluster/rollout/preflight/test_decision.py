"""A change is tried before it reaches a running slurmctld, and a rejection is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.actions import (
    EmitEvent,
    EndPreflight,
    HoldBackNodeSets,
    Reload,
    Remove,
    StartPreflight,
    TouchPod,
)
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.rollout.in_use.removals import JobUse
from tests.unit.cluster.rollout_stories import PARTITION, settled, until
from tests.unit.cluster.world import World, node_set_object


def test_a_change_is_tried_before_the_configmap_changes_and_its_preflight_leaves_nothing() -> None:
    world = settled()
    before = world.slurm_conf
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    assert world.slurm_conf == before
    world.settle()
    assert "PartitionName=night" in world.slurm_conf
    assert len(world.tried) == 1
    assert not world.preflights
    assert [name for kind, name in world.children if kind == "ConfigMap"] == ["slurm-config", "slurm-config-good"]


def test_what_a_preflight_refuses_reaches_nothing_and_is_told_in_slurms_words() -> None:
    world = settled()
    before = world.slurm_conf
    world.refuses = lambda text: "Parsing error at unrecognized key: Bogus" if "Bogus" in text else ""
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    done = world.settle()
    assert not any(isinstance(one, Reload | TouchPod) for one in done)
    assert world.slurm_conf == before
    condition = world.condition("ConfigApplied")
    assert condition["reason"] == "ConfigRefused"
    assert condition["message"] == "slurmctld refuses it: fatal: Parsing error at unrecognized key: Bogus"
    assert world.condition("Degraded")["reason"] == "ConfigRefused"
    assert world.condition("Progressing")["status"] == "False"
    assert not world.preflights
    assert len(world.tried) == 1, "once for each configuration"
    world.raw["spec"] = {"extraConf": "KillWait=5"}
    world.settle()
    assert world.condition("ConfigApplied")["status"] == "True"


def test_the_partition_is_named_whose_line_is_refused() -> None:
    world = settled()
    world.refuses = lambda text: 'Bad value "banana" for MaxTime' if "banana" in text else ""
    partitions = [{"name": "day", "config": "MaxTime=5"}, {"name": "night", "config": "MaxTime=banana"}]
    world.raw["spec"] = {"partitions": partitions}
    world.settle()
    message = world.condition("ConfigApplied")["message"]
    assert message == 'slurmctld refuses it: partition night: fatal: Bad value "banana" for MaxTime'


def test_an_operator_that_starts_anew_tries_again_what_was_refused() -> None:
    world = settled()
    world.refuses = lambda text: "no" if "Bogus" in text else ""
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    world.settle()
    world.memory = Memory("cluster-uid")
    world.slurm = None
    world.settle()
    assert len(world.tried) == 2
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"


def test_an_edit_taken_back_needs_no_preflight() -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    world.raw["spec"] = {}
    done = world.settle()
    assert not any(isinstance(one, StartPreflight) for one in done)
    assert any(isinstance(one, Remove) for one in done)
    assert world.condition("ConfigApplied")["status"] == "True"
    assert "night" not in world.slurm_conf


@pytest.mark.parametrize("status", [{"phase": "Failed", "reason": "Evicted"}, {"phase": "Pending"}])
def test_a_preflight_that_says_nothing_decides_nothing_and_is_made_again(status: dict[str, Any]) -> None:
    world = settled()
    before = world.slurm_conf
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    pod = next(iter(world.preflights.values()))
    pod["status"] = status
    if status["phase"] == "Pending":
        pod["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    until(world, EndPreflight)
    for _ in range(5):
        world.step()
    assert not world.preflights
    assert world.slurm_conf == before
    assert world.condition("ConfigApplied")["reason"] == "ConfigUntried"
    assert "preflight: its pod gave no result and is created again: " in world.condition("Degraded")["message"]
    world.now += 60
    world.settle()
    assert len(world.tried) == 2
    assert "night" in world.slurm_conf


def test_an_image_without_a_slurmd_holds_up_nobody() -> None:
    world = settled(None, node_set_object("good"), node_set_object("typo", {"image": "nowhere:1"}))
    world.raw["spec"] = PARTITION
    until(world, StartPreflight)
    world.step()
    pod = next(iter(world.preflights.values()))
    place = next(n for n, one in enumerate(pod["spec"]["containers"][1:]) if one["image"] == "nowhere:1")
    waiting = {"name": f"slurmd-{place}", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    world.settle()
    assert "night" in world.slurm_conf
    assert len(world.tried) == 2


def test_a_node_set_that_slurm_refuses_does_not_hold_up_the_others() -> None:
    world = settled(None, node_set_object("old"))
    world.refuses = lambda text: "Invalid time limit" if "MaxTime=banana" in text else ""
    world.add(node_set_object("good"), node_set_object("bad", {"partition": {"config": "MaxTime=banana"}}))
    world.raw["spec"] = PARTITION
    world.settle(60)
    config = world.raw["status"]["config"]
    assert config["nodeSets"] == ["good", "old"]
    assert "night" in world.slurm_conf
    assert config["refused"][0]["name"] == "bad"
    assert "Invalid time limit" in config["refused"][0]["message"]
    assert "Invalid time limit" in world.condition("Degraded")["message"]
    world.node_sets["bad"]["spec"]["partition"] = {"config": "MaxTime=60"}
    world.settle(60)
    assert world.raw["status"]["config"]["nodeSets"] == ["bad", "good", "old"]
    assert not world.raw["status"]["config"]["refused"]


def test_a_cluster_that_slurm_refuses_is_not_blamed_on_its_node_sets() -> None:
    world = settled(None, node_set_object("old"))
    world.refuses = lambda text: "no such plugin" if "SchedulerType" in text else ""
    world.add(node_set_object("new"))
    world.raw["spec"] = {"extraConf": "SchedulerType=sched/bogus"}
    world.settle()
    said = "slurmctld refuses it: fatal: no such plugin; changes of NodeSet new wait for that"
    assert world.condition("ConfigApplied")["message"] == said
    world.raw["spec"] = {}
    world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == ["new", "old"]


def test_a_node_set_that_is_left_out_already_is_not_held_again_and_again() -> None:
    world = settled(None, node_set_object("compute"))
    world.refuses = lambda text: "Invalid" if "banana" in text else ""
    world.raw["spec"] = {"partitions": [{"name": "compute", "nodeSets": ["compute"], "config": "MaxTime=banana"}]}
    world.settle()
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"


def test_what_a_node_set_and_its_cluster_ask_for_together_is_blamed_on_neither_before_it_is_known() -> None:
    world = settled(None, node_set_object("old"))
    world.refuses = lambda text: "no such plugin" if "SchedulerType" in text else ""
    world.add(node_set_object("new"))
    world.raw["spec"] = {"extraConf": "SchedulerType=sched/bogus"}
    done = world.settle()
    assert not [one for one in done if isinstance(one, EmitEvent) and one.obj["kind"] == "NodeSet"]
    assert not any(one.proven for one in world.memory.rollout.held.values())
    assert not world.raw["status"]["config"].get("refused")
    said = world.condition("ConfigApplied")["message"]
    assert said == "slurmctld refuses it: fatal: no such plugin; changes of NodeSet new wait for that"


def test_of_several_node_sets_only_the_one_with_the_typo_is_ever_told() -> None:
    world = settled(None, node_set_object("old"))
    world.refuses = lambda text: "Invalid time limit" if "MaxTime=banana" in text else ""
    world.add(node_set_object("bad", {"partition": {"config": "MaxTime=banana"}}), node_set_object("good"))
    done: list[Any] = []
    seen: set[str] = set()
    for _ in range(60):
        done += world.step().actions
        status = world.raw["status"]
        seen.add(world.condition("ConfigApplied")["message"])
        assert {one["name"] for one in status["config"].get("refused") or ()} <= {"bad"}
    told = {one.obj["metadata"]["name"] for one in done if isinstance(one, EmitEvent) and one.obj["kind"] == "NodeSet"}
    assert told == {"bad"}
    together = "with the changes of NodeSets bad, good: slurmctld refuses it: fatal: Invalid time limit; each is tried"
    assert any(together in words for words in seen)
    assert world.raw["status"]["config"]["nodeSets"] == ["good", "old"]


def test_holding_is_told_by_an_action_that_names_the_reason() -> None:
    world = settled()
    world.refuses = lambda text: "banana" if "banana" in text else ""
    world.add(node_set_object("bad", {"partition": {"config": "MaxTime=banana"}}))
    hold = until(world, HoldBackNodeSets)
    assert hold.held["bad"].proven
    assert "banana" in hold.held["bad"].why


def waiting(world: World) -> None:
    """Let a change of keys wait for a job."""
    world.use = replace(
        world.use, jobs=(JobUse(17, frozenset({"all"}), frozenset({"compute-0"}), frozenset(), holding=True),)
    )


def test_a_wrong_value_that_waits_for_jobs_is_refused_at_once_and_the_rest_stays_as_it_is() -> None:
    world = settled()
    waiting(world)
    world.refuses = lambda text: "Invalid PrologFlags Bogus" if "PrologFlags=Bogus" in text else ""
    before = world.slurm_conf
    world.raw["spec"] = {"extraConf": "PrologFlags=Bogus"}
    world.settle()
    found = world.condition("ConfigApplied")
    assert found["reason"] == "ConfigRefused"
    assert found["message"].startswith("what waits for jobs cannot be used then: slurmctld refuses it: ")
    assert world.condition("Degraded")["reason"] == "ConfigRefused"
    assert world.slurm_conf == before
    assert not world.preflights
    # The same beside a change that does not wait.
    world.raw["spec"] = {"extraConf": "PrologFlags=Bogus\nKillWait=7"}
    world.settle()
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"
    assert world.slurm_conf == before


def test_a_value_that_waits_and_is_right_waits_and_the_rest_is_applied() -> None:
    world = settled()
    waiting(world)
    world.raw["spec"] = {"extraConf": "PrologFlags=Alloc\nKillWait=7"}
    world.settle()
    assert "KillWait=7" in world.slurm_conf
    assert "PrologFlags" not in world.slurm_conf
    assert "PrologFlags stays unset until no job runs" in world.condition("ConfigApplied")["message"]
    assert not world.preflights
    tried = len(world.tried)
    world.settle()
    assert len(world.tried) == tried, "once for each configuration"
    world.use = replace(world.use, jobs=())
    world.now += 600
    world.settle()
    assert "PrologFlags=Alloc" in world.slurm_conf


def test_the_trials_of_what_goes_live_and_of_what_waits_leave_each_other_alone() -> None:
    world = settled()
    waiting(world)
    world.raw["spec"] = {"extraConf": "PrologFlags=Alloc\nKillWait=7"}
    begun: list[str] = []
    for _ in range(12):
        made = [one.preflight.name for one in world.step().actions if isinstance(one, StartPreflight)]
        begun += made
        ends = {name: world.preflights[name]["status"] for name in made}
        # A pod takes some passes to end.
        for name in made:
            world.preflights[name]["status"] = {"phase": "Pending"}
        for _ in range(3 if made else 0):
            world.step()
        for name in made:
            assert name in world.preflights, "no other trial takes it away"
            world.preflights[name]["status"] = ends[name]
    assert len(begun) == len({*begun}) == 2
    assert "KillWait=7" in world.slurm_conf
    assert not world.preflights
