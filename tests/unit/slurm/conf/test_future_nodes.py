"""Lines for nodes that a NodeSet may have some day: what they offer, whose names they take, and what runs already."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.rollout.in_use.removals import keep
from slinky_operator.pod_programs.agent.hosts import names_in
from slinky_operator.slurm.conf import Rendered, future_nodes, parse
from slinky_operator.slurm.conf.inputs import MAX_NODE_COUNT
from tests.unit.slurm.conf.goldens import Case

SIZE = {"limits": {"cpu": "4", "memory": "16Gi"}}


def case(nodes: int = 8, cluster: dict[str, Any] | None = None, **spec: Any) -> Case:
    return Case(cluster or {}, {"gpu": {"futureNodes": nodes, **spec}})


def line(rendered: Rendered) -> str:
    """The line of the future nodes; empty if there is none."""
    return next((one for one in rendered.files["slurm.conf"].splitlines() if one.startswith("NodeName=gpu_")), "")


def offered(**spec: Any) -> str:
    return (
        line(case(**spec).render())
        .removeprefix("NodeName=gpu_future_[0-7] ")
        .removesuffix(" NodeAddr=127.0.0.1 State=FUTURE")
    )


def container(**fields: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [{"name": "slurmd", **fields}]}}}


def test_they_offer_what_slurmd_registers_with() -> None:
    found = offered(resources=SIZE, features=["big"], gres="gpu:a100:4", weight=7, extraConf="MemSpecLimit=100 Port=99")
    assert found == "Features=gpu,big CPUs=4 RealMemory=16384 Weight=7 Gres=gpu:a100:4 MemSpecLimit=100"


def test_a_template_counts_as_it_does_for_pods() -> None:
    found = offered(
        resources=SIZE, **container(resources={"limits": {"cpu": 2}}, args=["--conf", "Features=fast TmpDisk=5"])
    )
    assert found == "Features=gpu,fast CPUs=2 RealMemory=16384 TmpDisk=5"


def test_what_is_left_to_the_machine_is_left_out() -> None:
    assert offered(**container(args=["-Z"])) == "Features=gpu"


@pytest.mark.parametrize(
    "spec",
    [
        {"futureNodes": 0},
        {"resources": {"limits": {"cpu": "4", "memory": "much"}}},
        {"extraConf": "'Weight=1"},
        container(args="-Z"),
        container(args=["-N", "other"]),
        container(resources={"limits": {"$patch": "none"}}),
        {"template": {"spec": {"containers": "none"}}},
    ],
)
def test_there_are_none_where_none_are_wanted_or_no_pod_can_be_made(spec: dict[str, Any]) -> None:
    rendered = case(**spec).render() if "futureNodes" not in spec else case(0).render()
    assert not line(rendered)
    assert rendered.node_sets == ("gpu",)
    assert f"MaxNodeCount={MAX_NODE_COUNT}\n" in rendered.files["slurm.conf"]


def test_text_adds_no_line_and_no_key_of_another_kind() -> None:
    found = offered(extraConf='Features="a,b" State=DOWN NodeAddr=9.9.9.9 NodeHostname=x Reason=y')
    assert found == "Features=gpu,a,b CPUs=1 RealMemory=512"


def test_they_need_room_of_their_own() -> None:
    assert "MaxNodeCount=20\n" in case(8, {"maxNodeCount": 12}).render().files["slurm.conf"]
    assert "MaxNodeCount=65536\n" in case(1000, {"maxNodeCount": 65536}).render().files["slurm.conf"]


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_they_are_known_in_a_file(count: int) -> None:
    text = case(count).render().files["slurm.conf"]
    assert future_nodes.count_in(parse(text)) == count
    assert tuple(map(str, parse(text).by_node_set["gpu"])) == (
        "NodeSet=gpu Feature=gpu",
        line(case(count).render()),
        "PartitionName=gpu Nodes=gpu State=UP",
    )


def test_nodes_outside_kubernetes_are_not_taken_for_them() -> None:
    mine = {"nodes": [{"name": "gpu_future_[0-3]", "config": "State=FUTURE"}, {"name": "x_future_[0-1]"}]}
    text = Case(mine, {"other": {}}).render().files["slurm.conf"]
    assert future_nodes.count_in(parse(text)) == 0


def test_a_node_outside_kubernetes_keeps_its_name() -> None:
    mine = {"nodes": [{"name": "gpu_future_3"}]}
    rendered = case(8, mine).render()
    ((node_set, reason),) = [(one.node_set, one.problem.reason) for one in rendered.refused]
    assert node_set == "gpu"
    assert "a node gpu_future_3 outside Kubernetes" in reason
    assert not case(3, mine).render().refused


def test_a_node_set_keeps_the_names_that_it_has() -> None:
    rendered = Case({"nodes": [{"name": "gpu_future_3"}]}, case().node_sets, before=case()).render()
    assert [one.field for one in rendered.problems] == ["spec.nodes[0].name"]
    assert not rendered.refused


def test_a_refused_change_of_the_node_set_leaves_them_as_they_are() -> None:
    before = case(resources=SIZE)
    taken = {"partitions": [{"name": "gpu", "nodeSets": ["ALL"]}]}
    after = Case(taken, {"gpu": {"futureNodes": 20}}, before=before).render()
    assert [one.node_set for one in after.refused] == ["gpu"]
    assert line(after) == line(before.render())
    assert f"MaxNodeCount={MAX_NODE_COUNT + 8}\n" in after.files["slurm.conf"]


def test_no_name_server_is_asked_for_them() -> None:
    assert set(names_in(case(1000).render().files["slurm.conf"])) == set()


@pytest.mark.parametrize(("before", "after"), [(8, 0), (8, 3), (3, 8), (0, 8)])
def test_they_come_change_and_go_without_a_question(before: int, after: int) -> None:
    """No job is ever on one, and the room for others stays the same."""
    running, wanted = (case(count, resources=SIZE if count == 8 else {}).render() for count in (before, after))
    kept = keep(running, wanted, None, None, live=True)
    assert not kept.why
    assert not kept.asks
    assert kept.over(case(after).inputs()) == case(after).inputs()


def test_room_that_stays_for_nodes_is_the_room_beside_them() -> None:
    running, wanted = case(8, {"maxNodeCount": 20}), case(3, {"maxNodeCount": 10})
    kept = keep(running.render(), wanted.render(), None, 15, live=True)
    assert kept.why == ("MaxNodeCount stays 20 while there are 15 nodes",)
    assert kept.max_node_count == 20
