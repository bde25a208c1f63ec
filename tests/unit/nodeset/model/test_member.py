"""A pod joined with its node: the join follows the contents of the snapshot."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.report import out_of_service
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits, Traits
from slurm_client.models import Node
from slurm_client.models.node import NodeState
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


def test_what_a_pass_learns_joins_no_pod_again(seen: Snapshot) -> None:
    members = seen.members
    refused = {"a-0": RefusedTraits(Traits(), "no such topology")}
    learnt = seen.with_learnt({}, refused)
    assert learnt.members is members
    assert learnt.refused_traits == refused
    assert learnt == replace(seen, refused_traits=refused)


FLAGS = sorted(NodeState.FLAGS)
REASONS = ("", OURS, drains.PARTING, "by hand", "Low RealMemory (reported:1 < 100.00% of configured:2)")


@pytest.mark.parametrize("base", sorted(NodeState.BASES))
@pytest.mark.parametrize("reason", REASONS)
def test_rules_about_nodes_that_get_no_jobs_find_nothing_among_the_others(base: str, reason: str) -> None:
    found = set()
    for flag, other in combinations([*FLAGS, ""], 2):
        record = node("+".join(filter(None, (base, flag, other))), reason=reason)
        if drains.is_aside(record):
            found |= {flag, other}
            continue
        rules = (
            drains.is_ours,
            drains.is_foreign,
            drains.may_be_given_back,
            drains.causes_in,
            registration.is_rejected,
            registration.is_stale_drain,
            out_of_service.is_spool_full,
        )
        assert [rule.__name__ for rule in rules if rule(record)] == []
        assert [record.is_down, record.is_drain, record.is_not_responding] == [False] * 3
    assert {"DRAIN", "INVALID_REG", "NOT_RESPONDING"} <= found


def test_pods_whose_nodes_get_no_jobs_are_aside(seen: Snapshot) -> None:
    assert seen.aside == ()
    slurm = replace(seen.slurm, nodes={"a-0": node("IDLE+DRAIN"), "a-1": node(name="a-1")})
    assert [member.name for member in replace(seen, slurm=slurm).aside] == ["a-0"]
