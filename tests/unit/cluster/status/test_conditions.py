"""The conditions of a Cluster: Ready is about Slurm alone, and a restart of the operator changes none."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, EmitEvent, asks
from slinky_operator.cluster.adoption import not_ours
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.kube.events import EventType
from slinky_operator.kube.resources import STATEFULSETS
from slinky_operator.slurm.connection.contact import Contact, ContactState, Trouble
from tests.unit.cluster.parts.keys.lifecycle.worlds import generated
from tests.unit.cluster.rollout_stories import PARTITION, job, settled
from tests.unit.cluster.world import WALL, World, cluster_object, node_set_object


def restart(world: World) -> None:
    """Another operator, which remembers nothing."""
    world.memory, world.slurm = Memory("cluster-uid"), None


def told(done: list[Action], kind: str = "Cluster") -> list[tuple[str, str]]:
    return [(str(one.type), one.reason) for one in done if isinstance(one, EmitEvent) and one.obj["kind"] == kind]


def conditions(world: World) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in copy.deepcopy(world.raw["status"]["conditions"])}


def test_a_refused_configuration_leaves_the_cluster_ready() -> None:
    world = settled()
    world.refuses = lambda text: "unrecognized key: Bogus" if "Bogus" in text else ""
    world.raw["spec"] = {"extraConf": "Bogus=1"}
    done = world.settle()
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Ready")["message"] == "slurmctld and slurmrestd answer"
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"
    assert (world.condition("Degraded")["status"], world.condition("Degraded")["reason"]) == ("True", "ConfigRefused")
    assert told(done) == [("Warning", "ConfigRefused")]


def test_a_partition_that_waits_for_jobs_leaves_the_cluster_ready_and_is_no_warning() -> None:
    world = settled(PARTITION)
    world.use = Use(0.0, "", (job(7, "night"),))
    world.states = {"night": "INACTIVE"}
    world.raw["spec"] = {}
    done = [one for _ in range(12) for one in world.step().actions]
    assert any(asks(one, UseQuestion) for one in done)
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("ConfigApplied")["reason"] == "PartitionInUse"
    assert world.condition("Progressing")["reason"] == "PartitionInUse"
    assert world.condition("Degraded")["status"] == "False"
    assert ("Normal", "PartitionInUse") in told(done)
    assert not any(kind == "Warning" for kind, _ in told(done))


def test_a_partition_that_nobody_uses_goes_without_a_word_of_use() -> None:
    world = settled(PARTITION)
    world.states = {"night": "INACTIVE"}
    world.raw["spec"] = {}
    done: list[Action] = []
    reasons = set()
    for _ in range(30):
        done += world.step().actions
        reasons.add(world.condition("ConfigApplied")["reason"])
    assert "night" not in world.slurm_conf
    assert reasons == {"ConfigPending", "AsExpected"}
    assert [reason for _, reason in told(done)] == ["ConfigApplied"]


def test_a_configuration_that_cannot_be_written_says_which_object_is_in_the_way() -> None:
    world = settled()
    world.memory.writes.denied["ConfigMap", "slurm-config"] = Denied("", "there is one already", world.now)
    world.children["ConfigMap", "slurm-config"]["metadata"]["labels"] = {}
    world.raw["spec"] = {"extraConf": "KillWait=7"}
    for _ in range(12):
        world.step()
    applied = world.condition("ConfigApplied")
    assert applied["reason"] == "ChildRefused"
    assert applied["message"] == "ConfigMap slurm-config cannot be written: there is one already"


def test_a_configuration_that_a_key_keeps_from_being_loaded_says_so() -> None:
    world = generated("slurm.key")
    world.secrets["slurm-auth-slurm"], world.owners["slurm-auth-slurm"] = {"slurm.key": b"other" * 20}, ""
    world.raw["spec"] = {"extraConf": "KillWait=7"}
    world.settle()
    applied = world.condition("ConfigApplied")
    assert applied["reason"] == "KeyChanged"
    assert "so no configuration is loaded" in applied["message"]
    assert world.condition("Degraded")["message"] == applied["message"]


def test_an_object_that_was_handed_over_is_taken_at_once() -> None:
    world = settled()
    key = "Service", "slurm-nodes"
    ours = world.children.pop(key)
    world.memory.writes.denied[key] = Denied("", "there is one already", world.now)
    world.step()
    assert world.condition("Degraded")["reason"] == "ChildRefused"
    world.children[key] = ours
    world.step()
    assert world.condition("Degraded")["status"] == "False"


def test_the_words_about_an_object_of_others_delete_nothing_and_hand_it_over() -> None:
    cluster = Cluster.parse(cluster_object())
    words = not_ours(STATEFULSETS, "slurm-controller", cluster)
    assert "delete" not in words
    assert "kubectl -n here get statefulsets slurm-controller -o yaml" in words
    assert (
        "kubectl -n here label --overwrite statefulsets slurm-controller app.kubernetes.io/managed-by=slurm-operator"
        " cluster.slinky.slurm.net/name=slurm cluster.slinky.slurm.net/uid=cluster-uid."
    ) in words


def test_a_new_cluster_whose_configuration_is_refused_says_so_and_not_that_it_starts() -> None:
    world = World(cluster_object({"extraConf": "Include /etc/passwd"}), server="")
    world.settle()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ConfigRefused")
    assert "spec.extraConf" in ready["message"]
    assert world.condition("Progressing")["status"] == "False"


def test_a_restart_changes_no_condition_and_tells_nothing() -> None:
    world = settled(None, node_set_object("bad", {"partition": {"config": "MaxTime 1"}}))
    before = conditions(world)
    restart(world)
    done: list[Action] = []
    for _ in range(20):
        done += world.step().actions
        seen = conditions(world)
        assert {kind: seen[kind] for kind in before} == before
    assert told(done) == []
    assert told(done, "NodeSet") == []


def test_an_operator_that_only_connects_does_not_yet_say_that_slurm_is_away() -> None:
    world = settled()
    before = conditions(world)
    assert world.slurm is not None
    world.slurm = replace(world.slurm, contact=Contact(ContactState.CONNECTING, WALL, "no answer yet"))
    world.memory = Memory("cluster-uid")
    world.step()
    assert conditions(world)["Ready"] == before["Ready"]
    assert world.raw["status"]["isReady"] is True
    world.trouble(Trouble.NO_ANSWER, "cannot connect")
    world.step()
    assert world.condition("Ready")["reason"] == "SlurmUnreachable"


@pytest.mark.parametrize("known", ["another server", "no server"])
def test_what_is_known_of_one_slurm_says_nothing_of_another(known: str) -> None:
    spec = {"server": "http://there:6820", "token": {"secretRef": "mine"}}
    meant = {"mine": "http://there:6820 http://elsewhere:6820"}
    world = World(cluster_object(spec), secrets={"mine": {"auth-token": b"abc"}}, meant_for=meant)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    assert world.slurm is not None
    world.slurm = replace(world.slurm, contact=Contact(ContactState.CONNECTING, WALL, "no answer yet"))
    if known == "no server":
        world.server = ""
    else:
        world.raw["spec"] = {**spec, "server": "http://elsewhere:6820"}
    world.plan()
    status = world.plan().status
    assert status is not None
    assert status.is_ready is False


def test_slurm_that_comes_back_is_told_once() -> None:
    world = settled()
    world.trouble(Trouble.CONTROLLER_DOWN, "connect failure")
    done = list(world.step().actions)
    assert world.slurm is not None
    world.slurm = replace(world.slurm, contact=Contact(ContactState.READY, WALL, ""))
    done += world.step().actions
    restart(world)
    done += world.settle()
    ready = [one for one in done if isinstance(one, EmitEvent) and one.reason == "Ready"]
    assert [(one.type, one.message) for one in ready] == [(EventType.NORMAL, "slurmctld and slurmrestd answer")]
