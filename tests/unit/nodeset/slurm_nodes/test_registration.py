"""Nodes whose registrations Slurm rejects: who owns their drain, what they count as, and how they return."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption import availability
from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.actions import DeletePods, Drain, Undrain
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition, Pod, Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import Recorded, Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.report import status
from slinky_operator.nodeset.slurm_nodes import drains, records
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import joined, plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(days=1)
LOW = "Low RealMemory (reported:24105 < 100.00% of configured:999999)"
GRES = "gres/gpu count reported lower than configured (0 < 1)"
REJECTED = "IDLE+DRAIN+INVALID_REG+DYNAMIC_NORM"
MENDED = "IDLE+DRAIN+DYNAMIC_NORM"
BEFORE = DrainCondition("False", "ForeignDrain", "node a-1 is IDLE+DRAIN; drained since x with the reason: bad disk")


def node(number: int = 1, words: str = "IDLE+DYNAMIC_NORM", reason: str = "") -> Node:
    state = NodeState.from_words(words.split("+"))
    return Node(name=f"a-{number}", extra="ns/a", instance_id=f"u{number}", state=state, reason=reason)


def pod(number: int = 1, revision: str = "new", **values: Any) -> Pod:
    given: dict[str, Any] = {
        "name": f"a-{number}",
        "node_name": f"a-{number}",
        "uid": f"u{number}",
        "ordinal": number,
        "revision": revision,
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "slurmd_started_at": NOW,
        "created_at": NOW,
        "registered": True,
        "ready_since": NOW,
        "protected": True,
    }
    return Pod(**(given | values))


def seen(*pairs: tuple[Pod, Node], jobs: dict[str, tuple[Job, ...]] | None = None, **given: Any) -> Snapshot:
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "finalizers": [labels.FINALIZER_NODESET_DRAIN]}
    spec = {"clusterName": "c", "replicas": len(pairs), **given}
    body = {"metadata": metadata, "spec": spec, "status": {"scalingMode": "StatefulSet"}}
    return Snapshot(
        NodeSet.parse(body),
        ClusterFacts(uid="c", listed=True),
        SlurmFacts(readable=True, nodes={one.name: one for _, one in pairs}, jobs={} if jobs is None else jobs),
        Revision("new", current="new", recorded=(Recorded("a-new", "new-uid", "new", 1, {}),)),
        tuple(one for one, _ in pairs),
        hosts={},
        guard="guard",
    )


def planned(snapshot: Snapshot, kind: type) -> list[Any]:
    return [action for action in plan(snapshot, NOW).actions if isinstance(action, kind)]


def degraded(snapshot: Snapshot) -> Condition:
    made = plan(snapshot, NOW)
    conditions = status.build(snapshot, made.decisions, NOW).conditions
    return next(one for one in conditions if one.type == "Degraded")


@pytest.mark.parametrize("reason", [LOW, GRES, f"{GRES}, Low socket*core*thread count, Low CPUs", "Low TmpDisk"])
def test_what_slurm_drains_for_a_registration_is_nobodys(reason: str) -> None:
    for words in (REJECTED, MENDED):
        assert not drains.is_foreign(node(1, words, reason))
    assert records.settle([node(1, REJECTED, reason)], {}, ()).delete == ("a-1",)


@pytest.mark.parametrize("reason", ["bad disk", f"{LOW}, and the disk", f"ours: {LOW}", "Low", "Low blood sugar", ""])
def test_other_words_are_a_persons(reason: str) -> None:
    assert drains.is_foreign(node(1, REJECTED, reason))
    assert records.settle([node(1, REJECTED, reason)], {}, ()).delete == ()
    assert drains.to_undrain(["a-1"], {"a-1": node(1, MENDED, reason)}, "ns/a") == []


@pytest.mark.parametrize("reason", [LOW, "bad disk", "slurm-operator: update (ns/a)"])
def test_a_node_that_slurm_does_not_take_is_not_ready_whoever_drains_it(reason: str) -> None:
    snapshot = seen((pod(), node(1, REJECTED, reason)))

    assert not availability.is_ready(snapshot.members[0])
    assert availability.is_ready(joined(pod(), node()))


def test_a_spec_with_which_slurmd_registers_badly_stops_at_the_budget() -> None:
    snapshot = seen((pod(0, "old"), node(0)), (pod(1), node(1, REJECTED, LOW)))

    assert planned(snapshot, Drain) == planned(snapshot, DeletePods) == []
    found = degraded(snapshot)
    assert (found.status, found.reason) == ("True", Reason.INVALID_REGISTRATION)
    assert f"a-1: {LOW}" in found.message


def test_once_mended_the_update_replaces_what_slurm_did_not_take() -> None:
    snapshot = seen((pod(0), node(0)), (pod(1, "bad"), node(1, REJECTED, LOW)))

    assert planned(snapshot, DeletePods) == [DeletePods((pod(1, "bad"),))]
    assert planned(snapshot, Drain) == []


def test_jobs_on_such_a_node_are_left_to_end() -> None:
    job = Job(id=7, state=JobState("RUNNING"), nodes=("a-1",))
    busy = node(1, "ALLOCATED+DRAIN+INVALID_REG+DYNAMIC_NORM", LOW)
    snapshot = seen((pod(0), node(0)), (pod(1, "bad"), busy), jobs={"a-1": (job,)})

    assert planned(snapshot, DeletePods) == planned(snapshot, Drain) == []
    assert "jobs run on it" in degraded(snapshot).message
    suspended = seen((pod(1, "bad"), node(1, REJECTED, LOW)), jobs={"a-1": (job,)})
    assert planned(suspended, DeletePods) == []


def test_a_node_is_given_back_only_once_slurm_takes_its_registration() -> None:
    for reason in (LOW, "slurm-operator: update (ns/a)"):
        assert planned(seen((pod(), node(1, REJECTED, reason))), Undrain) == []
        assert planned(seen((pod(), node(1, MENDED, reason))), Undrain) == [Undrain(("a-1",))]
    assert drains.to_undrain(["a-1"], {"a-1": node(1, REJECTED, LOW)}, "ns/a") == []


def test_an_update_counts_what_is_given_back_as_one_that_serves() -> None:
    """It would be available at once: beside one that is not Ready for long enough, the budget has no room for it."""
    unripe, mended = (pod(0, "old"), node(0)), (pod(1, "old", ready_since=EARLIER), node(1, MENDED, LOW))
    snapshot = seen(unripe, mended, minReadySeconds=30)

    assert planned(snapshot, Drain) == planned(snapshot, DeletePods) == []
    assert planned(snapshot, Undrain) == [Undrain(("a-1",))]


def test_a_cordoned_pod_that_has_yet_to_come_up_takes_its_place_in_the_budget() -> None:
    """One that does not answer for a moment may come back, and is not replaced beside it."""
    old = pod(0, "old", ready_since=EARLIER), node(0, "IDLE+NOT_RESPONDING+DYNAMIC_NORM")
    new = pod(1, registered=False, ready_since=None, slurmd=Slurmd.NEVER, slurmd_started_at=None, cordoned=True)

    assert planned(seen(old, (new, node(2))), Drain) == []
    assert planned(seen(old, (replace(new, created_at=EARLIER), node(2))), Drain) == [ANY]


def test_a_drain_that_was_mended_becomes_ours_where_we_want_the_node_drained() -> None:
    assert drains.needs_write(node(1, MENDED, LOW), {Cause.CORDON})
    assert not drains.needs_write(node(1, REJECTED, LOW), {Cause.CORDON})
    assert not drains.needs_write(node(1, MENDED, "bad disk"), {Cause.CORDON})


def test_a_persons_drain_stays_theirs_when_slurm_writes_its_words_over_it() -> None:
    one = pod(1, "bad", told=BEFORE)

    assert pod_condition.previous_foreign_reason(joined(one, node(1, REJECTED, LOW))) == "bad disk"
    for words in (REJECTED, MENDED):
        snapshot = seen((pod(0), node(0)), (one, node(1, words, LOW)))
        assert planned(snapshot, DeletePods) == planned(snapshot, Undrain) == planned(snapshot, Drain) == []
        assert "somebody else had drained it before (bad disk)" in degraded(snapshot).message
        assert pod_condition.change(joined(one, node(1, words, LOW)), pod_state.Misregistered(LOW)) is None


def test_the_pod_shows_slurms_words() -> None:
    snapshot = seen((pod(), node(1, REJECTED, LOW)))
    state = pod_state.classify(snapshot.members[0], snapshot.slurm, ())

    assert state == pod_state.Misregistered(LOW)
    change = pod_condition.change(snapshot.members[0], state)
    assert change is not None
    assert change.told is not None
    assert change.told.reason == "InvalidRegistration"
    assert change.told.message.endswith(LOW)
