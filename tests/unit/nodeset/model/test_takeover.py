"""Pods and records that another operator created: which belong to a NodeSet, and how they are taken over."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model import takeover
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.slurm_nodes import identity
from slurm_client.models import Node
from slurm_client.models.node import NodeState

CLUSTER = Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cluster-uid"}, "spec": {}})


def nodeset(*, seen: int = 3, replicas: int | None = 2) -> NodeSet:
    return NodeSet.parse(
        {
            "metadata": {"name": "a", "namespace": "ns", "uid": "set-uid", "generation": 3},
            "spec": {
                "clusterName": "c",
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
                **({"replicas": replicas} if replicas is not None else {}),
            },
            "status": {"nodeSetHash": "7d9f", "observedGeneration": seen},
        }
    )


def theirs(name: str = "a-0", **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "name": "a", "uid": "set-uid"}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": "pod-uid",
        "labels": {labels.LABEL_REVISION: "7d9f", "app.kubernetes.io/name": "slurmd"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    return {"metadata": metadata, "spec": {"hostname": name, **spec}}


def taken(owner: NodeSet, obj: dict[str, Any]) -> dict[str, Any]:
    change = takeover.patch(owner, CLUSTER, obj, "guard-uid")["metadata"]
    own = {**obj["metadata"]["labels"], **change["labels"]}
    return {**obj, "metadata": {**obj["metadata"], **change, "labels": own}}


def test_a_pod_is_taken_over_by_its_owner_and_not_by_its_labels() -> None:
    stranger = theirs()
    stranger["metadata"]["ownerReferences"][0]["uid"] = "another"

    assert takeover.is_theirs(nodeset(), theirs())
    assert not takeover.is_theirs(nodeset(), stranger)
    assert not takeover.is_theirs(nodeset(), {"metadata": {"name": "a-0", "labels": {}}})
    assert not takeover.is_theirs(nodeset(), taken(nodeset(), theirs()))


def test_a_pod_that_was_up_to_date_still_is() -> None:
    pod = pod_facts.read(taken(nodeset(), theirs()), "a")

    assert pod.revision == revision.of(nodeset())
    assert (pod.ordinal, pod.node_name, pod.on_node, pod.protected) == (0, "a-0", False, True)


@pytest.mark.parametrize("change", ["the spec", "the pod"])
def test_a_pod_that_was_not_is_updated(change: str) -> None:
    owner, obj = nodeset(seen=2 if change == "the spec" else 3), theirs()
    if change == "the pod":
        obj["metadata"]["labels"][labels.LABEL_REVISION] = "older"

    assert pod_facts.read(taken(owner, obj), "a").revision != revision.of(owner)


def test_a_pod_gets_a_second_owner_once() -> None:
    once = taken(nodeset(), theirs())
    twice = taken(nodeset(), once)

    assert [one["uid"] for one in twice["metadata"]["ownerReferences"]] == ["set-uid", "guard-uid"]


def test_a_pod_of_0_1_stands_for_its_node() -> None:
    pod = pod_facts.read(taken(nodeset(replicas=None), theirs("a-x7k2p", hostname="machine")), "a")

    assert (pod.ordinal, pod.node_name, pod.on_node) == (None, "machine", True)


def test_claims_are_taken_over_under_the_name_of_the_next_pod() -> None:
    def volumes(*names: str) -> list[dict[str, Any]]:
        return [{"name": "data", "persistentVolumeClaim": {"claimName": name}} for name in names]

    def found(owner: NodeSet, obj: dict[str, Any]) -> dict[str, str]:
        return {name: own[labels.LABEL_POD_NAME] for name, own in takeover.claims_of(owner, obj)}

    ordinal = theirs(volumes=volumes("data-a-0", "shared"))
    on_node = theirs("a-x7k2p", hostname="machine", volumes=volumes("data-a-machine"))
    assert found(nodeset(), ordinal) == {"data-a-0": "a-0"}
    assert found(nodeset(replicas=None), on_node) == {"data-a-machine": "a-machine"}
    assert found(nodeset(), on_node) == {}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"comment": '{"namespace": "ns", "podName": "a-0"}'}, True),
        ({"comment": '{"namespace": "ns", "podName": "a-0", "node": "machine"}'}, True),
        ({"comment": '{"namespace": "other", "podName": "a-0"}'}, False),
        ({"comment": '{"namespace": "ns", "podName": "a-1"}'}, False),
        ({"comment": '{"namespace": "ns", "podName": "a-0"}', "extra": "ns/b"}, False),
        ({"comment": "a-0"}, False),
        ({"comment": '["a-0"]'}, False),
        ({"comment": ""}, False),
    ],
)
def test_a_record_is_known_by_the_comment_alone(values: dict[str, Any], named: bool) -> None:
    node = Node(name="a-0", state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]), **values)
    static = Node(name="a-0", state=NodeState.from_words(["IDLE"]), **values)

    assert identity.is_named_in(node, "ns", "a-0") is named
    assert not identity.is_named_in(static, "ns", "a-0")
