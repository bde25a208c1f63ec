"""The status text names one thing: trouble, else what is in progress. Nodes out of service have a condition."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.slurm.connection.contact import Trouble
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.cluster.rollout_stories import PARTITION, job, settled
from tests.unit.cluster.world import World, cluster_object, node_set_object

SINCE = datetime(2026, 1, 1, 4, 41, 13, tzinfo=UTC)


def node(name: str, words: str, reason: str = "", by: str = "root") -> Node:
    state = NodeState.from_words(words.split("+"))
    return Node(name=name, state=state, reason=reason, reason_set_by=by, reason_changed_at=SINCE)


def with_nodes(*nodes: Node) -> World:
    world = settled()
    show(world, *nodes)
    return world


def show(world: World, *nodes: Node) -> list[EmitEvent]:
    assert world.slurm is not None
    world.slurm = replace(world.slurm, nodes={one.name: one for one in nodes})
    return [one for one in world.step().actions if isinstance(one, EmitEvent)]


def summary(world: World) -> str:
    return str(world.raw["status"]["summary"])


def test_a_cluster_at_rest_runs() -> None:
    assert summary(settled()) == "Running"


def test_a_new_cluster_starts() -> None:
    world = World(server="")
    for _ in range(8):
        world.step()
    assert summary(world) == "Starting"


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        (Trouble.NO_ANSWER, "slurmrestd does not answer"),
        (Trouble.CONTROLLER_DOWN, "slurmctld does not answer"),
        (Trouble.UNAUTHORIZED, "token refused by Slurm"),
    ],
)
def test_a_slurm_that_does_not_serve_says_which_part(trouble: Trouble, text: str) -> None:
    world = settled()
    world.trouble(trouble)
    world.step()
    assert summary(world) == text


def test_what_blocks_comes_before_what_goes_on() -> None:
    world = settled(PARTITION)
    world.use, world.states = Use(0.0, "", (job(7, "night"),)), {"night": "INACTIVE"}
    world.raw["spec"] = {}
    for _ in range(12):
        world.step()
    assert summary(world) == "Running, change waits for jobs"
    show(world, node("n-0", "DOWN+NOT_RESPONDING", "Not responding"))
    assert summary(world) == "Running, 1 node down"
    world.memory.writes.denied["Service", "slurm-nodes"] = Denied("", "no", world.now)
    del world.children["Service", "slurm-nodes"]
    world.step()
    assert summary(world) == "Running, an object cannot be written"


def test_a_refused_configuration_and_a_refused_node_set_are_told_apart() -> None:
    world = settled(None, node_set_object("bad", {"partition": {"config": "MaxTime 1"}}))
    assert summary(world) == "Running, configuration of NodeSet bad refused"
    world.raw["spec"] = {"extraConf": "Include /etc/passwd"}
    world.settle()
    assert summary(world) == "Running, configuration refused"


def test_a_cluster_that_is_deleted_counts_the_pods_that_are_left() -> None:
    world = settled()
    world.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.pods = ["compute-0"]
    world.step()
    assert summary(world) == "Deleting, 1 slurmd pod left"


def test_a_missing_token_is_named() -> None:
    world = World(cluster_object({"server": "http://there:6820", "token": {"secretRef": "mine"}}))
    world.settle()
    assert summary(world) == "Secret missing"


def test_nodes_out_of_service_have_a_condition_with_who_and_since() -> None:
    world = with_nodes(
        node("n-0", "IDLE"),
        node("n-1", "IDLE+DRAIN+DYNAMIC_NORM", "disk is loud", "alice"),
        node("n-2", "DOWN+NOT_RESPONDING", "Not responding", "slurm"),
        node("n-3", "IDLE+DRAIN+INVALID_REG", "Low RealMemory", "slurm"),
        node("n-4", "IDLE+DRAIN", "slurm-operator: scale-in (here/compute)"),
        node("n-5", "MIXED+DRAIN", "preStop"),
        node("n-6", "DOWN+POWERED_DOWN"),
        node("n-7", "DOWN", "slurm-operator: pod has ended (here/compute)"),
    )
    found = world.condition("NodesOutOfService")
    assert (found["status"], found["reason"]) == ("True", "NodeDown")
    assert found["message"] == (
        "1 node down, 1 node with an invalid registration, 1 node drained by others: "
        "n-2 (DOWN+NOT_RESPONDING: Not responding, set by slurm since 2026-01-01T04:41:13Z); "
        "n-3 (IDLE+DRAIN+INVALID_REG: Low RealMemory, set by slurm since 2026-01-01T04:41:13Z); "
        "n-1 (IDLE+DRAIN: disk is loud, set by alice since 2026-01-01T04:41:13Z)"
    )
    assert world.condition("Degraded")["status"] == "False", "Slurm serves, and somebody may have meant it"
    assert summary(world) == "Running, 1 node down, 1 node with an invalid registration"


def test_a_list_of_nodes_is_bounded() -> None:
    world = with_nodes(*(node(f"n-{number}", "DOWN", "x" * 900) for number in range(40)))
    message = world.condition("NodesOutOfService")["message"]
    assert message.startswith("40 nodes down: n-0 (")
    assert message.endswith(" and 35 more")
    assert len(message) < 1500


def test_an_event_tells_of_nodes_once_and_none_of_drains() -> None:
    world = settled()
    assert not show(world, node("n-1", "IDLE+DRAIN", "disk"))
    (told,) = show(world, node("n-1", "DOWN", "gone"))
    assert (str(told.type), told.reason) == ("Warning", "NodeDown")
    assert not show(world, node("n-1", "DOWN", "gone"), node("n-2", "DOWN", "gone"))
    assert not show(world, node("n-1", "IDLE"))
    assert world.condition("NodesOutOfService")["status"] == "False"


def test_while_slurm_does_not_answer_nobody_knows_of_nodes() -> None:
    world = with_nodes(node("n-1", "DOWN", "gone"))
    known: dict[str, Any] = world.condition("NodesOutOfService")
    world.slurm = None
    world.memory = type(world.memory)("cluster-uid")
    assert world.plan().status is not None
    world.step()
    assert world.condition("NodesOutOfService") == known
    world.trouble(Trouble.NO_ANSWER)
    world.step()
    assert world.condition("NodesOutOfService")["status"] == "Unknown"
