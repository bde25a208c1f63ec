"""Both ConfigMaps with what slurmctld runs may be deleted: no change reaches it for that."""

from __future__ import annotations

import pytest

from slinky_api import labels
from slinky_operator.cluster.actions import Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.cluster.rollout.in_use.removals import ReservationUse, Use
from slinky_operator.slurm.conf.syntax.parsed import parse
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import GONE, PARTITION, job, settled
from tests.unit.cluster.world import World, node_set_object

BOTH = (("ConfigMap", "slurm-config"), ("ConfigMap", "slurm-config-good"))


def are_deleted(world: World, *, by_another_operator: bool = False) -> None:
    for key in BOTH:
        del world.children[key]
    if by_another_operator:
        world.memory = Memory(world.memory.uid)


def waiting() -> World:
    """A Cluster whose partition `night` is to go, and stays for a job."""
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"),))
    world.raw["spec"] = {}
    world.settle()
    assert world.condition("ConfigApplied")["reason"] == "PartitionInUse"
    return world


def test_they_are_written_again_as_they_were() -> None:
    world = waiting()
    before = {key: world.children[key]["data"] for key in BOTH}
    are_deleted(world)
    world.settle()
    assert {key: world.children[key]["data"] for key in BOTH} == before
    assert parse(world.slurm_conf).partitions["night"].get("State") == "INACTIVE"
    assert world.condition("ConfigApplied")["message"] == "partition night stays, closed to new jobs, for job 7"


def test_what_is_not_the_operators_is_not_remembered() -> None:
    world = waiting()
    good = world.children[BOTH[1]]
    world.children[BOTH[1]] = {**good, "data": {"slurm.conf": "Handmade=1\n"}}
    world.settle()
    are_deleted(world)
    world.settle()
    assert "Handmade" not in world.slurm_conf
    assert "PartitionName=night" in world.slurm_conf


def test_another_operator_writes_nothing_while_there_is_a_job() -> None:
    world = waiting()
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert BOTH[0] not in world.children
    condition = world.condition("ConfigApplied")
    assert (condition["status"], condition["reason"]) == ("False", "WaitingForJobs")
    assert condition["message"] == (
        "the ConfigMaps with what slurmctld runs are gone, and any change could end any job: it waits, and slurmctld's "
        "pod stays as it is, until there is neither a job nor a reservation (job 7); to write it before that, whatever "
        "it ends: kubectl -n here annotate --overwrite clusters.slinky.slurm.net slurm "
        "cluster.slinky.slurm.net/write-configuration="
        f"{world.raw['status']['config']['hash']}"
    )
    world.use = Use(0.0, "", (), (ReservationUse("maint", "night", frozenset()),))
    world.now += 10
    world.settle()
    assert "(reservation maint)" in world.condition("ConfigApplied")["message"]
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "night" not in parse(world.slurm_conf).partitions
    assert world.condition("ConfigApplied")["status"] == "True"


def test_another_operator_writes_nothing_before_slurm_has_answered() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", why="Unable to contact slurm controller")
    world.raw["spec"] = {"extraConf": "KillWait=7"}
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert BOTH[0] not in world.children
    message = world.condition("ConfigApplied")["message"]
    assert "until Slurm says what is in use (Unable to contact slurm controller)" in message


def test_without_a_change_they_are_written_at_once() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"),))
    before = world.slurm_conf
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert world.slurm_conf == before
    assert world.tried == []


def test_a_node_set_that_drains_is_no_change() -> None:
    world = settled(None, node_set_object("compute"))
    about = world.node_sets["compute"]["metadata"]
    about["finalizers"] = [*about["finalizers"], labels.FINALIZER_NODESET_DRAIN]
    about["deletionTimestamp"] = GONE
    world.settle()
    before = world.slurm_conf
    assert "compute" in parse(before).node_sets
    world.use = Use(0.0, "", (job(7, "compute"),))
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert world.slurm_conf == before


@pytest.mark.parametrize("phase", ["Running", "Pending", ""])
def test_who_accepts_that_jobs_end_has_it_written_also_while_slurmctld_does_not_answer(phase: str) -> None:
    """A pod that cannot mount its files waits for them; what it would end is in the state that slurmctld has saved."""
    world = waiting()
    are_deleted(world, by_another_operator=True)
    world.trouble(Trouble.NO_ANSWER)
    assert world.controller_pod is not None
    world.controller_pod = {**world.controller_pod, "status": {"phase": phase}} if phase else None
    accepted = labels.ANNOTATION_WRITE_CONFIG
    for value in ("", "another", "true", world.raw["status"]["config"]["hash"]):
        assert BOTH[0] not in world.children
        world.raw["metadata"]["annotations"] = {accepted: value}
        for _ in range(20):
            world.step()
    assert "night" not in parse(world.slurm_conf).partitions


def test_what_was_accepted_and_is_refused_is_said_and_nothing_else_is_offered() -> None:
    world = settled(PARTITION, node_set_object("compute"))
    world.use = Use(0.0, "", (job(7, "compute"),))
    world.refuses = lambda text: "fatal: Bogus" if "Bogus" in text else ""
    are_deleted(world, by_another_operator=True)
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    world.settle()
    digest = world.raw["status"]["config"]["hash"]
    world.raw["metadata"]["annotations"] = {labels.ANNOTATION_WRITE_CONFIG: digest}
    for _ in range(20):
        world.step()
    condition = world.condition("ConfigApplied")
    assert condition["reason"] == "ConfigRefused"
    assert "fatal: Bogus" in condition["message"]
    assert world.raw["status"]["config"]["hash"] == digest
    assert BOTH[0] not in world.children


def test_accounting_is_no_change_while_slurmdbd_is_away() -> None:
    world = settled({"accounting": {}})
    before = world.slurm_conf
    assert in_conf.has_accounting(parse(before))
    world.use = Use(0.0, "", (job(7),))
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert world.slurm_conf == before


def test_slurmctlds_statefulset_stays_as_it_is_meanwhile() -> None:
    world = waiting()
    before = world.children["StatefulSet", "slurm-controller"]["spec"]
    are_deleted(world, by_another_operator=True)
    world.raw["spec"] = {"controller": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    world.settle()
    assert world.children["StatefulSet", "slurm-controller"]["spec"] == before
    assert not [one for one in world.raw["status"]["conditions"] if one["reason"] == "ReplacementHeldBack"]


def test_nodes_whose_names_are_looked_up_are_no_change() -> None:
    world = settled({"nodes": [{"name": "metal[1-2]", "config": "CPUs=4"}]})
    world.settle()
    before = world.slurm_conf
    assert "FUTURE" not in before
    world.use = Use(0.0, "", (job(7, nodes=("metal1",)),))
    are_deleted(world, by_another_operator=True)
    world.settle()
    assert world.slurm_conf == before


def test_the_last_good_one_is_written_again_if_somebody_has_edited_it() -> None:
    world = settled(PARTITION)
    good = world.children[BOTH[1]]
    world.children[BOTH[1]] = {**good, "data": {"slurm.conf": "Handmade=1\n"}}
    writes = [one for one in world.settle() if isinstance(one, Write)]
    assert [(one.child.key, one.live is not None) for one in writes] == [(BOTH[1], True)]
    assert world.children[BOTH[1]]["data"] == good["data"]


def test_a_cluster_that_never_ran_gets_what_is_wanted() -> None:
    world = settled(PARTITION)
    del world.raw["status"]
    world.slurm, world.controller_pod = None, None
    are_deleted(world)
    world.raw["spec"] = {}
    world.step()
    assert "night" not in world.slurm_conf
