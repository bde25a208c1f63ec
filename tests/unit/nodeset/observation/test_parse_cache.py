"""Objects are parsed once, and again when they have changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts
from slinky_operator.nodeset.observation.observe import problems_of
from slinky_operator.nodeset.observation.parse_cache import NodeSetParseCache

NODESET: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "NodeSet",
    "metadata": {"name": "a", "namespace": "ns", "uid": "set-uid"},
    "spec": {"clusterName": "c", "image": "v1"},
}
CLUSTER: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "ns", "uid": "cluster-uid"},
    "spec": {},
}
EXTERNAL = {"server": "http://slurm:6820", "token": {"secretRef": "token"}}


def changed(obj: dict[str, Any], **spec: Any) -> dict[str, Any]:
    found = copy.deepcopy(obj)
    found["spec"] |= spec
    return found


def test_an_object_that_is_still_the_same_is_not_read_again() -> None:
    readings = NodeSetParseCache()
    assert readings.nodeset(NODESET) is readings.nodeset(NODESET)


def test_a_changed_object_is_read_again() -> None:
    readings = NodeSetParseCache()
    readings.nodeset(NODESET)
    assert readings.nodeset(changed(NODESET, image="v2")).spec.image == "v2"
    assert readings.nodeset(NODESET).spec.image == "v1"


def test_what_follows_from_a_spec_is_kept_while_only_the_status_changes() -> None:
    readings = NodeSetParseCache()
    cluster = Cluster.parse(CLUSTER)
    before = readings.wanted(readings.nodeset(NODESET), cluster)
    other = copy.deepcopy(NODESET) | {"status": {"replicas": 3}}
    assert readings.wanted(readings.nodeset(other), cluster) is before


def test_what_follows_from_a_spec_follows_its_changes() -> None:
    readings = NodeSetParseCache()
    cluster = Cluster.parse(CLUSTER)
    before = readings.wanted(readings.nodeset(NODESET), cluster)
    nodeset = readings.nodeset(changed(NODESET, image="v2"))
    after = readings.wanted(nodeset, cluster)
    assert before.hash != after.hash == revision.of(nodeset)
    assert after.content["image"] == "v2"


def test_what_keeps_pods_from_being_made_depends_on_the_cluster_too() -> None:
    readings = NodeSetParseCache()
    nodeset = readings.nodeset(NODESET)
    assert readings.wanted(nodeset, Cluster.parse(CLUSTER)).problems == ()
    external = Cluster.parse(changed(CLUSTER, **EXTERNAL))
    (problem,) = readings.wanted(nodeset, external).problems
    assert "controller.external" in problem


def test_what_cannot_be_read_is_refused_each_time() -> None:
    readings = NodeSetParseCache()
    readings.nodeset(NODESET)
    broken = changed(NODESET, replicas="many")
    for _ in range(2):
        with pytest.raises(InvalidObjectError):
            readings.nodeset(broken)


def test_a_nodeset_that_is_gone_is_forgotten() -> None:
    readings = NodeSetParseCache()
    before = readings.nodeset(NODESET)
    readings.forget("set-uid")
    assert readings.nodeset(NODESET) is not before


def test_a_feature_called_like_another_nodeset_of_the_cluster_keeps_pods_from_being_made() -> None:
    readings = NodeSetParseCache()
    cluster = Cluster.parse(CLUSTER)
    nodeset = readings.nodeset(changed(NODESET, features=["fast", "gpu"]))
    wanted = readings.wanted(nodeset, cluster)

    (problem,) = problems_of("a", wanted, ClusterFacts("c", node_sets=frozenset({"a", "gpu"})))
    assert problem.startswith("spec.features[1]: feature gpu is the name of a NodeSet of this Cluster")
    assert problems_of("a", wanted, ClusterFacts("c", leaving=frozenset({"gpu"}))) == (problem,)
    assert problems_of("a", wanted, ClusterFacts("c", node_sets=frozenset({"a"}))) == ()
    # Their slurm.conf may mean something else by it.
    assert problems_of("a", wanted, ClusterFacts("c", external=True, node_sets=frozenset({"a", "gpu"}))) == ()
