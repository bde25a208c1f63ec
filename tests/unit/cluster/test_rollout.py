"""How a configuration change comes to a running slurmctld, and what keeps it from coming."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_operator.cluster.actions import (
    AskUse,
    EndPreflight,
    Hold,
    Reload,
    Remove,
    StartPreflight,
    Tell,
    TouchPod,
    Write,
)
from slinky_operator.cluster.in_use import JobUse, ReservationUse, Use
from slinky_operator.cluster.memory import Loaded, Memory
from slinky_operator.cluster.plan import Plan, plan
from slinky_operator.slurm.clients import Trouble
from slinky_operator.slurm.conf.parsed import parse
from tests.unit.cluster.world import ENVIRONMENT, WALL, World, cluster_object, node_set_object

GONE = "2026-01-01T00:00:00Z"
PARTITION = {"partitions": [{"name": "night", "nodeSets": ["ALL"], "config": "MaxTime=60"}]}


def settled(spec: dict[str, Any] | None = None, *node_sets: dict[str, Any]) -> World:
    world = World(cluster_object(spec))
    world.add(*node_sets)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    world.tried = []
    return world


def job(number: int, partition: str = "all", nodes: tuple[str, ...] = (), gres: tuple[str, ...] = ()) -> JobUse:
    return JobUse(number, frozenset(partition.split(",")), frozenset(nodes), frozenset(gres))


def config_maps(made: Plan) -> list[str]:
    return [one.child.name for one in made.actions if isinstance(one, Write) and one.child.resource.kind == "ConfigMap"]


def until(world: World, kind: type) -> Any:
    for _ in range(30):
        found = next((one for one in world.plan().actions if isinstance(one, kind)), None)
        if found is not None:
            return found
        world.step()
    raise AssertionError(f"no {kind.__name__}")


# Preflights


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
    assert world.condition("ConfigApplied")["reason"] == "ConfigPending"
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
    assert world.condition("ConfigApplied")["message"] == "slurmctld refuses it: fatal: no such plugin"
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
    told = [one.message for one in done if isinstance(one, Tell) and one.obj["kind"] == "NodeSet"]
    assert all("waits until the others are through" in words for words in told)
    assert not any(one.proven for one in world.memory.held.values())


# Loading


def test_what_slurmctld_does_not_take_is_put_back_and_left_alone_until_it_changes() -> None:
    world = settled()
    before = world.slurm_conf
    world.raw["spec"] = PARTITION
    reload = until(world, Reload)
    world.memory.loaded = Loaded("pod-uid", reload.change, world.now, proven=False, why="slurm_reconfigure() failed")
    assert config_maps(world.step()) == ["slurm-config"]
    assert world.slurm_conf == before
    condition = world.condition("ConfigApplied")
    assert (condition["reason"], "slurm_reconfigure() failed" in condition["message"]) == ("ConfigRolledBack", True)
    tried = len(world.tried)
    world.settle()
    world.memory = Memory("cluster-uid")
    world.slurm = None
    world.settle()
    assert len(world.tried) == tried, "an operator that starts anew knows what was refused"
    assert world.condition("ConfigApplied")["reason"] == "ConfigRolledBack"
    assert "slurm_reconfigure() failed" in world.condition("ConfigApplied")["message"]
    world.raw["spec"] = {"partitions": [{"name": "day", "nodeSets": ["ALL"]}]}
    world.settle()
    assert "day" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_slurmctld_that_keeps_ending_gets_the_last_good_configuration_back() -> None:
    world = settled()
    world.raw["spec"] = PARTITION
    until(world, Reload)
    assert world.controller_pod is not None
    assert world.slurm is not None
    world.trouble(Trouble.CONTROLLER_DOWN)
    ended = {"terminated": {"exitCode": 1, "message": "slurmctld: fatal: something that only shows with jobs"}}
    status = {"name": "slurmctld", "ready": False, "lastState": ended}
    world.controller_pod["status"]["containerStatuses"] = [{**status, "state": {"running": {}}}]
    assert config_maps(world.step()) == [], "one end may have any cause"
    world.controller_pod["status"]["containerStatuses"] = [
        {**status, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    ]
    world.step()
    assert "night" not in world.slurm_conf
    assert "only shows with jobs" in world.condition("ConfigApplied")["message"]


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


# What is in use


def test_a_partition_is_closed_before_it_goes_and_waits_for_its_jobs() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"), job(8, "day,night"), job(9, "all")))
    world.raw["spec"] = {}
    world.settle()
    assert parse(world.slurm_conf).partitions["night"].get("State") == "INACTIVE"
    condition = world.condition("ConfigApplied")
    assert (condition["status"], condition["reason"]) == ("False", "PartitionInUse")
    assert condition["message"] == "partition night stays, closed to new jobs, for jobs 7, 8"
    assert world.condition("Progressing")["reason"] == "PartitionInUse"
    assert world.condition("Degraded")["status"] == "False"
    assert world.raw["status"]["config"]["hash"] != world.raw["status"]["config"]["appliedHash"]
    world.use = Use(0.0, "", (job(9, "all"),))
    world.now += 10
    world.settle()
    assert "night" not in parse(world.slurm_conf).partitions
    assert world.condition("ConfigApplied")["status"] == "True"


def test_an_answer_from_before_a_partition_was_closed_counts_for_nothing() -> None:
    world = settled(PARTITION)
    world.memory.use = Use(world.now, world.raw["status"]["config"]["appliedHash"])
    world.raw["spec"] = {}
    for _ in range(3):
        world.step()
    assert "night" in world.slurm_conf


def test_a_reservation_keeps_its_partition() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (), (ReservationUse("maint", "night", frozenset()),))
    world.raw["spec"] = {}
    world.settle()
    assert "reservation maint" in world.condition("ConfigApplied")["message"]
    assert "night" in world.slurm_conf


def test_no_answer_keeps_everything_while_other_changes_go_on() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", why="Unable to contact slurm controller")
    world.raw["spec"] = {"extraConf": "KillWait=9"}
    world.settle()
    assert "PartitionName=night" in world.slurm_conf
    assert "KillWait=9" in world.slurm_conf
    assert "Unable to contact" in world.condition("ConfigApplied")["message"]


def test_a_partition_that_is_wanted_again_is_open_again() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"),))
    world.raw["spec"] = {}
    world.settle()
    world.raw["spec"] = PARTITION
    world.settle()
    assert parse(world.slurm_conf).partitions["night"].get("State") == "UP"
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_node_set_that_is_gone_leaves_its_partition_to_its_pending_jobs() -> None:
    world = settled(None, node_set_object("compute"))
    world.use = Use(0.0, "", (job(3, "compute"),))
    world.node_sets["compute"]["metadata"]["deletionTimestamp"] = GONE
    world.settle()
    assert "compute" not in world.node_sets
    found = parse(world.slurm_conf)
    assert found.partitions["compute"].get("State") == "INACTIVE"
    assert "compute" in found.node_sets
    assert "job 3" in world.condition("ConfigApplied")["message"]
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "compute" not in parse(world.slurm_conf).node_sets


def test_a_node_outside_kubernetes_keeps_its_line_while_jobs_are_on_it() -> None:
    spec = {"nodes": [{"name": "metal[1-4]", "config": "CPUs=4 RealMemory=1000 Weight=1"}]}
    world = settled(spec)
    world.use = Use(0.0, "", (job(5, nodes=("metal3",)),))
    world.raw["spec"] = {"nodes": [{"name": "metal[1-4]", "config": "CPUs=8 RealMemory=1000 Weight=1"}]}
    world.settle()
    assert "CPUs=4" in world.slurm_conf
    assert world.condition("ConfigApplied")["reason"] == "NodesInUse"
    world.raw["spec"] = {"nodes": [{"name": "metal[1-4]", "config": "CPUs=4 RealMemory=1000 Weight=2"}]}
    world.settle()
    assert "Weight=2" in world.slurm_conf, "what jobs do not hold may change"
    world.raw["spec"] = {}
    world.settle()
    assert "metal[1-4]" in world.slurm_conf
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "metal" not in world.slurm_conf


def test_a_line_of_nodes_that_shrinks_or_grows_keeps_those_with_jobs() -> None:
    world = settled({"nodes": [{"name": "metal[1-4]", "config": "CPUs=4"}]})
    world.use = Use(0.0, "", (job(5, nodes=("metal3",)),))
    world.raw["spec"] = {"nodes": [{"name": "metal[1-6]", "config": "CPUs=4"}]}
    world.settle()
    assert "metal[1-6]" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"
    world.raw["spec"] = {"nodes": [{"name": "metal[1-2]", "config": "CPUs=4"}]}
    world.settle()
    assert "metal[1-6]" in world.slurm_conf
    assert "job 5" in world.condition("ConfigApplied")["message"]
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "NodeName=metal[1-2]" in world.slurm_conf


def test_a_node_and_its_partition_may_go_in_one_edit() -> None:
    spec = {
        "nodes": [{"name": "metal1", "config": "CPUs=4"}],
        "partitions": [{"name": "metal", "nodes": ["metal1"]}],
    }
    world = settled(spec)

    def judge(text: str) -> str:
        found = parse(text)
        named = {node for line in found.partitions.values() for node in line.nodes if node.startswith("metal")}
        return "" if named <= found.nodes.keys() else "Invalid node names"

    world.refuses = judge
    world.raw["spec"] = {}
    for _ in range(6):
        world.settle()
        world.now += 10
    assert "metal" not in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_partition_in_other_letters_is_another_partition() -> None:
    world = settled({"partitions": [{"name": "Night", "nodeSets": ["ALL"]}]})
    world.use = Use(0.0, "", (job(7, "Night"),))
    world.raw["spec"] = {"partitions": [{"name": "night", "nodeSets": ["ALL"]}]}
    world.settle()
    assert parse(world.slurm_conf).partitions["Night"].get("State") == "INACTIVE"
    assert parse(world.slurm_conf).partitions["night"].get("State") == "UP"


def test_an_answer_from_before_the_last_reload_counts_for_nothing() -> None:
    world = settled(PARTITION)
    world.raw["spec"] = {}
    until(world, AskUse)
    world.step()
    answer = world.memory.use
    assert answer is not None
    assert world.memory.loaded is not None
    world.memory.loaded = replace(world.memory.loaded, at=answer.asked_at + 0.1)
    assert "night" in world.slurm_conf
    assert not config_maps(world.plan())


def test_devices_stay_while_jobs_have_them() -> None:
    files = {"configFiles": {"gres.conf": "Name=gpu Count=2\nName=fpga Count=1\n"}}
    world = settled(files, node_set_object("g", {"gres": "gpu:2,fpga:1"}))
    world.use = Use(0.0, "", (job(6, gres=("gpu",)),))
    world.raw["spec"] = {"configFiles": {"gres.conf": "Name=gpu Count=1\nName=fpga Count=1\n"}}
    world.settle()
    assert "Name=gpu Count=2" in world.children["ConfigMap", "slurm-config"]["data"]["gres.conf"]
    condition = world.condition("ConfigApplied")
    assert (condition["reason"], condition["message"]) == ("GresInUse", "GRES gpu stays as it is for job 6")
    world.raw["spec"] = {"configFiles": {"gres.conf": "Name=gpu Count=2\nName=fpga Count=3\n"}}
    world.settle()
    assert "Name=fpga Count=3" in world.children["ConfigMap", "slurm-config"]["data"]["gres.conf"]
    assert world.condition("ConfigApplied")["status"] == "True"


# Whatever happens


SPECS: list[dict[str, Any]] = [
    {},
    PARTITION,
    {"partitions": [{"name": "night"}, {"name": "day", "nodeSets": ["a"]}]},
    {"extraConf": "Bogus=1"},
    {"extraConf": "KillWait=7"},
]


def happen(world: World, event: Any) -> None:
    match event:
        case dict():
            world.raw["spec"] = event
        case "a" | "bad":
            config = {"partition": {"config": "MaxTime=banana" if event == "bad" else "MaxTime=5"}}
            world.add(node_set_object(event, config))
        case "-a" if "a" in world.node_sets and "finalizers" in world.node_sets["a"]["metadata"]:
            world.node_sets["a"]["metadata"]["deletionTimestamp"] = GONE
        case "kill":
            world.memory, world.slurm = Memory("cluster-uid"), None
        case "wait":
            world.now += 400
        case "jobs":
            world.use = Use(0.0, "", (job(1, "night"), job(2, "a")))
        case "no jobs":
            world.use = Use(0.0, "")
        case int():
            for _ in range(event):
                world.step()
        case _:
            pass


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(SPECS),
            st.sampled_from(["a", "bad", "-a", "kill", "wait", "jobs", "no jobs"]),
            st.integers(1, 4),
        ),
        max_size=12,
    )
)
def test_whatever_happens_no_refused_file_is_mounted_and_the_end_is_the_specs(story: list[Any]) -> None:
    world = settled()
    world.refuses = lambda text: "no" if "Bogus" in text or "banana" in text else ""
    for event in story:
        happen(world, event)
        mounted = world.slurm_conf
        assert "Bogus" not in mounted
        assert "banana" not in mounted
    world.use = Use(0.0, "")
    world.now += 10
    world.settle(80)
    spec = world.raw["spec"]
    refused = "Bogus" in spec.get("extraConf", "")
    assert world.raw["status"]["isReady"] is not refused
    if not refused:
        wanted = {one["name"] for one in spec.get("partitions", ())} | {"all"} | (world.node_sets.keys() - {"bad"})
        assert parse(world.slurm_conf).partitions.keys() == wanted


def test_holding_is_told_by_an_action_that_names_the_reason() -> None:
    world = settled()
    world.refuses = lambda text: "banana" if "banana" in text else ""
    world.add(node_set_object("bad", {"partition": {"config": "MaxTime=banana"}}))
    hold = until(world, Hold)
    assert hold.held["bad"].proven
    assert "banana" in hold.held["bad"].why
