"""A pass renders the configuration once: twice if something stays for jobs, or if a change takes states along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.rollout.config import rendering
from slinky_operator.slurm.conf import ConfInputs, Parsed, Rendered, render
from tests.unit.cluster.rollout_stories import PARTITION, job, settled
from tests.unit.cluster.world import World, node_set_object


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[ConfInputs]:
    """What was rendered."""
    found: list[ConfInputs] = []

    def noted(inputs: ConfInputs, running: Parsed) -> Rendered:
        found.append(inputs)
        return render(inputs, running)

    monkeypatch.setattr(rendering, "render", noted)
    return found


def edit(world: World, **spec: Any) -> None:
    world.raw = {**world.raw, "spec": {**world.raw["spec"], **spec}}


def test_a_pass_without_anything_to_do(rendered: list[ConfInputs]) -> None:
    world = settled(PARTITION, node_set_object("compute"))
    rendered.clear()
    world.plan()
    assert len(rendered) == 1


def test_a_pass_while_an_administrator_has_closed_a_partition(rendered: list[ConfInputs]) -> None:
    world = settled(PARTITION, node_set_object("compute"))
    world.states = {"night": "DRAIN"}
    edit(world, maxNodeCount=20_000)
    world.settle()
    assert "# night is DRAIN by scontrol" in world.slurm_conf
    rendered.clear()
    world.plan()
    assert [one.states for one in rendered] == [{"night": "DRAIN"}]


def test_a_pass_in_which_a_partition_stays_for_a_job(rendered: list[ConfInputs]) -> None:
    world = settled(PARTITION, node_set_object("compute"))
    world.use = replace(world.use, jobs=(job(7, "night"),))
    edit(world, partitions=[])
    world.settle()
    assert world.condition("ConfigApplied")["reason"] == "PartitionInUse"
    rendered.clear()
    world.plan()
    assert [[str(line) for line in one.kept_partitions] for one in rendered] == [
        [],
        ["PartitionName=night Nodes=ALL MaxTime=60 State=INACTIVE Default=NO"],
    ]
