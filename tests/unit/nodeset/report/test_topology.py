"""What a NodeSet shows of nodes without a place in a topology."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.pod_state import Ready
from slinky_operator.nodeset.model.snapshot import SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import status, topology
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits, Traits
from tests.unit.nodeset.report.test_status import NOW, a_pod, nodeset, seen

TREE = {"name": "default", "root": "top", "nodeLabels": ["zone", "rack"]}


def snapshot(*hosts: KubernetesNode, watched: bool = True, **spec: Any) -> Snapshot:
    """A NodeSet with a pod on each Node."""
    owner = nodeset(replicas=len(hosts), **{"topology": [TREE], **spec})
    pods = [replace(a_pod(number), host=host.name) for number, host in enumerate(hosts)]
    return replace(seen(*pods, owner=owner), hosts={host.name: host for host in hosts} if watched else None)


def host(number: int, *labels: str, **given: Any) -> KubernetesNode:
    return KubernetesNode(f"m-{number}", labels=dict.fromkeys(labels, "x"), **given)


def test_labels_that_are_missing_are_told_with_their_nodes_and_the_nodeset_is_ready() -> None:
    of = snapshot(host(0, "zone", "rack"), host(1, "zone"), host(2), host(3, topology="default:s1"))
    found = status.build(of, Decisions(Layout(4), states={pod.name: Ready() for pod in of.pods}), NOW)

    conditions = {one.type: one for one in found.conditions}
    assert (conditions["Degraded"].reason, conditions["Ready"].status) == ("TopologyLabelsMissing", "True")
    assert conditions["Degraded"].message == (
        "nodes have no place in a topology of spec.topology, and get no jobs there. "
        "Nodes: m-1, m-2 without the label rack of topology default; m-2 without the label zone of topology default"
    )
    (told,) = topology.told(of)
    assert told[3] == {"a-1", "a-2"}


def test_a_place_that_slurm_refuses_is_told_with_what_to_do_and_the_nodeset_is_ready() -> None:
    refused = RefusedTraits(Traits((), "default:b9"), "the place default:b9 for a-0: Invalid node topology specified")
    of = replace(snapshot(host(0), topology=[]), refused_traits={"a-0": refused, "a-1": RefusedTraits(Traits(()))})
    found = status.build(of, Decisions(Layout(1), states={pod.name: Ready() for pod in of.pods}), NOW)

    conditions = {one.type: one for one in found.conditions}
    assert (conditions["Degraded"].reason, conditions["Ready"].status) == ("TraitsRefused", "True")
    assert conditions["Degraded"].message == (
        "Slurm refuses the place default:b9 for a-0: Invalid node topology specified. The nodes keep what they had. "
        "Add the place to topology.yaml of the Cluster, or correct labels and annotations of their Kubernetes Nodes"
    )
    (told,) = topology.told(of)
    assert told[3] == {"a-0"}


@pytest.mark.parametrize(
    "of",
    [
        snapshot(host(0, "zone", "rack")),
        snapshot(host(0), topology=[]),
        # What Slurm does not know yet has no place to be told of.
        replace(snapshot(host(0)), slurm=SlurmFacts(readable=True)),
    ],
)
def test_there_is_nothing_to_tell_of_nodes_that_have_their_place(of: Snapshot) -> None:
    assert list(topology.told(of)) == []


def test_where_nodes_are_not_watched_the_field_is_told_to_have_no_effect() -> None:
    (told,) = topology.told(snapshot(host(0), watched=False))
    assert told[:2] == (
        Reason.NODES_NOT_WATCHED,
        "spec.topology has no effect: the operator runs with --no-watch-nodes",
    )


def test_thousands_of_nodes_are_told_in_few_words() -> None:
    (told,) = topology.told(snapshot(*(host(number) for number in range(5000))))
    assert len(told[1]) < 500
