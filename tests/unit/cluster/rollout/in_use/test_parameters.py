"""Keys of slurm.conf that would end jobs keep their running value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slinky_operator.cluster.rollout.in_use.parameters import JobsThere, keys_that_stay, tasks_in
from slinky_operator.cluster.rollout.in_use.removals import JobUse, Use
from slinky_operator.slurm.conf.syntax.parsed import parse
from tests.unit.cluster.rollout_stories import job, settled
from tests.unit.cluster.world import World, cluster_object

IDLE = JobsThere((), 0)


def running(number: int) -> JobUse:
    return replace(job(number), holding=True)


@pytest.mark.parametrize(
    ("before", "after", "records", "stays"),
    [
        ("MaxJobCount=100", "MaxJobCount=50", 49, False),
        ("MaxJobCount=100", "MaxJobCount=50", 50, True),  # 24.11 holds fewer than it says
        ("MaxJobCount=100", "MaxJobCount=200", 99, False),
        ("", "MaxJobCount=10000", 12000, False),
        ("", "MaxJobCount=9999", 9999, True),
        ("MaxJobCount=20000", "", 12000, True),
        ("MaxJobCount=20000", "", 9000, False),
        ("", "MaxJobId=4", 5, True),
        ("", "FirstJobId=100000", 5, False),
        ("", "FirstJobId=67043320", 9, True),
        ("MaxJobCount=5\nMaxJobId=100", "MaxJobCount=5\nMaxJobId=50", 40, False),
    ],
)
def test_room_for_job_records_shrinks_only_when_they_have_gone(
    before: str, after: str, records: int, *, stays: bool
) -> None:
    old, new = parse(before), parse(after)
    kept = keys_that_stay(old, new, JobsThere((), records))
    assert bool(kept.values) is stays
    assert bool(kept.why) is stays
    assert all(kept.values[key] == old.keys.get(key, ()) for key in kept.values)


def test_a_list_of_tasks_that_slurm_has_cut_counts_as_many_as_there_may_be() -> None:
    old, new = parse("MaxArraySize=500"), parse("MaxJobCount=400\nMaxArraySize=500")
    assert not keys_that_stay(old, new, JobsThere((), 20)).why
    assert keys_that_stay(old, new, JobsThere((), 20, shortened=1)).why == (
        "MaxJobCount stays 10000 while there are 519 job records",
    )


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("4", 1),
        ("0-3", 4),
        ("0-3,7", 5),
        ("1-9:2", 5),
        ("0-9%2", 10),
        ("0-1,5-...", None),
        ("0x1f", 1),
        ("9-1", 1),
        ("", 1),
        ("0-999999999", 10**9),
    ],
)
def test_tasks_of_an_array_count_singly(text: str, tasks: int | None) -> None:
    assert tasks_in(text) == tasks


def test_a_key_waits_for_the_jobs_that_run_and_no_longer() -> None:
    world = settled()
    world.use = Use(0.0, "", (running(7), running(8), job(9)), records=12)
    world.raw["spec"] = {"extraConf": "PrologFlags=Alloc\nKillWait=9"}
    world.settle()
    assert "PrologFlags" not in world.slurm_conf
    assert "KillWait=9" in world.slurm_conf, "what harms no job is applied"
    condition = world.condition("ConfigApplied")
    assert (condition["status"], condition["reason"]) == ("False", "WaitingForJobs")
    assert condition["message"] == "PrologFlags stays unset until no job runs; there are jobs 7, 8"
    assert world.condition("Progressing")["reason"] == "WaitingForJobs"
    assert world.condition("Degraded")["status"] == "False"
    world.use = Use(0.0, "", (job(9),), records=12)
    world.now += 10
    world.settle()
    assert "PrologFlags=Alloc" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_key_of_the_operators_that_the_user_has_changed_waits_too() -> None:
    world = settled()
    world.use = Use(0.0, "", (running(7),))
    world.raw["spec"] = {"extraConf": "ProctrackType=proctrack/pgid"}
    world.settle()
    assert "ProctrackType=proctrack/linuxproc" in world.slurm_conf
    assert world.slurm_conf.count("ProctrackType") == 1


def test_fewer_job_records_than_there_are_wait_and_say_how_many_there_are() -> None:
    world = settled({"extraConf": "MaxJobCount=500"})
    world.use = Use(0.0, "", (running(7),), records=40)
    world.raw["spec"] = {"extraConf": "MaxJobCount=30"}
    world.settle()
    assert "MaxJobCount=500" in world.slurm_conf
    condition = world.condition("ConfigApplied")
    assert (condition["reason"], condition["message"]) == (
        "WaitingForJobs",
        "MaxJobCount stays 500 while there are 40 job records",
    )
    world.use = Use(0.0, "", (running(7),), records=29)
    world.now += 10
    world.settle()
    assert "MaxJobCount=30" in world.slurm_conf


def test_a_limit_that_is_taken_away_is_slurms_own() -> None:
    world = settled({"extraConf": "MaxJobCount=20000"})
    world.use = Use(0.0, "", records=10_000)
    world.raw["spec"] = {}
    world.settle()
    assert "MaxJobCount=20000" in world.slurm_conf
    assert "while there are 10000 job records" in world.condition("ConfigApplied")["message"]


def test_no_answer_keeps_every_key_in_question() -> None:
    world = settled()
    world.use = Use(0.0, "", why="Unable to contact slurm controller")
    world.raw["spec"] = {"extraConf": "PrologFlags=Alloc\nMaxJobCount=20"}
    world.settle()
    assert "PrologFlags" not in world.slurm_conf
    assert "MaxJobCount" not in world.slurm_conf
    assert world.condition("ConfigApplied")["message"] == (
        "MaxJobCount stays 10000 until Slurm says how many job records there are (Unable to contact slurm controller); "
        "PrologFlags stays unset until Slurm says which jobs run (Unable to contact slurm controller)"
    )


def test_a_first_configuration_that_never_ran_can_be_mended_while_nobody_answers() -> None:
    world = World(cluster_object({"extraConf": "SelectType=select/linear"}))
    for _ in range(3):
        world.step()
        world.slurm = None
    assert "select/linear" in world.slurm_conf
    world.raw["spec"] = {}
    for _ in range(3):
        world.step()
        world.slurm = None
    assert "SelectType=select/cons_tres" in world.slurm_conf


def test_a_key_that_neither_release_knows_waits_for_nobody() -> None:
    kept = keys_that_stay(parse("A=1\n"), parse("Bogus=1\n"), JobsThere((7,), 1))
    assert not kept.values
