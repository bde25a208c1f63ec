"""The ways in which slurmd is run: from NodeSets, as far as pods can be created from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.cluster.components import Images
from slinky_operator.cluster.preflight.slurmd_kinds import kinds
from tests.support.from_schema import shaped
from tests.unit.cluster.world import node_set_object

IMAGES = Images("slurmctld", "slurmrestd", "agent", "slurmd")


def node_set(name: str, template: dict[str, Any]) -> NodeSet:
    return NodeSet.parse(node_set_object(name, {"template": template}))


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x"},
        {"containers": ["x"]},
        {"containers": [{"name": "slurmd", "securityContext": "x"}]},
        {"containers": [{"name": "slurmd", "image": {"a": 1}}]},
        {"containers": [{"name": "slurmd", "securityContext": {"$setElementOrder/x": []}}]},
        {"imagePullSecrets": 3},
    ],
)
def test_a_template_of_another_shape_holds_up_no_other_node_set(spec: dict[str, Any]) -> None:
    found = kinds([node_set("odd", {"spec": spec}), node_set("good", {})], IMAGES)
    assert [one.node_sets for one in found] == [("good",)]


@settings(derandomize=True)
@given(shaped("PodTemplateSpec") | st.just({}))
def test_from_any_template_of_that_shape_a_kind_is_read(template: dict[str, Any]) -> None:
    (found,) = kinds([node_set("one", template)], IMAGES)
    assert found.image
