"""Who owns a record."""

from __future__ import annotations

from datetime import timedelta

from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Node
from tests.unit.nodeset.builders import NOW, OWNER, node


def test_a_record_is_known_by_uid_or_by_when_its_slurmd_started() -> None:
    started = NOW
    earlier = NOW - timedelta(hours=1)

    def of(record: Node) -> RecordOwnership:
        return identity.bond(record, owner=OWNER, pod_uid="u", slurmd_started_at=started)

    assert of(node()) is RecordOwnership.OURS
    assert of(node(instance_id="other", slurmd_start_time=earlier)) is RecordOwnership.PREDECESSOR
    assert of(node(instance_id="other", slurmd_start_time=started)) is RecordOwnership.OURS
    assert of(node(extra="ns/a-b")) is RecordOwnership.FOREIGN
    assert of(node(extra="ns/a-b", instance_id="u")) is RecordOwnership.FOREIGN
    assert of(node("IDLE")) is RecordOwnership.FOREIGN


def test_a_slurmd_that_started_after_another_of_its_name_had_ended_is_of_another_pod() -> None:
    """Another Kubernetes cluster may have a NodeSet of this name in the same Slurm."""
    hour = timedelta(hours=1)
    assert identity.has_started_since(node(slurmd_start_time=NOW), NOW - hour)
    assert not identity.has_started_since(node(slurmd_start_time=NOW), NOW + hour)
    assert not identity.has_started_since(node(slurmd_start_time=NOW), None)
    assert not identity.has_started_since(node(), NOW)
    assert not identity.has_started_since(None, NOW)
