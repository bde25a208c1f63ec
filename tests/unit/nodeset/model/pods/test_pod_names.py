"""The names of pods and nodes."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.pods.pod_names import PodSlot


def nodeset(name: str = "a", **spec: Any) -> NodeSet:
    return NodeSet.parse(
        {"metadata": {"name": name, "namespace": "ns", "uid": "u"}, "spec": {"clusterName": "c", **spec}}
    )


def test_with_ordinals_pod_and_node_have_one_name() -> None:
    numbered = nodeset(replicas=2, ordinalPadding=3)

    assert pod_names.of_ordinal(numbered, 7) == PodSlot("a-007", "a-007", 7)
    assert pod_names.pod_name(numbered, "a-007") == "a-007"


def test_pods_on_nodes_are_told_apart_by_their_nodeset() -> None:
    assert pod_names.pod_name(nodeset(), "machine") == "a-machine"
    assert pod_names.pod_name(nodeset("b"), "machine") == "b-machine"


def test_long_names_are_cut_and_stay_different() -> None:
    long = nodeset("a" * 50)
    one, other = (pod_names.pod_name(long, "machine-in-a-far-away-place-" + end) for end in "xy")

    assert one != other
    assert len(one) == len(other) == pod_names.LONGEST_NAME
    assert one == pod_names.pod_name(long, "machine-in-a-far-away-place-x")


@pytest.mark.parametrize(
    ("name", "number"),
    [("a-0", 0), ("a-007", 7), ("a-b-0", None), ("a", None), ("ab-0", None), ("a-", None), ("a-x", None)],
)
def test_ordinals_are_read_from_whole_names(name: str, number: int | None) -> None:
    assert pod_names.ordinal("a", name) == number


def test_the_lowest_free_ordinals_are_taken() -> None:
    assert pod_names.lowest_free({0, 2, 5}, 3) == [1, 3, 4]
    assert pod_names.numbered("a", 7, 3) == "a-007"
