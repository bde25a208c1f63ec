"""When a NodeSet is looked at again although nothing has happened."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from tests.unit.nodeset.builders import plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [None, 12.5, 86_400.0])
def test_a_maintenance_window_begins_and_ends_without_an_event(seconds: float | None) -> None:
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
    cluster = ClusterFacts("c", listed=True, maintenance_changes_in=seconds)
    slurm = SlurmFacts(readable=True, nodes={}, jobs={})
    assert plan(Snapshot(of, cluster, slurm, Revision(revision.of(of))), NOW).wake_up == seconds
