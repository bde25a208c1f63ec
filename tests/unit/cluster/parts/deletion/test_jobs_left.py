"""A Cluster that is being deleted waits for jobs on nodes outside Kubernetes."""

from __future__ import annotations

from dataclasses import replace

from slinky_operator.cluster.actions import TearDown
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import GONE, job, settled
from tests.unit.cluster.world import World

METAL = {"nodes": [{"name": "metal[1-4]", "config": "CPUs=4 NodeAddr=10.0.0.[1-4]"}]}


def deleted(use: Use, spec: dict[str, object] | None = None) -> World:
    """A Cluster that is deleted while Slurm has these jobs."""
    world = settled(METAL if spec is None else spec)
    world.use = use
    world.raw["metadata"]["deletionTimestamp"] = GONE
    return world


def is_torn_down(world: World, passes: int = 10) -> bool:
    return any(isinstance(one, TearDown) for _ in range(passes) for one in world.step().actions)


RUNNING = replace(job(7, nodes=("metal1",)), holding=True)


def test_it_waits_for_jobs_and_goes_with_the_last_of_them() -> None:
    world = deleted(Use(0.0, "", (RUNNING, replace(RUNNING, id=8), job(9))))
    world.settle()
    assert not world.torn_down
    condition = world.condition("Deleting")
    assert (condition["status"], condition["reason"]) == ("True", "NodesInUse")
    assert condition["message"] == (
        "jobs 7, 8 may run on nodes outside Kubernetes: drain them to get no more, and wait, or cancel the jobs; "
        "without spec.nodes the Cluster goes at once"
    )
    assert world.raw["status"]["summary"] == "Deleting, jobs outside Kubernetes"
    # The pending one has started nowhere.
    world.use = Use(0.0, "", (job(9),))
    world.now += 10
    assert is_torn_down(world)


def test_slurmctlds_pod_stays_as_it_is_meanwhile() -> None:
    world = deleted(Use(0.0, "", (RUNNING,)))
    before = world.children["StatefulSet", "slurm-controller"]["spec"]
    world.raw["spec"] = {**METAL, "controller": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    world.settle()
    assert world.children["StatefulSet", "slurm-controller"]["spec"] == before


def test_it_waits_for_an_answer() -> None:
    world = deleted(Use(0.0, "", why="Unable to contact slurm controller"))
    world.settle()
    assert not world.torn_down
    assert world.condition("Deleting")["message"] == (
        "Slurm does not say whether jobs run on nodes outside Kubernetes (Unable to contact slurm controller); without "
        "spec.nodes the Cluster goes at once, whatever runs there"
    )


def test_an_operator_that_has_just_started_asks_first() -> None:
    world = deleted(Use(0.0, "", (RUNNING,)))
    world.memory = Memory(world.memory.uid)
    assert not is_torn_down(world)
    world.use = Use(0.0, "")
    world.now += 10
    assert is_torn_down(world)


def test_a_slurm_out_of_reach_keeps_it() -> None:
    world = deleted(Use(0.0, ""))
    world.trouble(Trouble.NO_ANSWER)
    assert not is_torn_down(world)
    assert world.condition("Deleting")["reason"] == "NodesInUse"


def test_without_these_nodes_it_goes_at_once_also_if_they_are_taken_out_now() -> None:
    assert is_torn_down(deleted(Use(0.0, "", (RUNNING,)), {}), 1)
    world = deleted(Use(0.0, "", (RUNNING,)))
    world.settle()
    world.raw["spec"] = {}
    world.raw["metadata"]["generation"] = 2
    assert is_torn_down(world, 1)


def test_a_slurmctld_that_is_gone_or_never_ran_keeps_nothing() -> None:
    world = deleted(Use(0.0, "", (RUNNING,)))
    del world.children["StatefulSet", "slurm-controller"]
    assert is_torn_down(world, 1)
    world = deleted(Use(0.0, "", (RUNNING,)))
    world.raw["status"]["config"]["appliedHash"] = ""
    # It was adopted, and runs, although this Cluster has proven nothing of it yet.
    assert not is_torn_down(world)
    world = deleted(Use(0.0, "", (RUNNING,)))
    world.raw["status"]["config"]["appliedHash"] = ""
    del world.children["ConfigMap", "slurm-config-good"]
    world.slurm, world.controller_pod = None, None
    assert is_torn_down(world, 1)


def test_an_old_answer_without_jobs_is_asked_once_more() -> None:
    world = settled(METAL)
    digest = world.raw["status"]["config"]["appliedHash"]
    world.use = Use(0.0, "", (RUNNING,))
    world.memory.answers.note(UseQuestion, Use(world.now - 5.0, digest, cost=0.0))
    world.raw["metadata"]["deletionTimestamp"] = GONE
    assert not is_torn_down(world)
