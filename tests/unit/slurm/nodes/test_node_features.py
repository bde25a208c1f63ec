"""Features are found wherever a NodeSet's spec can pass them to slurmd."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.conf.inputs import NodeSetConf
from slinky_operator.slurm.nodes import node_features

ARGS = "spec.template.spec.containers[0].args"


def nodeset(**spec: Any) -> NodeSet:
    return NodeSet.parse({"metadata": {"name": "compute", "namespace": "ns"}, "spec": {"clusterName": "c", **spec}})


def of_slurmd(**container: Any) -> NodeSet:
    return nodeset(template={"spec": {"containers": [{"name": "slurmd", **container}]}})


def found(of: NodeSet) -> dict[str, str]:
    return {one.word: one.field for one in node_features.of(of)}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"features": ["a100", "gpu"]}, {"a100": "spec.features[0]", "gpu": "spec.features[1]"}),
        ({"extraConf": "MemSpecLimit=1 Feature=gpu,a100"}, {"gpu": "spec.extraConf", "a100": "spec.extraConf"}),
        ({"extraConf": 'features="gpu"'}, {"gpu": "spec.extraConf"}),
        ({"extraConf": "Weight=3"}, {}),
    ],
)
def test_fields_of_the_spec_are_read(spec: dict[str, Any], fields: dict[str, str]) -> None:
    assert found(nodeset(**spec)) == fields


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"args": ["--conf", "Features=gpu Gres=gpu:2"]}, f"{ARGS}[1]"),
        ({"args": ["--conf=Feature=gpu"]}, f"{ARGS}[0]"),
        ({"args": ["--conf", "'Gres=gpu:2 FEATURES=gpu'"]}, f"{ARGS}[1]"),
        ({"args": ["--conf", '"Features=gpu,a100"']}, f"{ARGS}[1]"),
        ({"command": ["sh", "-c", 'exec slurmd --conf "Features=gpu"']}, f"{ARGS[:-5]}.command[2]"),
        ({"env": [{"name": "PARAMS", "value": "Features=gpu"}]}, f"{ARGS[:-5]}.env[0]"),
    ],
)
def test_what_slurmd_is_started_with_is_read(container: dict[str, Any], field: str) -> None:
    assert found(of_slurmd(**container))["gpu"] == field


def test_other_containers_and_other_words_are_not_meant() -> None:
    other = [{"name": "tail", "image": "t", "args": ["Features=gpu"]}]
    assert found(nodeset(template={"spec": {"containers": other}})) == {}
    assert found(of_slurmd(args=["--conf", "NodeFeatures=gpu gpu"])) == {}


def test_a_clash_names_field_and_feature_and_the_own_name_is_none() -> None:
    features = node_features.of(nodeset(features=["gpu", "compute", "a100"]))

    (text,) = node_features.clash("compute", features, {"compute", "gpu", "login"})

    assert text.startswith("spec.features[0]: feature gpu is the name of a NodeSet of this Cluster")


def test_the_configuration_knows_them() -> None:
    assert NodeSetConf.of(nodeset(features=["gpu"])).features == {"gpu"}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spec", "containers", "args", "env"]), inner)
        ),
        max_leaves=10,
    )
)
def test_a_template_of_any_shape_is_read(value: Any) -> None:
    node_features.of(nodeset(template={"spec": value}).model_copy())
    node_features.of(of_slurmd(args=value, env=value, command=value))
