"""Claims that Kubernetes makes for StatefulSets, as they follow from the spec alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from slinky_api.v1alpha1.common import Persistence
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts import daemons
from slinky_operator.slurm import naming


def is_generated(persistence: Persistence) -> bool:
    """Whether a StatefulSet with these settings makes a claim."""
    return persistence.enabled and persistence.existing_claim is None


def claims_to_delete(snapshot: Snapshot) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Names of claims that go with the Cluster, and labels that they must have.

    They follow from the spec alone: a repeated pass no longer finds the StatefulSets.
    """
    cluster = snapshot.cluster
    return tuple(
        (daemon.claim_name(cluster), naming.selector_labels(cluster, daemon.component))
        for daemon in daemons.wanted(cluster)
        if (persistence := daemon.persistence(cluster)) is not None
        and is_generated(persistence)
        and persistence.when_deleted == "Delete"
    )
