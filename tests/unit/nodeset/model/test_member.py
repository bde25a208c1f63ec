"""A pod joined with its node: the join follows the contents of the snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Node
from tests.unit.nodeset.builders import OURS, a_pod, job, joined, node, nodeset

OTHER = a_pod(name="a-1", uid="v", ordinal=1)


@pytest.fixture
def seen() -> Snapshot:
    slurm = SlurmFacts(readable=True, nodes={"a-0": node()})
    return Snapshot(nodeset(), ClusterFacts("c", listed=True), slurm, Revision("r"), (a_pod(), OTHER))


def test_each_pod_is_joined_with_its_record(seen: Snapshot) -> None:
    assert seen.members == (Member(a_pod(), node(), RecordOwnership.OURS), Member(OTHER))


def test_jobs_that_were_asked_for_come_to_the_members(seen: Snapshot) -> None:
    running = job("RUNNING")

    asked = seen.with_jobs({"a-0": (running,)})

    assert [member.jobs for member in asked.members] == [(running,), ()]
    assert [member.record for member in asked.members] == [node(), None]


def test_of_a_slurm_that_has_failed_to_answer_nothing_is_left(seen: Snapshot) -> None:
    assert seen.blinded(Reason.SLURM_UNREACHABLE, "silence").members == (Member(a_pod()), Member(OTHER))


def test_other_pods_make_other_members(seen: Snapshot) -> None:
    assert replace(seen, pods=(OTHER,)).members == (Member(OTHER),)


@pytest.mark.parametrize(
    ("record", "causes"),
    [
        (None, set()),
        (node(reason=OURS), set()),
        (node("IDLE+DRAIN+DYNAMIC_NORM", reason="bad disk"), set()),
        (node("IDLE+DRAIN+DYNAMIC_NORM", reason=OURS), {Cause.SCALE_IN}),
    ],
)
def test_what_it_is_drained_for_is_read_from_a_drain_of_ours(record: Node | None, causes: set[Cause]) -> None:
    assert joined(a_pod(), record).drained_for == causes
