"""Nodes outside Kubernetes: no name twice, and none that a NodeSet's node may have."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.slurm.conf import Rendered
from tests.unit.slurm.conf.goldens import Case


def nodes(*names: str) -> dict[str, Any]:
    return {"nodes": [{"name": name} for name in names]}


def problems(rendered: Rendered) -> list[tuple[str, str]]:
    return [(one.field, one.reason) for one in rendered.problems]


def refused(rendered: Rendered) -> list[tuple[str, str]]:
    return [(one.node_set, one.problem.reason) for one in rendered.refused]


def test_a_node_stands_there_once() -> None:
    found = problems(Case(nodes("m[1-3]", "b", "a,m2")).render())
    assert found == [("spec.nodes[0].name", "there is a node m2 already")]


@pytest.mark.parametrize("name", ["n[1-999999999]", "n[1-300][1-300]", ",".join(f"a{n}[1-9999]" for n in range(9))])
def test_nobody_makes_the_operator_count_to_a_billion(name: str) -> None:
    ((field, reason),) = problems(Case(nodes(name)).render())
    assert field == "spec.nodes[0].name"
    assert reason.startswith("stands for more than 65536 nodes")


def test_many_lines_together_are_no_more_nodes_than_slurm_can_have() -> None:
    found = problems(Case(nodes(*(f"n{number:03}-[1-65000]" for number in range(256)))).render())
    assert [field for field, _ in found] == ["spec.nodes[1].name"]


@pytest.mark.parametrize("name", ["gpu", "gpu-[0-3]", "x,gpu-007"])
def test_a_new_node_set_cannot_have_the_names_of_nodes(name: str) -> None:
    rendered = Case(nodes(name), {"gpu": {"replicas": 1}, "cpu": {"replicas": 1}}).render()
    assert rendered.node_sets == ("cpu",)
    ((node_set, reason),) = refused(rendered)
    assert node_set == "gpu"
    assert "outside Kubernetes" in reason
    assert not rendered.problems


def test_a_new_node_cannot_have_the_names_of_a_node_set() -> None:
    node_sets = {"gpu": {"replicas": 1}}
    rendered = Case(nodes("x", "gpu-[7-9]"), node_sets, before=Case(node_sets=node_sets)).render()
    assert rendered.node_sets == ("gpu",)
    assert problems(rendered) == [("spec.nodes[1].name", "gpu-9 is the name of NodeSet gpu, or of a node it may have")]


def test_a_node_set_that_takes_its_names_from_nodes_may_look_alike() -> None:
    rendered = Case(nodes("metal-[01-16]"), {"metal": {"scalingMode": "DaemonSet"}}).render()
    assert rendered.node_sets == ("metal",)
    assert not rendered.problems


@pytest.mark.parametrize("name", ["gpu-x", "gpux-1", "xgpu-1", "gpu-1-x"])
def test_other_names_are_free(name: str) -> None:
    rendered = Case(nodes(name), {"gpu": {"replicas": 1}}).render()
    assert not rendered.problems
    assert not rendered.refused


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("gpu_future_[0-9]", "gpu_future_0"),
        ("a,gpu_future_7,gpu_future_3", "gpu_future_3"),
        ("gpu_future_8", None),
        ("gpu_future_03", None),
        ("gpu_future_3_future_1", None),
        ("cpu_future_1", None),
    ],
)
def test_a_new_node_set_gives_way_to_a_node_with_the_name_of_a_future_one(name: str, taken: str | None) -> None:
    rendered = Case(nodes("z", name), {"gpu": {"futureNodes": 8}}).render()
    assert [reason.split()[5] for _, reason in refused(rendered)] == ([] if taken is None else [taken])
