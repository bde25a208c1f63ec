"""Which pods may be evicted, and what pods show of their nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption import eviction
from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.actions import Drain, PodStatusPatch, Protect, Undrain, Unprotect
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition, Pod, Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning.plan import Plan
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from slurm_client.models.values import INFINITE
from tests.unit.nodeset.builders import joined, plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = "ns/a"
CORDON = drains.reason([Cause.CORDON], OWNER)


def nodeset(*, protected: bool = True) -> NodeSet:
    return NodeSet.parse(
        {
            "metadata": {
                "name": "a",
                "namespace": "ns",
                "uid": "set",
                "generation": 1,
                "finalizers": [labels.FINALIZER_NODESET_DRAIN],
            },
            "spec": {"clusterName": "c", "replicas": 1, "workloadDisruptionProtection": protected},
        }
    )


def a_pod(**values: Any) -> Pod:
    given: dict[str, Any] = {
        "name": "a-0",
        "node_name": "a-0",
        "uid": "u",
        "ordinal": 0,
        "revision": revision.of(nodeset()),
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
        "ready_since": NOW,
        "protected": True,
    }
    return Pod(**(given | values))


def node(words: str = "IDLE", reason: str = "", **values: Any) -> Node:
    given: dict[str, Any] = {"name": "a-0", "extra": OWNER, "instance_id": "u", **values}
    if reason:
        given |= {"reason": reason, "reason_changed_at": NOW}
    return Node(state=NodeState.from_words([*words.split("+"), "DYNAMIC_NORM"]), **given)


def job(words: str = "RUNNING", **values: Any) -> Job:
    given: dict[str, Any] = {"id": 1, "nodes": ("a-0",), **values}
    return Job(state=JobState.from_words(words.split("+")), **given)


def planned(pod: Pod, record: Node, *jobs: Job, of: NodeSet | None = None, readable: bool = True) -> Plan:
    slurm = SlurmFacts(readable=readable, why="silence", nodes={"a-0": record}, jobs={"a-0": jobs} if jobs else {})
    of = of or nodeset()
    return plan(Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), (pod,), guard="g"), NOW)


def kinds(made: Plan) -> list[type]:
    told = (Drain, Undrain, Protect, Unprotect)
    return [type(action) for action in made.actions if isinstance(action, told)]


def test_a_cordoned_pod_may_be_evicted_once_its_node_is_drained_and_empty() -> None:
    cordoned = a_pod(cordoned=True)

    assert kinds(planned(cordoned, node())) == [Drain]
    assert kinds(planned(cordoned, node("ALLOCATED+DRAIN", CORDON), job())) == []
    assert kinds(planned(cordoned, node("IDLE+DRAIN", CORDON), job("SUSPENDED"))) == []
    assert kinds(planned(cordoned, node("IDLE+DRAIN", CORDON))) == [Unprotect]
    # Somebody else's drain serves as well: a cordon does not replace it.
    assert kinds(planned(cordoned, node("IDLE+DRAIN", "mine"))) == [Unprotect]


def test_a_pod_is_protected_again_before_its_node_is_given_back() -> None:
    bare = a_pod(protected=False)

    assert kinds(planned(bare, node("IDLE+DRAIN", CORDON))) == [Protect]
    assert kinds(planned(a_pod(), node("IDLE+DRAIN", CORDON))) == [Undrain]


def test_a_pod_whose_node_was_given_back_by_somebody_else_is_protected_and_drained() -> None:
    assert kinds(planned(a_pod(cordoned=True, protected=False), node())) == [Protect, Drain]


def test_with_slurm_blind_pods_are_protected() -> None:
    assert kinds(planned(a_pod(cordoned=True, protected=False), node("IDLE+DRAIN", CORDON), readable=False)) == [
        Protect
    ]


def test_an_idle_node_drained_by_an_administrator_alone_stays_protected() -> None:
    assert kinds(planned(a_pod(), node("IDLE+DRAIN", "mine"))) == []


def test_protection_can_be_renounced() -> None:
    open_house = nodeset(protected=False)

    assert kinds(planned(a_pod(), node(), of=open_house)) == [Unprotect]
    assert kinds(planned(a_pod(protected=False), node("IDLE+DRAIN", CORDON), of=open_house)) == [Undrain]
    assert kinds(planned(a_pod(protected=False), node())) == [Protect]


@pytest.mark.parametrize(
    ("record", "jobs", "lifted"),
    [
        (node("IDLE+DRAIN", CORDON), (), True),
        (node("IDLE+DRAIN", CORDON), (job("SUSPENDED"),), False),
        (node("IDLE+DRAIN+COMPLETING", CORDON), (), False),
        (node(), (), False),
        (None, (), False),
        (node("IDLE+DRAIN", CORDON, extra="ns/a-b"), (), False),
    ],
)
def test_the_last_word_before_protection_is_lifted(record: Node | None, jobs: tuple[Job, ...], lifted: bool) -> None:
    assert eviction.may_be_lifted(joined(a_pod(), record, *jobs)) is lifted


def change(state: pod_state.State, record: Node | None = None, **values: Any) -> PodStatusPatch | None:
    return pod_condition.change(joined(a_pod(**values), record), state)


def test_a_draining_pod_shows_reason_jobs_and_when_the_last_one_must_have_ended() -> None:
    record = node("ALLOCATED+DRAIN", CORDON)
    limited = job(time_limit=timedelta(hours=1), end_time=NOW + timedelta(hours=1))

    found = change(pod_state.Draining(frozenset({Cause.CORDON}), NOW, (limited,)), record)

    assert found is not None
    assert found.told is not None
    assert (found.told.status, found.told.reason) == ("False", "Draining")
    assert "job 1;" in found.told.message
    assert CORDON in found.told.message
    assert found.deadline == "2026-01-01T13:00:00Z"
    told = pod_state.Draining(frozenset({Cause.CORDON}), NOW, (limited,))
    assert change(told, record, told=found.told, deadline=found.deadline) is None


def test_a_job_without_a_limit_has_no_deadline() -> None:
    endless = job(time_limit=INFINITE, end_time=NOW + timedelta(days=365))

    found = change(pod_state.Draining(frozenset(), NOW, (endless,)), node("ALLOCATED+DRAIN", CORDON), deadline="old")

    assert found is not None
    assert found.deadline == ""


def test_drained_and_foreign_drains_are_shown_and_taken_back() -> None:
    drained = change(pod_state.Drained(frozenset({Cause.CORDON})), node("IDLE+DRAIN", CORDON))
    foreign = change(pod_state.Ready("mine"), node("IDLE+DRAIN", "mine"))
    back = change(pod_state.Ready(), node(), told=DrainCondition("True", "Drained", "whatever"), deadline="2026")

    assert drained is not None
    assert drained.told is not None
    assert drained.told.status == "True"
    assert foreign is not None
    assert foreign.told is not None
    assert (foreign.told.status, foreign.told.reason) == ("False", "ForeignDrain")
    assert back is not None
    assert back.told is not None
    assert (back.told.reason, back.deadline) == ("NotDrained", "")


def test_a_node_that_takes_jobs_needs_no_words() -> None:
    assert change(pod_state.Ready(), node()) is None
    assert (
        change(pod_state.Unknown("silence"), None, told=DrainCondition("True", "Drained", "whatever"), deadline="x")
        is None
    )
