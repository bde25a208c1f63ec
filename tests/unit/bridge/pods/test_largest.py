"""What a pod asks for that no node has, in numbers."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.bridge.pods.model.translation.largest import different, too_large
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.support.hostile_texts import measured, texts
from tests.unit.bounds.test_hostile_answers import LONGEST, too_much


def node(name: str, cpus: int, memory: int, gres: str = "", *, feature: str = "k8s", state: str = "IDLE") -> Node:
    about = NodeState(state, frozenset({"EXTERNAL"}))
    return Node(name=name, cpus=cpus, real_memory_mib=memory, gres=gres, features=(feature,), state=about)


NODES = different(
    [
        node("small", 4, 1000, "gpu:a100:2"),
        node("as-small", 4, 1000, "gpu:a100:2"),
        node("large", 16, 9000),
        node("others", 64, 90_000, feature="no"),
    ],
    "k8s",
)


def part(cpus: int, memory: int, tres: str = "") -> dict[str, Any]:
    return {"cpusPerTask": cpus, "parameters": {"memory_per_cpu": memory, "tres_per_task": tres or None}}


def test_one_node_of_each_size_is_looked_at() -> None:
    assert [one.name for one in NODES] == ["small", "large"]


@pytest.mark.parametrize(
    "parts",
    [[part(4, 250, "gres/gpu=2")], [part(4, 250, "gres/gpu:a100=2")], [part(16, 500), part(1, 1)], [{"tasks": 1}]],
)
def test_nothing_is_said_of_what_some_node_has(parts: list[dict[str, Any]]) -> None:
    assert too_large(parts, NODES) == ""


@pytest.mark.parametrize(
    ("parts", "asked"),
    [
        ([part(17, 1)], "17 CPUs, 17 MiB"),
        ([part(1, 1), part(1, 9001)], "1 CPUs, 9001 MiB"),
        ([part(8, 1, "gres/gpu=1")], "8 CPUs, 8 MiB, gpu:1"),
        ([part(1, 1, "gres/gpu:h100=1")], "1 CPUs, 1 MiB, gpu:h100:1"),
    ],
)
def test_what_no_node_has_is_said_beside_the_largest(parts: list[dict[str, Any]], asked: str) -> None:
    has = "and no node has all of that: the largest, large, has 16 CPUs, 9000 MiB"
    assert too_large(parts, NODES) == f"a pod asks for {asked}, {has}"


def test_nothing_is_said_while_no_node_is_known() -> None:
    assert too_large([part(17, 1)], ()) == ""


def test_no_text_of_a_node_costs_much() -> None:
    costs = {}
    for kind, text in texts(LONGEST).items():
        with measured() as cost:
            told = too_large([part(17, 1, "gres/gpu=1")], [node(text, 16, 9000, text)])
        costs[kind] = cost()
        assert told.startswith("a pod asks for 17 CPUs")
    assert too_much(costs) == {}
