"""What stays of the running configuration: room for the nodes there are."""

from __future__ import annotations

import pytest

from slinky_api.conditions import Reason
from slinky_operator.cluster.rollout.in_use.removals import keep
from slinky_operator.slurm.conf import ConfFiles, ConfInputs, render
from tests.unit.cluster.world import World

INPUTS = ConfInputs("c", "c-0", "c-0.c")


def files(count: int) -> ConfFiles:
    return ConfFiles.read({"slurm.conf": f"MaxNodeCount={count}\n"})


@pytest.mark.parametrize(
    ("before", "after", "nodes", "stays"),
    [(10, 20, 15, 0), (20, 10, 10, 0), (20, 10, 11, 20), (20, 10, None, 20), (20, 30, None, 0), (20, 20, 25, 0)],
)
def test_room_for_nodes_goes_only_when_they_have_gone(before: int, after: int, nodes: int | None, stays: int) -> None:
    kept = keep(files(before), files(after), None, nodes, live=True)
    assert kept.max_node_count == stays
    assert bool(kept.why) == bool(stays)
    rendered = render(kept.over(INPUTS)).files["slurm.conf"]
    assert f"MaxNodeCount={stays or INPUTS.max_node_count}\n" in rendered


def test_lowering_the_room_waits_for_the_nodes_beyond_it() -> None:
    world = World()
    world.raw["spec"] = {"maxNodeCount": 20}
    world.settle()
    world.pods = [f"node-{number}" for number in range(11)]
    world.raw["spec"] = {"maxNodeCount": 10}
    world.settle()
    assert "MaxNodeCount=20\n" in world.slurm_conf
    assert world.condition("ConfigApplied")["reason"] == Reason.NODES_IN_USE
    assert world.condition("ConfigApplied")["message"] == "MaxNodeCount stays 20 while there are 11 nodes"
    world.pods = world.pods[:10]
    world.settle()
    assert "MaxNodeCount=10\n" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"
