"""A change that takes away what jobs refer to is tried with a copy of them."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_operator.cluster.actions import EmitEvent, StartPreflight
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.rollout.config.writing import touches_jobs
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.preflight.jobs_copy import AGAIN, MOST_BYTES, harmed
from slinky_operator.cluster.trials.scripts import NOT_COPIED
from slinky_operator.slurm.conf import ConfFiles
from tests.unit.cluster.rollout_stories import job, settled, until
from tests.unit.cluster.world import WALL, World

TWO = {"partitions": [{"name": "night", "nodeSets": ["ALL"]}], "nodes": [{"name": "m1", "config": "CPUs=1"}]}
ONE = {"nodes": TWO["nodes"]}
MARK = "-preflight-j"


def closed(**spec: Any) -> World:
    """A Cluster with a job, of which the next change removes a partition that Slurm shows without jobs."""
    world = settled({**TWO, **spec})
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-1"}
    world.use = Use(0.0, "", (job(7, "all"),))
    world.raw["spec"] = {**ONE, **spec}
    return world


def started(world: World) -> StartPreflight:
    for _ in range(60):
        begun = (one for one in world.plan().actions if isinstance(one, StartPreflight) and MARK in one.preflight.name)
        found = next(begun, None)
        if found is not None:
            return found
        world.step()
        world.now += 1
    raise AssertionError("no trial of jobs")


def trials(world: World) -> list[str]:
    return [name for name in (*world.preflights, *(key[1] for key in world.children)) if MARK in name]


def end(world: World, code: int, message: str = "", **more: Any) -> None:
    """Let the trial end, and the plan see it."""
    started(world)
    world.step()
    pod = next(one for name, one in world.preflights.items() if MARK in name)
    ended = {"exitCode": code, "message": message, **more}
    pod["metadata"]["creationTimestamp"] = WALL.isoformat()
    pod["spec"]["nodeName"] = "node-1"
    phase = "Failed" if code else "Succeeded"
    pod["status"] = {
        "phase": phase,
        "containerStatuses": [{"name": "slurmctld", "state": {"terminated": ended}}],
    }


def condition(world: World) -> tuple[str, str]:
    found = world.condition("ConfigApplied")
    return found["reason"], found["message"]


def test_a_change_waits_for_the_jobs_that_would_end() -> None:
    world = closed()
    end(world, 0, "3\n7 RUNNING COMPLETING\n8 PENDING NODE_FAIL\n9 PENDING RUNNING\n")
    for _ in range(10):
        world.step()
    reason, message = condition(world)
    assert reason == Reason.WAITING_FOR_JOBS
    assert "it would end jobs 7, 8: with a copy of its state, slurmctld says that job 7, RUNNING, becomes" in message
    assert "PartitionName=night" in world.slurm_conf
    assert trials(world) == []
    world.now += AGAIN + 1
    end(world, 0, "1\n")
    world.settle()
    assert "PartitionName=night" not in world.slurm_conf
    assert trials(world) == []


def test_the_same_change_is_tried_again_with_the_jobs_there_are_then() -> None:
    world = closed()
    end(world, 0, "1\n")
    world.settle()
    assert "PartitionName=night" not in world.slurm_conf
    world.raw["spec"] = TWO
    world.settle()
    world.raw["spec"] = ONE
    assert MARK in started(world).preflight.name


def test_both_trials_run_at_once() -> None:
    world = closed()
    jobs = started(world).preflight
    names = [one.preflight.name for one in world.plan().actions if isinstance(one, StartPreflight)]
    assert len(names) == 2
    assert jobs.name in names


def test_what_slurmctld_refuses_with_its_jobs_is_refused() -> None:
    world = closed()
    end(world, 1, "slurmctld: fatal: read_slurm_conf: Requested topology configuration is not available")
    for _ in range(10):
        world.step()
    reason, message = condition(world)
    assert reason == Reason.CONFIG_REFUSED
    assert "slurmctld refuses it with the nodes and jobs there are: " in message
    assert "topology" in message
    assert "PartitionName=night" in world.slurm_conf


@pytest.mark.parametrize(
    ("code", "message", "more"),
    [(NOT_COPIED, "its image has no squeue", {}), (2, "", {"reason": "Error"}), (137, "", {"reason": "OOMKilled"})],
)
def test_without_a_copy_the_rules_alone_guard_and_an_event_says_so(
    code: int, message: str, more: dict[str, Any]
) -> None:
    world = closed()
    end(world, code, message, **more)
    told: EmitEvent = until(world, EmitEvent)
    while told.reason != Reason.STATE_NOT_TRIED:
        world.step()
        told = until(world, EmitEvent)
    assert "is applied without a trial with a copy of the jobs" in told.message
    world.settle()
    assert "PartitionName=night" not in world.slurm_conf


def test_a_pod_that_cannot_be_created_holds_the_change() -> None:
    world = closed()
    tried = started(world).preflight
    world.memory.writes.denied[tried.pod.key] = Denied("", "exceeded quota", world.now)
    for _ in range(3):
        world.step()
    assert condition(world)[0] == Reason.CONFIG_UNTRIED
    assert "cannot be created: exceeded quota" in condition(world)[1]


@pytest.mark.parametrize("why", ["no job", "no state", "too large"])
def test_where_there_is_nothing_to_try_nothing_is_tried(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"controller": {"persistence": {"enabled": False}}} if why == "no state" else {}
    world = closed(**spec)
    if why == "no job":
        world.use = Use(0.0, "")
    elif why == "too large":
        monkeypatch.setattr("slinky_operator.cluster.rollout.preflight.jobs_copy.MOST_BYTES", MOST_BYTES // 10**4)
    with pytest.raises(AssertionError, match="no trial of jobs"):
        started(world)


def test_changes_of_a_job_that_are_no_harm() -> None:
    said = (
        "5\n1 RUNNING SUSPENDED\n2 PENDING CONFIGURING\n3 FAILED NODE_FAIL\nnonsense\n4 RUNNING PENDING\n5 PENDING GONE"
    )
    assert [one.job for one in harmed(said)] == [4, 5]


@pytest.mark.parametrize(
    ("change", "touches"),
    [
        ({"slurm.conf": ("PartitionName=b Nodes=ALL\n", "")}, True),
        ({"slurm.conf": ("State=UP", "State=INACTIVE")}, False),
        ({"slurm.conf": ("NodeName=m1", "NodeName=m2")}, True),
        ({"slurm.conf": ("CPUs=1", "CPUs=2")}, True),
        ({"slurm.conf": ("Weight=1", "Weight=2")}, False),
        ({"slurm.conf": ("Licenses=a:2", "Licenses=a:1")}, True),
        ({"slurm.conf": ("Licenses=a:2", "Licenses=a:3")}, False),
        ({"slurm.conf": ("GresTypes=gpu", "GresTypes=gpu,tape")}, False),
        ({"slurm.conf": ("GresTypes=gpu", "GresTypes=tape")}, True),
        ({"slurm.conf": ("MinJobAge=1", "MinJobAge=2")}, False),
        ({"topology.yaml": ("rack1", "rack2")}, True),
        ({"cgroup.conf": ("disabled", "autodetect")}, False),
    ],
)
def test_which_changes_touch_jobs(change: dict[str, tuple[str, str]], touches: bool) -> None:
    files = {
        "slurm.conf": "MinJobAge=1\nLicenses=a:2\nGresTypes=gpu\nNodeName=m1 CPUs=1 Weight=1\n"
        "PartitionName=a Nodes=ALL State=UP\nPartitionName=b Nodes=ALL\n",
        "topology.yaml": "rack1",
        "cgroup.conf": "CgroupPlugin=disabled\n",
    }
    changed = {name: text.replace(*change[name]) if name in change else text for name, text in files.items()}
    assert changed != files
    assert touches_jobs(ConfFiles.read(files), ConfFiles.read(changed)) is touches
    assert not touches_jobs(ConfFiles(), ConfFiles.read(changed))
