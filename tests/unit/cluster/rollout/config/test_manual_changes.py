"""Changes of partitions with `scontrol` by an administrator survive a change of the configuration."""

from __future__ import annotations

import pytest

from slinky_api.conditions import LONGEST_AS_EXPECTED
from slinky_operator.cluster.actions import EmitEvent, Write, asks
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.slurm_questions import PartitionStates, StatesQuestion
from slinky_operator.slurm.conf.syntax.parsed import parse
from slinky_operator.slurm.conf.syntax.set_states import SetState
from tests.unit.cluster.rollout_stories import PARTITION, job, settled
from tests.unit.cluster.world import World, node_set_object, subject

OTHER = {**PARTITION, "extraConf": "KillWait=9"}


def state(world: World, name: str = "night") -> str:
    return parse(world.slurm_conf).partitions[name].get("State")


@pytest.mark.parametrize("by_hand", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_partition_that_was_closed_by_hand_stays_closed(by_hand: str) -> None:
    world = settled(PARTITION)
    world.states = {"night": by_hand, "all": "UP"}
    world.raw["spec"] = OTHER
    done = world.settle()
    assert "KillWait=9" in world.slurm_conf
    assert state(world) == by_hand
    assert state(world, "all") == "UP"
    assert world.condition("ConfigApplied")["status"] == "True"
    assert world.condition("ConfigApplied")["message"] == (
        f"partition night stays {by_hand}, as set by scontrol, where the spec says UP; "
        "`scontrol update PartitionName=night State=UP` takes it back"
    )
    told = [one.message for one in done if isinstance(one, EmitEvent) and one.reason == "PartitionStateKept"]
    assert len(told) == 1
    assert f"night {by_hand}" in told[0]


def test_many_partitions_and_what_is_wrong_besides_are_told_in_a_sentence() -> None:
    partitions = [{"name": f"p{number}-{'x' * 55}", "config": "MaxTime=5"} for number in range(9)]
    undefined = [{"name": "none", "nodeSets": [f"n{number}-{'y' * 50}" for number in range(4)]}]
    world = settled({"partitions": partitions})
    world.states = {str(one["name"]): "INACTIVE" for one in partitions}
    world.add(*(node_set_object(f"bad{number}", {"partition": {"config": "MaxTime 1"}}) for number in range(3)))
    world.raw["spec"] = {"partitions": [*partitions, *undefined]}
    world.settle()
    condition = world.condition("ConfigApplied")
    assert (condition["status"], condition["reason"]) == ("True", "AsExpected")
    assert condition["message"].startswith("left as it was: NodeSet bad0: spec.partition.config and 2 more (see")
    assert condition["message"].endswith("; and 2 more")
    assert len(condition["message"]) <= LONGEST_AS_EXPECTED


def test_a_node_sets_partition_and_the_one_over_all_stay_closed_when_another_node_set_comes() -> None:
    world = settled(None, node_set_object("compute"))
    world.states = {"compute": "DRAIN", "all": "DOWN"}
    world.add(node_set_object("more"))
    world.settle()
    assert (state(world, "compute"), state(world, "all"), state(world, "more")) == ("DRAIN", "DOWN", "UP")


def test_it_stays_closed_over_the_next_change_and_without_an_answer() -> None:
    world = settled(PARTITION)
    world.states = {"night": "DRAIN"}
    world.raw["spec"] = OTHER
    world.settle()
    world.raw["spec"] = PARTITION
    world.settle()
    assert state(world) == "DRAIN"
    world.memory.answers.note(StatesQuestion, None)
    assert not any(isinstance(one, Write) for one in world.plan().actions)


def test_what_is_open_again_by_hand_is_opened_in_the_file_without_another_change() -> None:
    world = settled(PARTITION)
    world.states = {"night": "DRAIN"}
    world.raw["spec"] = OTHER
    world.settle()
    world.states = {"night": "UP"}
    world.now += 60
    world.settle()
    assert state(world) == "UP"
    assert not parse(world.slurm_conf).set_states
    assert world.condition("ConfigApplied")["message"] == ""


def test_another_state_in_the_spec_wins_over_one_set_before() -> None:
    world = settled(PARTITION)
    world.states = {"night": "DRAIN"}
    world.raw["spec"] = OTHER
    world.settle()
    world.raw["spec"] = {"partitions": [{"name": "night", "nodeSets": ["ALL"], "config": "MaxTime=60 State=DOWN"}]}
    world.settle()
    assert state(world) == "DOWN"
    assert not parse(world.slurm_conf).set_states


def test_a_state_of_the_spec_is_nobodys_by_hand() -> None:
    down = {"partitions": [{"name": "night", "nodeSets": ["ALL"], "config": "State=DOWN"}]}
    world = settled(down)
    world.states = {"night": "DOWN"}
    world.raw["spec"] = PARTITION
    world.settle()
    assert state(world) == "UP"


def test_nothing_is_written_until_slurm_has_shown_the_states() -> None:
    world = settled(PARTITION)
    world.raw["spec"] = OTHER

    def silent() -> None:
        for action in world.plan().actions:
            if asks(action, StatesQuestion):
                answer = PartitionStates(world.now, subject(action).hash, why="Unable to contact slurm controller")
                world.memory.answers.note(StatesQuestion, answer)
            elif not isinstance(action, Write):
                world.happen(action)
        world.now += 0.5

    for _ in range(20):
        silent()
        writes = [one for one in world.plan().actions if isinstance(one, Write) and one.child.name == "slurm-config"]
        assert not writes
    made = world.plan()
    assert made.status is not None
    (condition,) = (one for one in made.status.conditions if one.type == "ConfigApplied")
    assert condition.message == ("Slurm is asked for the states of its partitions (Unable to contact slurm controller)")
    world.now += 10
    world.settle()
    assert "KillWait=9" in world.slurm_conf


def test_at_rest_nobody_is_asked_for_states() -> None:
    world = settled(PARTITION)
    world.now += 120
    assert not any(asks(one, StatesQuestion) for one in world.settle())


def test_a_refused_text_keeps_a_node_sets_partition_closed_and_so_does_its_mending() -> None:
    world = settled(None, node_set_object("compute"))
    world.states = {"compute": "DRAIN"}
    world.node_sets["compute"]["spec"]["partition"] = {"enabled": True, "config": "MaxTime=5"}
    world.settle()
    assert state(world, "compute") == "DRAIN"
    world.node_sets["compute"]["spec"]["partition"] = {"enabled": True, "config": "Include=x"}
    world.settle()
    assert state(world, "compute") == "DRAIN"
    world.node_sets["compute"]["spec"]["partition"] = {"enabled": True, "config": "MaxTime=6"}
    world.settle()
    assert (state(world, "compute"), parse(world.slurm_conf).partitions["compute"].get("MaxTime")) == ("DRAIN", "6")


def test_a_partition_goes_only_when_slurm_shows_it_closed() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", states={"night": "UP"})
    world.raw["spec"] = {}
    for _ in range(3):
        world.settle()
        world.now += 10
    assert state(world) == "INACTIVE"
    condition = world.condition("ConfigApplied")
    assert (condition["status"], condition["reason"]) == ("False", "PartitionInUse")
    assert condition["message"] == (
        "partition night stays: Slurm shows it UP, though it is to be closed; "
        "`scontrol update PartitionName=night State=INACTIVE` closes it"
    )
    world.use = Use(0.0, "", (job(7, "night"),), states={"night": "INACTIVE"})
    world.now += 10
    world.settle()
    assert "for job 7" in world.condition("ConfigApplied")["message"]
    world.use = Use(0.0, "", states={"night": "INACTIVE"})
    world.now += 10
    world.settle()
    assert "night" not in parse(world.slurm_conf).partitions


def test_a_flag_that_keeps_states_is_out_of_the_file_while_a_partition_is_closed() -> None:
    flags = {"extraConf": "ReconfigFlags=KeepPartState,KeepPowerSaveSettings"}
    world = settled({**PARTITION, **flags})
    assert "ReconfigFlags=KeepPartState,KeepPowerSaveSettings\n" in world.slurm_conf
    world.use = Use(0.0, "", (job(7, "night"),), states={"night": "INACTIVE"})
    world.raw["spec"] = flags
    world.settle()
    assert "ReconfigFlags=KeepPowerSaveSettings\n" in world.slurm_conf
    world.use = Use(0.0, "", states={"night": "INACTIVE"})
    world.now += 10
    world.settle()
    assert "night" not in parse(world.slurm_conf).partitions
    assert "ReconfigFlags=KeepPartState,KeepPowerSaveSettings\n" in world.slurm_conf


def test_a_flag_that_keeps_states_is_out_until_slurm_has_read_another_state() -> None:
    flags = {"extraConf": "ReconfigFlags=KeepPartState"}
    world = settled({**PARTITION, **flags})
    world.use = Use(0.0, "", (job(7, "night"),), states={"night": "INACTIVE"})
    world.raw["spec"] = flags
    world.settle()
    world.tried = []
    world.raw["spec"] = {**PARTITION, **flags}
    world.states = {"night": "INACTIVE"}
    read = []
    for _ in range(40):
        world.step()
        if world.slurm_conf not in read and world.memory.rollout.loaded is not None:
            read.append(world.slurm_conf)
        if "State=UP" in world.slurm_conf.rpartition("night")[2]:
            world.states = {"night": "UP"}
    assert ["KeepPartState" in text for text in read[-2:]] == [False, True]
    assert [parse(text).partitions["night"].get("State") for text in read[-2:]] == ["UP", "UP"]
    assert not parse(world.slurm_conf).set_states
    assert world.condition("ConfigApplied")["status"] == "True"


def test_a_flag_that_keeps_whole_partitions_is_refused_by_name() -> None:
    world = settled()
    world.raw["spec"] = {"extraConf": "ReconfigFlags=KeepPartInfo"}
    world.settle()
    condition = world.condition("ConfigApplied")
    assert condition["reason"] == "ConfigRefused"
    assert "ReconfigFlags=KeepPartInfo" in condition["message"]


def test_marks_are_read_as_they_are_written_and_no_text_of_a_users_is_one() -> None:
    world = settled(PARTITION)
    world.states = {"night": "DRAIN"}
    world.raw["spec"] = {**PARTITION, "extraConf": "KillWait=9\n# all is DOWN by scontrol, not UP as in the spec"}
    world.settle()
    assert parse(world.slurm_conf).set_states == {"night": SetState("DRAIN", "UP")}
