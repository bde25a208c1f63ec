"""The place of a node in Slurm's topologies, by labels of its Kubernetes Node."""

from __future__ import annotations

import pytest

from slinky_api.v1alpha1.nodeset.topology import NodeTopology
from slinky_operator.nodeset.slurm_nodes import topology

TREE = NodeTopology(name="default", root="fabric", node_labels=("zone", "rack"))
BLOCK = NodeTopology(name="nvl", node_labels=("clique",))
LEAF = NodeTopology(name="default", node_labels=("zone", "rack"))


@pytest.mark.parametrize(
    ("labels", "wanted", "place"),
    [
        ({"zone": "eu-1", "rack": "r7"}, [TREE], "default:fabric:eu-1:eu-1/r7"),
        # Two racks of one name are two switches.
        ({"zone": "eu-2", "rack": "r7"}, [TREE], "default:fabric:eu-2:eu-2/r7"),
        ({"zone": "eu-1", "rack": "r7"}, [LEAF], "default:eu-1/r7"),
        ({"zone": "eu-1", "rack": "r7", "clique": "c.3"}, [TREE, BLOCK], "default:fabric:eu-1:eu-1/r7,nvl:c.3"),
        ({"zone": "eu-1", "clique": "c.3"}, [TREE, BLOCK], "nvl:c.3"),
        ({"zone": "eu-1"}, [TREE], ""),
        ({"zone": "eu-1", "rack": ""}, [TREE], ""),
        ({}, [TREE, BLOCK], ""),
        ({"zone": "eu-1", "rack": "r7"}, [], ""),
    ],
)
def test_a_place_is_the_values_of_the_labels(labels: dict[str, str], wanted: list[NodeTopology], place: str) -> None:
    assert topology.place(labels, wanted) == place


def test_it_says_which_labels_are_missing() -> None:
    assert topology.missing({"rack": "r7"}, TREE) == ("zone",)
    assert topology.missing({}, TREE) == ("zone", "rack")
    assert topology.missing({"zone": "a", "rack": "b"}, TREE) == ()
