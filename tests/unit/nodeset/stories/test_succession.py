"""Which pods move to the existing Cluster: those created for a deleted one of its name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.actions import Adopt, CreatePods, DeletePods, Drain
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
METADATA = {
    "name": "a",
    "namespace": "ns",
    "uid": "set",
    "generation": 1,
    "finalizers": [labels.FINALIZER_NODESET_DRAIN],
}
NODESET = NodeSet.parse(
    {"metadata": METADATA, "spec": {"clusterName": "c", "replicas": 2}, "status": {"scalingMode": "StatefulSet"}}
)


def planned(cluster: ClusterFacts, *, blind: bool = False, **values: object) -> list[object]:
    pod = Pod(
        **{  # type: ignore[arg-type]
            "name": "a-0",
            "node_name": "a-0",
            "uid": "u",
            "ordinal": 0,
            "host": "host",
            "revision": revision.of(NODESET),
            "slurmd": Slurmd.RUNNING,
            "registered": True,
            "protected": True,
            "guards": frozenset({"guard"}),
            "cluster_labels": ("former", "c"),
            **values,
        }
    )
    node = Node(name="a-0", extra="ns/a", instance_id="u", state=NodeState.from_words(["IDLE", "DYNAMIC_NORM"]))
    slurm = SlurmFacts(readable=not blind, nodes={"a-0": node}, jobs={})
    return list(plan(Snapshot(NODESET, cluster, slurm, Revision(revision.of(NODESET)), (pod,)), NOW).actions)


def adopted(actions: list[object]) -> list[str]:
    return [pod.name for one in actions if isinstance(one, Adopt) for pod in one.pods]


@pytest.mark.parametrize("blind", [True, False])
def test_pods_of_a_former_cluster_are_given_to_the_next_and_nothing_else_happens_to_them(blind: bool) -> None:
    made = planned(ClusterFacts("next"), blind=blind)
    assert adopted(made) == ["a-0"]
    # The next one lists no NodeSet before a configuration is live.
    assert not [one for one in made if isinstance(one, CreatePods | DeletePods | Drain)]


def test_pods_of_the_cluster_there_is_are_left_alone() -> None:
    assert adopted(planned(ClusterFacts("next"), cluster_labels=("next", "c"))) == []


def test_nobody_is_given_to_a_cluster_that_is_not_there() -> None:
    assert adopted(planned(ClusterFacts(gone=True))) == []


def test_pods_that_go_are_left_alone() -> None:
    assert adopted(planned(ClusterFacts("next"), deleting=True)) == []


@pytest.mark.parametrize("lost", [labels.LABEL_CLUSTER_NAME, labels.LABEL_DAEMON])
def test_a_pod_whose_label_was_taken_off_is_outside_of_its_cluster(lost: str) -> None:
    own = {
        labels.LABEL_CLUSTER_NAME: "c",
        labels.LABEL_CLUSTER_UID: "next",
        labels.LABEL_DAEMON: "slurmd",
    }
    whole = {"metadata": {"name": "a-0", "uid": "u", "labels": own}}
    assert pod_facts.read(whole, "a").cluster_labels == ("next", "c")
    bare = {"metadata": {"name": "a-0", "uid": "u", "labels": {key: own[key] for key in own if key != lost}}}
    assert pod_facts.read(bare, "a").cluster_labels == ("next", "")
