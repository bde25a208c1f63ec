"""The examples of docs/autoscaling.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from slinky_api.conditions import Reason
from slinky_operator.autoscaling.report import TROUBLES
from slinky_operator.kube.resources import NODESETS
from slurm_exporter.families.demand import WANTED
from slurm_exporter.families.nodes import PARTITION_NODES
from tests.unit.autoscaling.worlds import World, partition, pending

PAGE = (Path(__file__).parents[3] / "docs" / "autoscaling.md").read_text()


async def test_the_example_scales_for_gpus_within_its_limits() -> None:
    (text,) = [one for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "autoscaling:" in one]
    example = yaml.safe_load(text)
    world = World()
    metadata = {**example["metadata"], "namespace": "ns", "uid": "uid-gpu", "generation": 1}
    world.kube.put(NODESETS, {**example, "metadata": metadata})
    world.slurm.all_partitions = (partition("gpu", "gpu"),)
    await world.step()
    assert world.replicas("gpu") == 0
    world.slurm.jobs = [pending(1, "gpu", tres_per_node="gres/gpu:a100:4", node_count=8, max_nodes=8)]
    await world.step(5)
    assert world.replicas("gpu") == 8
    world.slurm.jobs = [pending(2, "gpu", tres_per_node="gres/gpu:a100:5")]
    await world.step(5)
    assert world.status("gpu")["reason"] == Reason.JOBS_IMPOSSIBLE


def test_every_trouble_has_its_row_and_the_recipes_name_metrics_that_exist() -> None:
    rows = PAGE.partition("## Messages")[2].partition("\n## ")[0]
    assert [one for one in TROUBLES if f"`{one}`" not in rows] == []
    assert {*re.findall(r"slurm_cluster_\w+", PAGE)} == {WANTED.name, PARTITION_NODES.name}
