"""The chart of a Slurm cluster renders a Cluster and NodeSets that the API takes."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import SLURM_CHART, helm, render
from slinky_api.v1alpha1 import Cluster, NodeSet


def rendered(values: dict[str, Any] | None = None) -> tuple[Cluster, dict[str, NodeSet]]:
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm")
    (cluster,) = [Cluster.parse(obj) for obj in objects if obj["kind"] == "Cluster"]
    nodesets = [NodeSet.parse(obj) for obj in objects if obj["kind"] == "NodeSet"]
    assert len(objects) == 1 + len(nodesets)
    return cluster, {nodeset.name: nodeset for nodeset in nodesets}


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(SLURM_CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_without_values_there_are_two_nodes() -> None:
    cluster, nodesets = rendered()
    assert (cluster.name, cluster.namespace) == ("hpc", "slurm")
    assert nodesets["compute"].spec.cluster_name == "hpc"
    assert nodesets["compute"].spec.replicas == 2


def test_specs_are_handed_on_as_they_are() -> None:
    cluster, nodesets = rendered(
        {
            "clusterName": "main",
            "cluster": {"clusterName": "linux", "extraConf": "# a\n# b\n"},
            "nodesets": {"compute": None, "gpu": {"replicas": 0, "features": ["a100"]}, "every": {}},
        }
    )
    assert cluster.name == "main"
    assert cluster.spec.cluster_name == "linux"
    assert set(nodesets) == {"gpu", "every"}
    assert {nodeset.spec.cluster_name for nodeset in nodesets.values()} == {"main"}
    assert nodesets["gpu"].spec.replicas == 0
    assert nodesets["every"].spec.replicas is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nodeSets": {}}, "nodeSets"),
        ({"clusterName": "Main"}, "clusterName"),
        ({"nodesets": {"a_b": {}}}, "a_b"),
        ({"nodesets": {"a": {"clusterName": "other"}}}, "nodesets"),
    ],
)
def test_nonsense_is_refused_by_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        render(SLURM_CHART, values)
