"""A cordon does not start the clock of an older drain again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slinky_operator.nodeset.disruption import repairs
from slinky_operator.nodeset.drain import slurm_steps
from slinky_operator.nodeset.model.actions import Drain
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from tests.unit.nodeset.builders import NOW, OWNER, a_pod, job, joined, node, updating

UPDATE = frozenset({Cause.UPDATE})
NODE_CORDON = frozenset({Cause.NODE_CORDON})
HEALTH = frozenset({Cause.HEALTH})


def under_way(pod_revision: str, drained_for: frozenset[Cause]) -> tuple[Snapshot, Member]:
    """A pod on a cordoned Node, whose drain began an hour before."""
    of = updating()
    hosts = {"host": KubernetesNode("host", cordoned=True, why_cordoned="a new disk")}
    pod = a_pod(host="host", revision=pod_revision or revision.of(of), registered=True)
    record = node(
        "MIXED+DRAIN+DYNAMIC_NORM",
        reason=drains.reason(drained_for, OWNER),
        reason_changed_at=NOW - timedelta(hours=1),
    )
    member = joined(pod, record, job("RUNNING"))
    slurm = SlurmFacts(readable=True, nodes={record.name: record}, jobs={record.name: member.jobs})
    snapshot = Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), hosts=hosts, pods=(pod,))
    return snapshot, member


def written(snapshot: Snapshot, member: Member, causes: frozenset[Cause], health: str = "") -> list[str]:
    """The reasons of drains that are written."""
    unhealthy = {member.name: health} if Cause.HEALTH in causes else {}
    steps = slurm_steps.drains_to_write(snapshot, [member], {member.name: causes}, unhealthy, NOW)
    return [one.reason for one in steps if isinstance(one, Drain)]


def test_the_drain_of_an_update_stands_while_its_node_is_cordoned() -> None:
    assert written(*under_way("earlier", UPDATE), NODE_CORDON) == []
    # Nor when the cordon ends, and the update goes on.
    assert written(*under_way("earlier", UPDATE), UPDATE) == []


@pytest.mark.parametrize(("pod_revision", "began_for"), [("", UPDATE), ("earlier", frozenset({Cause.SCALE_IN}))])
def test_what_will_not_go_on_is_written_anew(pod_revision: str, began_for: frozenset[Cause]) -> None:
    """A later removal would find a deadline that has passed."""
    assert written(*under_way(pod_revision, began_for), NODE_CORDON) == [
        f"slurm-operator: node-cordon ({OWNER}): a new disk"
    ]


def test_a_cordon_that_becomes_an_update_gives_jobs_their_time() -> None:
    assert written(*under_way("earlier", NODE_CORDON), UPDATE) == [f"slurm-operator: update ({OWNER})"]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (NODE_CORDON, HEALTH, f"slurm-operator: health ({OWNER}): KernelDeadlock: stuck"),
        (
            NODE_CORDON,
            HEALTH | NODE_CORDON,
            f"slurm-operator: health, node-cordon ({OWNER}): a new disk; KernelDeadlock: stuck",
        ),
        (HEALTH, NODE_CORDON, f"slurm-operator: node-cordon ({OWNER}): a new disk"),
        (HEALTH, frozenset({Cause.SCALE_IN}), f"slurm-operator: scale-in ({OWNER})"),
        (HEALTH, HEALTH, ""),
        (HEALTH, HEALTH | {Cause.CORDON}, ""),
    ],
)
def test_a_reason_says_whether_a_node_is_drained_for_its_health(
    before: frozenset[Cause], after: frozenset[Cause], reason: str
) -> None:
    found = written(*under_way("", before), after, "KernelDeadlock: stuck")

    assert found == ([reason] if reason else [])


def test_an_update_that_waits_for_the_end_of_a_cordon_holds_no_repair_up() -> None:
    snapshot, member = under_way("earlier", UPDATE)
    late = a_pod(name="a-1", ordinal=1, uid="late", registered=False)
    wait = repairs.UnregisteredPod(late, NOW - timedelta(hours=1), NOW - timedelta(minutes=1))

    def chosen(seen: Snapshot) -> frozenset[str]:
        return repairs.choose(seen, [wait], [member, joined(late)], awaited=0, desired=2, now=NOW)

    assert chosen(snapshot) == {"a-1"}
    assert chosen(replace(snapshot, hosts={"host": KubernetesNode("host")})) == frozenset()
