"""The ways in which slurmd is run: from NodeSets, as far as pods can be created from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api.conditions import PodCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.rollout.preflight.slurmd_kinds import kinds
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import builder, generated
from slinky_operator.slurm.pod_templates import confinement
from tests.support.from_schema import shaped
from tests.unit.cluster.world import cluster_object, node_set_object

IMAGES = Images({"slurmctld": "slurmctld", "slurmrestd": "slurmrestd", "agent": "agent", "slurmd": "slurmd"})


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


def test_a_confined_slurmd_is_a_kind_of_its_own_with_the_context_of_its_pods() -> None:
    confined = NodeSet.parse(node_set_object("confined", {"confinement": "Constrain"}))
    plain = NodeSet.parse(node_set_object("plain"))
    # A pod that runs is found by what it mounts.
    pod = builder.build(
        confined,
        Cluster.parse(cluster_object()),
        place=PodSlot("confined-0", "confined-0", 0),
        revision="r",
        guard_uid="g",
        defaults=generated.Defaults(image="slurmd"),
    )
    pod["spec"]["nodeName"] = "node-1"
    registered = {"type": PodCondition.REGISTERED, "status": "True"}
    pod["status"] = {"phase": "Running", "conditions": [registered]}
    found = {one.node_sets: one for one in kinds([confined, plain], IMAGES, [pod])}
    assert found.keys() == {("confined",), ("plain",)}
    assert found["confined",].security == confinement.security_context()
    assert [found["confined",].confined, found["plain",].confined] == [True, False]
    assert found["confined",].node == "node-1"
