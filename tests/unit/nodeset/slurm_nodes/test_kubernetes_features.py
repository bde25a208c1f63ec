"""Features and topology that Slurm nodes get from their Kubernetes Nodes."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.topology import NodeTopology
from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.slurm_nodes import kubernetes_features
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import Change, Traits
from slurm_client.models import Node
from slurm_client.models.node import NodeState


def node(*features: str, active: tuple[str, ...] | None = None, **values: Any) -> Node:
    given: dict[str, Any] = {"name": "a-0", "extra": "ns/a", **values}
    words = ("a", *features)
    return Node(
        state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]),
        features=words,
        active_features=words if active is None else active,
        **given,
    )


def missing(record: Node, host: KubernetesNode, *topologies: NodeTopology) -> Change | None:
    return kubernetes_features.missing(record, kubernetes_features.traits(host, topologies))


def test_features_come_with_their_prefix_and_others_stay() -> None:
    change = missing(node("mine", "k8s/old"), KubernetesNode("m", features=("ib", "rack-1")))

    assert change == Change(("a", "mine", "k8s/ib", "k8s/rack-1"), ("a", "mine", "k8s/ib", "k8s/rack-1"))


def test_features_that_somebody_switched_off_stay_off() -> None:
    change = missing(node("mine", active=("a",)), KubernetesNode("m", features=("ib",)))

    assert change == Change(("a", "mine", "k8s/ib"), ("a", "k8s/ib"))


@pytest.mark.parametrize(
    ("record", "host"),
    [
        (node(), KubernetesNode("m")),
        (node("k8s/ib"), KubernetesNode("m", features=("ib",))),
        (node(topology="default:s1"), KubernetesNode("m")),
        (node(topology="default:s1"), KubernetesNode("m", topology="default:s1")),
    ],
)
def test_what_a_node_has_is_not_written_again(record: Node, host: KubernetesNode) -> None:
    assert missing(record, host) is None


def test_features_of_a_node_that_names_none_any_more_go() -> None:
    assert missing(node("k8s/ib"), KubernetesNode("m")) == Change(("a",), ("a",))


def test_a_topology_is_written_where_it_differs() -> None:
    assert missing(node(topology="default:s1"), KubernetesNode("m", topology="default:s2")) == Change(
        topology="default:s2"
    )


RACK = NodeTopology(name="default", root="top", node_labels=("rack",))


def test_a_place_by_labels_is_written_and_goes_with_them() -> None:
    labelled = KubernetesNode("m", labels={"rack": "r1"})

    assert missing(node(), labelled, RACK) == Change(topology="default:top:r1")
    assert missing(node(topology="default:top:r1"), labelled, RACK) is None
    assert missing(node(topology="default:top:r1"), KubernetesNode("m"), RACK) == Change(topology="")
    assert missing(node(), KubernetesNode("m"), RACK) is None
    # Without spec.topology labels mean nothing, and a place that somebody has set stays.
    assert missing(node(topology="default:s1"), labelled) is None


def test_an_annotation_takes_the_place_of_labels() -> None:
    host = KubernetesNode("m", labels={"rack": "r1"}, topology="default:s2")

    assert missing(node(topology="default:top:r1"), host, RACK) == Change(topology="default:s2")
    assert missing(node(topology="default:s2"), host, RACK) is None


def test_only_our_nodes_are_written_to_and_alike_ones_together() -> None:
    given = Traits(topology="default:s1")
    fresh = {
        "a-0": node(),
        "a-1": node(name="a-1"),
        "a-2": node(name="a-2", topology="default:s1"),
        "other": node(name="other", extra="ns/a-b"),
        "gone": None,
    }

    assert kubernetes_features.to_write(dict.fromkeys(fresh, given), fresh, "ns/a") == {
        Change(topology="default:s1"): ["a-0", "a-1"]
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [("ib, rack-1 ,ib", ("ib", "rack-1")), ("", ()), ("a b,c(d),-e,f", ("f",)), ("x&y\nStateSave=/,z", ("z",))],
)
def test_features_are_words_that_slurm_takes(text: str, words: tuple[str, ...]) -> None:
    annotations = {"features.slinky.slurm.net/spec": text}

    assert kubernetes_nodes.read({"metadata": {"name": "m", "annotations": annotations}}).features == words
