"""Nodes outside Kubernetes that do not resolve: left out until they do, named, and blocking nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent, Reload, asks
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.rollout.agent_questions import Names, NamesQuestion
from slinky_operator.pod_programs.agent import hosts
from slinky_operator.slurm.conf import parse
from slinky_operator.slurm.connection.contact import Trouble
from slurm_client.models import Node
from slurm_client.notation import hostlist
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, cluster_object

METAL = {"nodes": [{"name": "metal[1-3]", "config": "CPUs=4"}]}


def future(world: World) -> dict[str, bool]:
    """Lines of nodes, and whether they are of the future."""
    return {key: line.get("State") == "FUTURE" for key, line in parse(world.slurm_conf).nodes.items()}


def begun(spec: dict[str, Any], *missing: str) -> World:
    world = World(cluster_object(spec), missing=frozenset(missing))
    world.settle()
    assert world.raw["status"]["isReady"] is True
    return world


def test_a_new_cluster_is_ready_and_names_the_nodes_without_an_address() -> None:
    world = World(cluster_object(METAL), missing=frozenset({"metal1", "metal2", "metal3"}))
    log = world.settle()
    assert world.raw["status"]["isReady"] is True
    assert future(world) == {"metal[1-3]": True}
    assert "no address for nodes metal1, metal2, metal3" in world.condition("Degraded")["message"]
    short = "not every node outside Kubernetes has an address (see Degraded)"
    assert (world.condition("ConfigApplied")["status"], world.condition("ConfigApplied")["message"]) == ("True", short)
    assert world.condition("Degraded")["reason"] == "NodesWithoutAddress"
    assert len([one for one in log if isinstance(one, Reload)]) == 1
    told = [one for one in log if isinstance(one, EmitEvent) and one.reason == "NodesWithoutAddress"]
    assert len(told) == 1
    world.now += 100
    world.settle()
    assert not [one for one in world.log if isinstance(one, EmitEvent)], "it is reported once"


def test_nodes_with_an_address_are_there_before_the_configuration_counts_as_live() -> None:
    world = World(cluster_object(METAL))
    live = []
    for _ in range(40):
        world.step()
        if world.condition("ConfigApplied")["status"] == "True":
            live.append(future(world))
    assert live[0] == {"metal[1-3]": False}
    assert world.condition("Degraded")["status"] == "False"


def test_one_that_nobody_finds_does_not_keep_the_others_out() -> None:
    world = begun(METAL, "metal2")
    assert future(world) == {"metal1,metal3": False, "metal2": True}
    world.missing = frozenset()
    world.now += 20
    world.settle()
    assert future(world) == {"metal[1-3]": False}
    assert world.condition("Degraded")["status"] == "False"


def test_addresses_and_ports_stay_with_their_nodes() -> None:
    config = "CPUs=4 NodeAddr=a[1-3].example Port=[7001-7003] Features=x"
    world = begun({"nodes": [{"name": "metal[1-3]", "config": config}]}, "a2.example")
    lines = [line for line in world.slurm_conf.splitlines() if line.startswith("NodeName=")]
    assert lines == [
        "NodeName=metal1,metal3 CPUs=4 NodeAddr=a1.example,a3.example Port=7001,7003 Features=x",
        "NodeName=metal2 CPUs=4 NodeAddr=a2.example Port=7002 Features=x State=FUTURE",
    ]


def test_literal_addresses_and_states_without_one_need_no_name_server() -> None:
    spec = {
        "nodes": [
            {"name": "a[1-2]", "config": "NodeAddr=10.0.0.[1-2]"},
            {"name": "b", "config": "NodeAddr=fd00::1"},
            {"name": "c", "config": "State=CLOUD"},
            {"name": "d", "config": "State=FUTURE"},
        ]
    }
    world = begun(spec, "a1", "a2", "b", "c", "d")
    assert future(world) == {"a[1-2]": False, "b": False, "c": False, "d": True}
    assert world.condition("Degraded")["status"] == "False"


def test_a_node_that_was_live_stays_whatever_a_name_server_says() -> None:
    world = begun(METAL)
    before = world.slurm_conf
    world.missing = frozenset({"metal1"})
    world.now += 100
    world.settle()
    assert world.slurm_conf == before
    assert "no address for node metal1 where slurmctld runs:" in world.condition("Degraded")["message"]
    world.raw["spec"] = {**METAL, "extraConf": "KillWait=7"}
    world.settle()
    assert future(world) == {"metal[1-3]": False}, "jobs may run there"


def test_an_operator_that_starts_knows_from_the_files_how_far_each_node_is() -> None:
    world = begun(METAL, "metal2")
    before = world.slurm_conf
    world.memory = Memory("cluster-uid")
    world.stale = {}
    for _ in range(3):
        made = world.plan()
        assert not [one for one in made.actions if isinstance(one, Reload)]
        world.step()
    assert world.slurm_conf == before


def test_an_agent_that_cannot_be_asked_changes_nothing_and_is_named() -> None:
    world = begun(METAL, "metal2")
    before = world.slurm_conf
    assert world.memory.answers.of(NamesQuestion) is not None
    world.memory.answers.note(
        NamesQuestion, Names("pod-uid", world.now + 1e6, why="the agent beside slurmctld cannot be asked: no")
    )
    world.raw["spec"] = {"nodes": [*METAL["nodes"], {"name": "other", "config": "CPUs=1"}]}
    world.settle()
    world.now += 15
    world.settle()
    assert future(world)["other"] is True
    assert world.slurm_conf != before
    assert "cannot be asked: no" in world.condition("Degraded")["message"]
    assert world.raw["status"]["isReady"] is True


def test_a_node_that_was_never_live_goes_back_where_slurm_does_not_show_it() -> None:
    """As an earlier version has left it: all as the spec says, and slurmctld asked again and again."""
    world = begun(METAL)
    del world.children["ConfigMap", "slurm-config-good"]
    world.raw["status"]["config"] = {}
    world.missing = frozenset({"metal1", "metal2"})
    world.memory = Memory("cluster-uid")
    world.memory.answers.note(NamesQuestion, Names("pod-uid", world.now, frozenset({"metal3"}), world.missing))
    assert world.slurm is not None
    world.slurm = replace(world.slurm, nodes={name: Node(name=name) for name in ("metal1", "metal3")})
    world.settle()
    assert future(world) == {"metal1,metal3": False, "metal2": True}, "Slurm shows metal1: it has an address"


def test_while_a_change_is_on_its_way_nobody_is_asked() -> None:
    world = begun(METAL, "metal2")
    world.raw["spec"] = {**METAL, "extraConf": "KillWait=7"}
    world.now += 100
    while world.condition("ConfigApplied")["status"] != "True" or "KillWait=7" not in world.slurm_conf:
        made = world.step()
        if world.condition("ConfigApplied")["status"] != "True":
            assert not [one for one in made.actions if asks(one, NamesQuestion)]
    assert future(world) == {"metal1,metal3": False, "metal2": True}


def test_a_slurmctld_that_reads_its_files_is_waited_for_and_not_told_again() -> None:
    world = settled()
    world.raw["spec"] = {"extraConf": "KillWait=7"}
    while not (sent := [one for one in world.plan().actions if isinstance(one, Reload)]):
        world.step()
    # The answer does not come, and slurmctld answers nothing else meanwhile.
    (reload,) = sent
    world.memory.rollout.loaded = Loaded(
        reload.pod_uid, reload.change, world.now, proven=False, lost=True, asked=7, since=world.now
    )
    world.trouble(Trouble.CONTROLLER_DOWN)
    for _ in range(20):
        assert not [one for one in world.step().actions if isinstance(one, Reload)]
    message = world.condition("ConfigApplied")["message"]
    assert message.startswith("slurmctld was asked to reconfigure and has not read its files yet"), message
    world.now += 100
    world.step()
    assert "for more than 60 s" in world.condition("ConfigApplied")["message"]
    assert world.slurm is not None
    world.slurm = replace(world.slurm, contact=settled().slurm.contact)  # type: ignore[union-attr]
    (again,) = [one for one in world.plan().actions if isinstance(one, Reload)]
    assert again.before is not None
    assert again.before.asked == 7, "only the look is repeated"


def test_a_pass_that_finds_the_same_lists_does_not_take_them_apart_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(cluster_object({"nodes": [{"name": "many[00001-16000]"}]}))
    world.settle()
    taken: list[str] = []

    def noted(take: Callable[[str], tuple[str, ...]]) -> Callable[[str], tuple[str, ...]]:
        def apart(text: str) -> tuple[str, ...]:
            taken.append(text)
            return take(text)

        return apart

    monkeypatch.setattr(hostlist, "expand", noted(hostlist.expand))
    monkeypatch.setattr(hosts, "expand", noted(hosts.expand))
    world.plan()
    assert taken.count("many[00001-16000]") <= 1
