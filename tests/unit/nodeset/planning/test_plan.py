"""How a plan handles records without a pod of the NodeSet."""

from __future__ import annotations

from datetime import UTC, datetime

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.actions import DeleteRecords
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def deleted(**values: object) -> list[str]:
    """Names of the records that are to be deleted, of two that are idle and tagged as this NodeSet's."""
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "set",
        "generation": 1,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    of = NodeSet.parse(
        {"metadata": metadata, "spec": {"clusterName": "c", "replicas": 0}, "status": {"scalingMode": "StatefulSet"}}
    )
    state = NodeState.from_words(["IDLE", "DYNAMIC_NORM"])
    nodes = {name: Node(name=name, extra="ns/a", instance_id="u", state=state) for name in ("a-0", "a-1")}
    slurm = SlurmFacts(readable=True, nodes=nodes, jobs={})
    seen = Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), **values)  # type: ignore[arg-type]
    return [name for action in plan(seen, NOW).actions if isinstance(action, DeleteRecords) for name in action.nodes]


def test_records_that_no_pod_stands_for_are_deleted() -> None:
    assert deleted() == ["a-0", "a-1"]


def test_records_of_pods_that_are_somebody_elses_stay() -> None:
    assert deleted(foreign_pods={"a-0": "there is a pod a-0 that is not ours"}) == ["a-1"]
    assert deleted(names_of_other_nodesets={"a-0": "a"}) == ["a-1"]
