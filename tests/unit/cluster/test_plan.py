"""The decisions of the Cluster controller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api import labels
from slinky_operator.cluster.actions import (
    Action,
    Connect,
    EmitEvent,
    MakeKey,
    Reload,
    ReplacePod,
    TearDown,
    Write,
    asks,
)
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.rollout.agent_questions import FilesQuestion, Mounted
from slinky_operator.cluster.rollout.config import addresses
from slinky_operator.pod_programs.agent.hosts import MOST
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.world import World, cluster_object, node_set_object, subject

GONE = "2026-01-01T00:00:00Z"


def kinds(actions: Iterable[Action]) -> list[str]:
    return [one.child.resource.kind if isinstance(one, Write) else type(subject(one)).__name__ for one in actions]


def settled(world: World) -> World:
    world.settle()
    assert world.raw["status"]["isReady"] is True
    return world


def test_an_empty_spec_becomes_a_ready_cluster() -> None:
    world = World()
    done = kinds(world.settle())
    assert world.raw["status"]["isReady"] is True
    assert done.index("SetFinalizer") < done.index("MakeKey") < done.index("StatefulSet")
    assert done.index("ConfigMap") < done.index("StatefulSet") < done.index("FilesQuestion") < done.index("Reload")
    assert labels.FINALIZER_CLUSTER in world.raw["metadata"]["finalizers"]
    status = world.raw["status"]
    assert status["config"]["hash"] == status["config"]["appliedHash"] != ""


def test_a_settled_cluster_needs_nothing() -> None:
    world = settled(World())
    assert all(asks(one, JobsQuestion) for one in world.step().actions)


def test_slurmctld_waits_for_its_keys() -> None:
    world = World()
    first = world.plan()
    assert "StatefulSet" not in kinds(first.actions)
    world.settle()
    assert ("StatefulSet", "slurm-controller") in world.children


def test_keys_of_the_users_are_not_made_and_their_absence_is_told() -> None:
    spec = {"auth": {"slurmKeyRef": {"name": "mine"}, "jwtKeyRef": {"name": "mine"}}}
    world = World(cluster_object(spec), secrets={"mine": {"slurm.key": b"x" * 32}})
    assert not any(isinstance(one, MakeKey) for one in world.settle())
    assert world.raw["status"]["isReady"] is False
    token = world.condition("TokenValid")
    assert token["reason"] == "SecretKeyNotFound"
    assert "jwt_hs256.key" in token["message"]
    # What keys a Secret has is not for everybody who may edit Clusters.
    assert "slurm.key" not in token["message"]


def test_a_node_set_is_listed_only_once_slurmctld_shows_it() -> None:
    world = settled(World())
    world.add(node_set_object("compute"))
    for _ in range(10):
        made = world.step()
        reloaded = any(isinstance(one, Reload) and "compute" in one.partitions for one in world.log)
        assert ("compute" in world.raw["status"]["config"]["nodeSets"]) <= reloaded, made
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]
    assert world.node_sets["compute"]["metadata"]["finalizers"] == [labels.FINALIZER_NODESET_CONFIG]
    assert "PartitionName=compute Nodes=compute" in world.slurm_conf


def test_the_finalizer_of_a_node_set_comes_before_its_lines() -> None:
    world = settled(World())
    world.add(node_set_object("compute"))
    done = kinds(world.step().actions)
    assert done.index("SetFinalizer") < done.index("StartPreflight")


def test_a_node_set_leaves_the_list_before_the_configuration_and_its_finalizer_goes_last() -> None:
    world = World()
    world.add(node_set_object("compute"))
    settled(world)
    world.node_sets["compute"]["metadata"]["deletionTimestamp"] = GONE
    first = world.step()
    assert "ConfigMap" not in kinds(first.actions)
    assert world.raw["status"]["config"]["nodeSets"] == []
    assert "PartitionName=compute" in world.slurm_conf
    done = kinds(world.settle())
    assert done.index("ConfigMap") < done.index("Reload") < done.index("SetFinalizer")
    assert "compute" not in world.node_sets
    assert "PartitionName=compute" not in world.slurm_conf


def test_a_node_set_that_drains_stays_in_the_configuration() -> None:
    world = World()
    world.add(node_set_object("compute", finalizers=[labels.FINALIZER_NODESET_DRAIN]))
    settled(world)
    world.node_sets["compute"]["metadata"]["deletionTimestamp"] = GONE
    assert not [one for one in world.settle() if not asks(one, JobsQuestion)]
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_a_node_set_with_unusable_text_is_left_out_and_told_while_others_go_on() -> None:
    world = settled(World())
    world.add(node_set_object("bad", {"partition": {"config": "MaxTime 1"}}), node_set_object("good"))
    done = world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == ["good"]
    assert world.raw["status"]["isReady"] is True
    left_out = "left as it was: NodeSet bad: spec.partition.config (see its conditions)"
    assert world.condition("ConfigApplied")["message"] == left_out
    assert "NodeSet bad: spec.partition.config: must be words Key=Value" in world.condition("Degraded")["message"]
    told = [one for one in done if isinstance(one, EmitEvent) and one.obj["kind"] == "NodeSet"]
    assert "spec.partition.config" in told[0].message


def test_a_running_node_set_whose_text_becomes_unusable_keeps_its_lines() -> None:
    world = World()
    world.add(node_set_object("compute", {"partition": {"config": "MaxTime=60"}}))
    settled(world)
    world.node_sets["compute"]["spec"]["partition"]["config"] = "MaxTime=60 oops"
    world.settle()
    assert "PartitionName=compute Nodes=compute MaxTime=60 State=UP" in world.slurm_conf
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_an_unusable_extra_conf_changes_nothing_that_runs() -> None:
    world = World()
    world.add(node_set_object("compute"))
    settled(world)
    world.raw["spec"] = {"extraConf": "Include /etc/passwd"}
    before = world.slurm_conf
    done = world.settle()
    assert not [one for one in done if isinstance(one, Write | Reload)]
    assert world.slurm_conf == before
    applied = world.condition("ConfigApplied")
    assert (applied["status"], applied["reason"]) == ("False", "ConfigRefused")
    assert applied["message"].startswith("spec.extraConf: ")
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_a_configuration_is_not_loaded_before_the_agent_shows_it() -> None:
    world = settled(World())
    world.add(node_set_object("compute"))
    stale = world.answer(FilesQuestion)
    for _ in range(6):
        made = world.step()
        world.memory.answers.note(FilesQuestion, replace(stale, asked_at=world.now))
        assert not any(isinstance(one, Reload) for one in made.actions)
    world.now += 1
    world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_an_agent_that_does_not_answer_is_told() -> None:
    world = settled(World())
    world.add(node_set_object("compute"))
    while not any(asks(one, FilesQuestion) for one in world.plan().actions):
        world.step()
    world.memory.rollout.touched = world.memory.rollout.touched[0], world.now
    why = "the agent beside slurmctld cannot be asked: refused"
    world.memory.answers.note(FilesQuestion, Mounted("pod-uid", world.now, None, why))
    made = world.step()
    assert "refused" in world.condition("ConfigApplied")["message"]
    assert not any(asks(one, FilesQuestion) for one in made.actions)
    assert made.wake_up is not None
    assert made.wake_up <= 1


def test_what_slurmctld_says_before_it_gives_up_is_told() -> None:
    world = World()
    while world.controller_pod is None or world.slurm is None:
        world.step()
    world.trouble(Trouble.NO_ANSWER)
    ended = {"terminated": {"exitCode": 1, "message": "Parsing error at unrecognized key: Bogus\nfatal: Unable\n"}}
    world.controller_pod["status"]["containerStatuses"] = [
        {"name": "slurmctld", "ready": False, "state": {"waiting": {}}, "lastState": ended}
    ]
    for _ in range(6):
        world.step()
    assert "fatal: Unable" in world.condition("ConfigApplied")["message"]
    assert world.condition("Ready")["reason"] == "DaemonsStarting"


def test_a_pod_that_waits_to_restart_is_replaced_once_for_each_configuration() -> None:
    world = World()
    while world.controller_pod is None or world.slurm is None:
        world.step()
    world.trouble(Trouble.NO_ANSWER)
    waiting = {"name": "slurmctld", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    world.controller_pod["status"]["containerStatuses"] = [waiting]
    for spec in ({}, {"extraConf": "KillWait=7"}):
        world.raw["spec"] = spec
        world.log = []
        for _ in range(10):
            world.step()
        assert sum(isinstance(one, ReplacePod) for one in world.log) == 1


def test_a_reconfigure_that_reaches_nobody_says_nothing_about_the_configuration() -> None:
    world = settled(World())
    world.add(node_set_object("compute"))
    while not any(isinstance(one, Reload) for one in world.plan().actions):
        world.step()
    wanted = next(one for one in world.plan().actions if isinstance(one, Reload))
    world.memory.rollout.loaded = Loaded("pod-uid", wanted.change, world.now, proven=False, why="no answer", lost=True)
    world.step()
    assert world.condition("ConfigApplied")["reason"] == "ConfigPending"
    world.now += 1
    assert any(isinstance(one, Reload) for one in world.plan().actions)


def test_the_agent_of_another_pod_proves_nothing() -> None:
    world = settled(World())
    assert world.controller_pod is not None
    world.controller_pod["metadata"]["uid"] = "another"
    world.add(node_set_object("compute"))
    done = kinds(world.settle())
    assert done.index("FilesQuestion") < done.index("Reload")


@pytest.mark.parametrize(
    ("trouble", "condition", "reason"),
    [
        (Trouble.NO_ANSWER, "ApiReachable", "SlurmUnreachable"),
        (Trouble.CONTROLLER_DOWN, "ControllerUp", "ControllerDown"),
        (Trouble.UNAUTHORIZED, "TokenValid", "Unauthorized"),
        (Trouble.UNSUPPORTED, "ApiReachable", "UnsupportedVersion"),
    ],
)
def test_lost_contact_is_told_where_it_belongs(trouble: Trouble, condition: str, reason: str) -> None:
    world = settled(World())
    world.trouble(trouble, "in its own words")
    world.step()
    found = world.condition(condition)
    assert (found["status"], found["reason"]) == ("False", reason)
    assert found["message"].partition("; if this lasts, ")[0] == "in its own words"
    assert world.raw["status"]["isReady"] is False
    ready = world.condition("Ready")
    assert ready["reason"] == reason
    assert "in its own words" in ready["message"]


def test_another_key_makes_another_connection() -> None:
    world = settled(World())
    world.secrets["slurm-auth-jwt"]["jwt.key"] = b"n" * 32
    assert any(isinstance(one, Connect) for one in world.step().actions)


def test_an_object_of_somebody_elses_is_named_and_left_alone() -> None:
    world = settled(World())
    del world.children["Service", "slurm-restapi"]
    world.memory.writes.denied["Service", "slurm-restapi"] = Denied("", "there is one already", world.now)
    made = world.step()
    assert not any(isinstance(one, Write) for one in made.actions)
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ChildRefused")
    assert "Service slurm-restapi" in degraded["message"]
    assert world.condition("Ready")["status"] == "True", "Slurm serves all the same"


def test_an_object_that_was_refused_is_tried_again_when_the_spec_changes() -> None:
    world = settled(World(cluster_object({"restapi": {"replicas": 2}})))
    world.raw["spec"] = {"restapi": {"replicas": 3}}
    write = next(one for one in world.plan().actions if isinstance(one, Write))
    world.memory.writes.denied["Deployment", "slurm-restapi"] = Denied(write.child.digest, "no", world.now)
    assert not any(isinstance(one, Write) for one in world.plan().actions)
    world.raw["spec"] = {"restapi": {"replicas": 4}}
    assert any(isinstance(one, Write) for one in world.plan().actions)


def test_an_object_that_was_refused_is_not_named_once_the_spec_is_as_before() -> None:
    world = settled(World(cluster_object({"restapi": {"replicas": 2}})))
    world.raw["spec"] = {"restapi": {"replicas": 3}}
    write = next(one for one in world.plan().actions if isinstance(one, Write))
    world.memory.writes.denied["Deployment", "slurm-restapi"] = Denied(write.child.digest, "no", world.now)
    _ = world.step()
    assert world.condition("Degraded")["reason"] == "ChildRefused"
    world.raw["spec"] = {"restapi": {"replicas": 2}}
    _ = world.step()
    assert world.condition("Degraded")["status"] == "False"


def test_deletion_waits_for_every_slurmd_pod() -> None:
    world = World()
    world.add(node_set_object("compute"))
    settled(world)
    world.raw["metadata"]["deletionTimestamp"] = GONE
    world.pods = ["compute-0"]
    world.settle()
    assert not world.torn_down
    assert "compute-0" in world.condition("Deleting")["message"]
    assert world.raw["status"]["isReady"] is True
    world.pods = []
    (action,) = world.plan().actions
    assert isinstance(action, TearDown)
    assert [resource.kind for resource, _, _ in action.children][:2] == ["Deployment", "StatefulSet"]


def test_what_is_applied_to_a_cluster_that_is_being_deleted_goes_with_it_and_that_is_said() -> None:
    world = World()
    world.add(node_set_object("compute"))
    settled(world)
    world.raw["metadata"] |= {"deletionTimestamp": GONE, "generation": 2}
    world.pods = ["compute-0"]
    world.settle()
    assert world.condition("Deleting")["reason"] == "Deleting"
    assert world.raw["status"]["summary"] == "Deleting, 1 slurmd pod left"
    # Somebody applies the manifest, with another spec, and thinks that the Cluster is back.
    world.raw = {**world.raw, "metadata": {**world.raw["metadata"], "generation": 3}, "spec": {"maxNodeCount": 9}}
    log = world.settle()
    found = world.condition("Deleting")
    assert (found["status"], found["reason"]) == ("True", "AppliedWhileDeleting")
    assert found["message"] == (
        "slurmd pods are left: compute-0. The Cluster was changed after its deletion, and goes with that change. Wait "
        "until it has gone (kubectl wait --for=delete clusters.slinky.slurm.net/slurm --namespace here), then apply it "
        "again"
    )
    assert world.raw["status"]["summary"] == "Deleting, 1 slurmd pod left; apply it again afterwards"
    told = [one for one in log if isinstance(one, EmitEvent) and one.reason == "AppliedWhileDeleting"]
    assert [one.message for one in told] == [found["message"]]
    # It stays said, also by an operator that has just started.
    world.memory = Memory("cluster-uid")
    world.settle()
    assert world.condition("Deleting")["reason"] == "AppliedWhileDeleting"


def test_counts_alone_are_not_written_with_every_change() -> None:
    world = settled(World())
    world.now += 100
    world.memory.counts_written_at = world.now
    jobs = world.answer(JobsQuestion)
    assert jobs.counts is not None
    counts = jobs.counts.model_copy(update={"running": 3})
    world.memory.answers.note(JobsQuestion, replace(jobs, at=world.now, counts=counts))
    made = world.plan()
    assert made.counts_only
    assert made.wake_up is not None
    assert made.wake_up <= 1
    world.now += 2
    assert not world.plan().counts_only


NAMES = st.sampled_from(["a", "b", "a-0", "gpu", "compute"])
CONFIGS = st.sampled_from(["", "Default=YES", "MaxTime=60", "MaxTime 60", "Nodes=x", "Default=YES Default=NO", "x=\\"])


@st.composite
def sets(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    return {
        name: node_set_object(
            name, {"partition": {"enabled": draw(st.booleans()), "config": draw(CONFIGS.filter(_fits))}}
        )
        for name in names
    }


def _fits(text: str) -> bool:
    return "Nodes=" not in text and not text.endswith("\\")


@settings(max_examples=60, deadline=None)
@given(st.lists(sets(), min_size=1, max_size=4), st.data())
def test_whatever_node_sets_come_and_go_it_settles_and_then_rests(
    changes: list[dict[str, dict[str, Any]]], data: st.DataObject
) -> None:
    world = World()
    for wanted in changes:
        for name in [one for one in world.node_sets if one not in wanted]:
            world.node_sets[name]["metadata"]["deletionTimestamp"] = GONE
        for name, obj in wanted.items():
            known = world.node_sets.get(name)
            if known is None:
                world.node_sets[name] = obj
            elif not known["metadata"].get("deletionTimestamp"):
                known["spec"] = obj["spec"]
        for _ in range(data.draw(st.integers(0, 4))):
            world.step()
            _invariants(world)
        world.settle()
        _invariants(world)
        # What is asked from time to time may be due just now.
        due = (JobsQuestion, VolumesQuestion)
        assert [one for one in world.step().actions if not any(asks(one, kind) for kind in due)] == []


def _invariants(world: World) -> None:
    config = (world.raw.get("status") or {}).get("config") or {}
    lines = world.slurm_conf.split("\n") if ("ConfigMap", "slurm-config") in world.children else []
    for name in config.get("nodeSets", ()):
        assert f"NodeSet={name} Feature={name}" in lines
        assert labels.FINALIZER_NODESET_CONFIG in world.node_sets[name]["metadata"]["finalizers"]
    assert sum(" Default=YES" in line for line in lines) <= 1
    partitions = [line.split()[0] for line in lines if line.startswith("PartitionName=")]
    assert len(partitions) == len(set(partitions))


def test_slurmctld_restarts_for_what_a_reconfigure_does_not_take_over() -> None:
    world = World()
    world.settle()

    def template() -> dict[str, Any]:
        found: dict[str, Any] = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]
        return found

    before = template()
    world.raw["spec"] = {"maxNodeCount": 20, "extraConf": "SchedulerType=sched/builtin"}
    world.settle()
    assert template() == before
    world.raw["spec"] = {"extraConf": "CommunicationParameters=NoInAddrAny"}
    world.settle()
    assert template() != before


def test_no_number_of_nodes_makes_the_start_of_slurmctld_take_too_long() -> None:
    def template(spec: dict[str, Any]) -> dict[str, Any]:
        world = World(cluster_object(spec))
        world.settle()
        found: dict[str, Any] = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]
        return found

    many = template({"nodes": [{"name": "nowhere-[1-100]"}]})
    container = next(one for one in many["spec"]["containers"] if one["name"] == "slurmctld")
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > addresses.LOOK_UP * MOST
    assert "livenessProbe" not in container
    assert many == template({}), "another number of nodes is no reason for another pod"


def test_pods_of_slurmrestd_stay_reachable_until_all_have_the_label_of_the_service() -> None:
    world = World()
    world.settle()
    service, pods = world.children["Service", "slurm-restapi"], world.children["Deployment", "slurm-restapi"]
    # As an older operator has made them.
    del service["spec"]["selector"][labels.LABEL_DAEMON]
    del pods["spec"]["template"]["metadata"]["labels"][labels.LABEL_DAEMON]
    up = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    pods["metadata"]["generation"], pods["status"] = 1, {**up, "observedGeneration": 1}

    def selects() -> bool:
        """Whether the Service selects by the label by now."""
        world.settle()
        return labels.LABEL_DAEMON in world.children["Service", "slurm-restapi"]["spec"]["selector"]

    assert not selects()
    pods = world.children["Deployment", "slurm-restapi"]
    assert labels.LABEL_DAEMON in pods["spec"]["template"]["metadata"]["labels"]
    pods["metadata"]["generation"] = 2
    for status in (
        {**up, "observedGeneration": 1},
        {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1},
        {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1},
    ):
        pods["status"] = status
        assert not selects()
    pods["status"] = {**up, "observedGeneration": 2}
    assert selects()
    # From then on it stays so.
    pods["status"] = {"observedGeneration": 2}
    assert selects()
