"""What jobs and reservations use stays until they are done with it."""

from __future__ import annotations

from dataclasses import replace

from slinky_operator.cluster.actions import StartPreflight, asks
from slinky_operator.cluster.rollout.in_use.removals import ReservationUse, Use
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.slurm.conf.syntax.parsed import parse
from tests.unit.cluster.rollout_stories import GONE, PARTITION, config_maps, job, settled, until
from tests.unit.cluster.world import node_set_object


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
    world.memory.answers.note(UseQuestion, Use(world.now, world.raw["status"]["config"]["appliedHash"]))
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
    config = world.raw["status"]["config"]
    assert (config["nodeSets"], config["leavingNodeSets"]) == ([], ["compute"])
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "compute" not in parse(world.slurm_conf).node_sets
    assert world.raw["status"]["config"]["leavingNodeSets"] == []


def test_a_node_set_that_comes_back_is_leaving_until_its_own_part_is_live() -> None:
    world = settled(None, node_set_object("compute"))
    world.use = Use(0.0, "", (job(3, "compute"),))
    world.node_sets["compute"]["metadata"]["deletionTimestamp"] = GONE
    world.settle()
    world.node_sets["compute"] = node_set_object("compute", {"partition": {"config": "MaxTime=5"}}, uid="another")
    listed = []
    for _ in range(30):
        world.step()
        config = world.raw["status"]["config"]
        listed.append((config["nodeSets"], config["leavingNodeSets"], "MaxTime=5" in world.slurm_conf))
    # It gets pods only once slurmctld has its own part, and its name is never free meanwhile.
    assert all(any(names) for *names, _ in listed)
    assert listed[0] == ([], ["compute"], False)
    assert listed[-1] == (["compute"], [], True)
    assert all(is_written for names, _, is_written in listed if names)


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
    until(world, UseQuestion)
    world.step()
    answer = world.memory.answers.of(UseQuestion)
    assert answer is not None
    assert world.memory.rollout.loaded is not None
    world.memory.rollout.loaded = replace(world.memory.rollout.loaded, at=answer.asked_at + 0.1)
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


def test_slurm_is_asked_the_less_often_the_dearer_its_answers_are() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"),), cost=0.5)
    world.raw["spec"] = {}
    world.settle()
    asked, begin = [], world.now
    while world.now < begin + 600:
        asked += [world.now for one in world.step().actions if asks(one, UseQuestion)]
    assert 2 <= len(asked) <= 1 + 600 * 0.02 / 0.5 * 1.1
    assert "night" in world.slurm_conf


def test_an_answer_that_takes_minutes_is_used_once_it_is_there() -> None:
    """Where a list of jobs is too large they are read one by one."""
    world = settled(PARTITION)
    world.raw["spec"] = {}
    world.use = Use(0.0, "", cost=200.0)
    answered = []
    for _ in range(30):
        question = any(asks(one, UseQuestion) for one in world.step().actions)
        known = world.memory.answers.of(UseQuestion)
        if question and known is not None:
            # It was begun now, and the pass has waited for it.
            world.memory.answers.note(UseQuestion, replace(known, asked_at=world.now))
            world.now += 200.0
            answered.append(world.now)
    assert "night" not in parse(world.slurm_conf).partitions
    assert world.condition("ConfigApplied")["status"] == "True"
    assert 1 <= len(answered) <= 3


def test_what_goes_is_looked_at_once_more_where_the_answer_is_old() -> None:
    world = settled({"nodes": [{"name": "metal1", "config": "CPUs=4"}]})
    world.use = Use(0.0, "", cost=0.5)
    world.raw["spec"] = {}
    until(world, UseQuestion)
    world.step()
    assert any(isinstance(one, StartPreflight) for one in world.step().actions), "nothing is on the node"
    # The preflight takes its time, and a job begins meanwhile.
    world.use = Use(0.0, "", (job(5, nodes=("metal1",)),), cost=0.5)
    world.now += 10
    world.settle()
    assert "metal1" in world.slurm_conf
    assert world.condition("ConfigApplied")["reason"] == "NodesInUse"
