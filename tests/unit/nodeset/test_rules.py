"""The small rules, each by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_operator.nodeset.disruption import victims
from slinky_operator.nodeset.model import pod_facts, pod_names, pod_state
from slinky_operator.nodeset.model.member import join
from slinky_operator.nodeset.model.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import SlurmFacts
from slinky_operator.nodeset.slurm_nodes import drains, identity, records
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import joined

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = "ns/a"
OURS = drains.reason([Cause.SCALE_IN], OWNER)


def node(words: str = "IDLE+DYNAMIC_NORM", **values: Any) -> Node:
    given: dict[str, Any] = {"name": "a-0", "extra": OWNER, "instance_id": "u", **values}
    return Node(state=NodeState.from_words(words.split("+")), **given)


def job(words: str, number: int = 1, **values: Any) -> Job:
    return Job(id=number, state=JobState.from_words(words.split("+")), nodes=("a-0",), **values)


def a_pod(**values: Any) -> Pod:
    given: dict[str, Any] = {
        "name": "a-0",
        "uid": "u",
        "ordinal": 0,
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
    } | values
    return Pod(**({"node_name": given["name"]} | given))


@pytest.mark.parametrize("words", ["ALLOCATED", "MIXED", "IDLE+COMPLETING", "DOWN+COMPLETING", "MIXED+COMPLETING"])
def test_a_busy_node_is_not_drained(words: str) -> None:
    assert not drains.is_drained(node(f"{words}+DRAIN+DYNAMIC_NORM"), [])


@pytest.mark.parametrize("words", ["IDLE", "DOWN", "DOWN+NOT_RESPONDING", "IDLE+INVALID_REG"])
def test_an_empty_drained_node_is_drained(words: str) -> None:
    assert drains.is_drained(node(f"{words}+DRAIN+DYNAMIC_NORM"), [])
    assert not drains.is_drained(node(f"{words}+DYNAMIC_NORM"), [])


@pytest.mark.parametrize(
    "words",
    ["RUNNING", "SUSPENDED", "CANCELLED+COMPLETING", "COMPLETED+STAGE_OUT", "RUNNING+CONFIGURING", "TELEPORTING"],
)
def test_these_jobs_hold_their_nodes(words: str) -> None:
    held = drains.jobs_by_node([job(words)])

    assert held["a-0"]
    assert not drains.is_drained(node("IDLE+DRAIN+DYNAMIC_NORM"), held["a-0"])


@pytest.mark.parametrize("words", ["PENDING", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT", "CANCELLED"])
def test_these_jobs_hold_nothing(words: str) -> None:
    assert drains.jobs_by_node([job(words)]) == {}


def test_causes_are_read_back_from_the_reason() -> None:
    reason = drains.reason({Cause.UPDATE, Cause.SCALE_IN}, OWNER)

    assert reason == "slurm-operator: scale-in, update (ns/a)"
    drained = node("IDLE+DRAIN+DYNAMIC_NORM", reason=reason)
    assert drains.causes_in(drained) == {Cause.UPDATE, Cause.SCALE_IN}
    # 24.11 leaves the reason standing after an undrain.
    assert drains.causes_in(node(reason=reason)) == frozenset()


def test_the_words_of_a_cordoned_node_do_not_hide_the_causes() -> None:
    reason = drains.reason({Cause.NODE_CORDON, Cause.SCALE_IN}, OWNER, "disk (sda) is full: replace")

    assert reason == "slurm-operator: node-cordon, scale-in (ns/a): disk (sda) is full: replace"
    drained = node("IDLE+DRAIN+DYNAMIC_NORM", reason=reason)
    assert drains.causes_in(drained) == {Cause.NODE_CORDON, Cause.SCALE_IN}


def test_drains_are_written_only_where_nobody_drains() -> None:
    fresh = {
        "free": node(name="free"),
        "mine": node("IDLE+DRAIN+DYNAMIC_NORM", name="mine", reason="mine"),
        "ours": node("IDLE+DRAIN+DYNAMIC_NORM", name="ours", reason=OURS),
        "neighbour": node(name="neighbour", extra="ns/a-b"),
        "static": node("IDLE", name="static"),
        "unknown": None,
    }

    assert drains.to_drain(fresh, fresh, OWNER, {Cause.SCALE_IN}) == ["free"]
    assert drains.to_drain(fresh, fresh, OWNER, {Cause.CORDON}) == ["free", "ours"]
    assert drains.to_undrain(fresh, fresh, OWNER) == ["ours"]


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


@pytest.mark.parametrize(
    ("pod", "free"),
    [
        (a_pod(registered=False, slurmd=Slurmd.NEVER, host=""), True),
        (a_pod(registered=False, slurmd=Slurmd.NEVER), False),
        (a_pod(registered=False, slurmd=Slurmd.NEVER, stuck="ImagePullBackOff"), True),
        (a_pod(registered=False, slurmd=Slurmd.BETWEEN, stuck="ImagePullBackOff"), False),
        (a_pod(registered=True, slurmd=Slurmd.NEVER, host=""), False),
        (a_pod(registered=False), False),
        (a_pod(slurmd=Slurmd.ENDED), True),
    ],
)
def test_who_may_go_with_slurm_blind(pod: Pod, free: bool) -> None:
    assert pod_state.may_delete_without_slurm(pod) is free


def test_why_a_pod_is_kept() -> None:
    drained = node("IDLE+DRAIN+DYNAMIC_NORM", reason="anybody's")

    def kept(pod: Pod, record: Node | None, *jobs: Job) -> str | None:
        return pod_state.why_kept(joined(pod, record, *jobs), NOW)

    assert kept(a_pod(), drained) is None
    assert "holds jobs 1" in (kept(a_pod(), drained, job("SUSPENDED")) or "")
    assert "IDLE" in (kept(a_pod(), node()) or "")
    assert "does not know" in (kept(a_pod(), None) or "")
    assert "about to register" in (kept(a_pod(registered=False, slurmd_started_at=NOW), None) or "")
    assert kept(a_pod(registered=False, slurmd_started_at=NOW - timedelta(minutes=1)), None) is None
    for slurmd in (Slurmd.NEVER, Slurmd.BETWEEN):
        starting = a_pod(registered=False, slurmd=slurmd, created_at=NOW)
        # Slurm would give jobs to a slurmd that registers while its pod is being deleted (measured).
        assert "about to start" in (kept(starting, None) or "")
        assert kept(replace(starting, created_at=NOW - timedelta(minutes=1)), None) is None
        assert kept(replace(starting, stuck="ImagePullBackOff"), None) is None
        assert kept(replace(starting, host=""), None) is None
    assert "somebody else's" in (kept(a_pod(), node("IDLE+DRAIN", extra="")) or "")
    assert kept(a_pod(slurmd=Slurmd.ENDED), node("ALLOCATED+DYNAMIC_NORM"), job("RUNNING")) is None


def test_each_pod_is_in_one_state() -> None:
    def state(pod: Pod, record: Node | None, *causes: Cause, readable: bool = True) -> pod_state.State:
        return pod_state.classify(joined(pod, record), SlurmFacts(readable=readable, why="silence", jobs={}), causes)

    assert state(a_pod(), node()) == pod_state.Ready()
    assert state(a_pod(), node("IDLE+DRAIN+DYNAMIC_NORM", reason="mine")) == pod_state.Ready("mine")
    assert isinstance(state(a_pod(), node(), Cause.CORDON), pod_state.Draining)
    assert isinstance(state(a_pod(), node("IDLE+DRAIN+DYNAMIC_NORM", reason=OURS)), pod_state.Drained)
    assert state(a_pod(), None, readable=False) == pod_state.Unknown("silence")
    assert isinstance(state(a_pod(), None), pod_state.Unknown)
    assert isinstance(state(a_pod(registered=False), node()), pod_state.Starting)
    assert state(a_pod(deleting=True), node()) == pod_state.Deleting()
    assert state(a_pod(deleting=True, slurmd=Slurmd.ENDED), node()) == pod_state.Ended()


def test_those_go_first_that_cost_least() -> None:
    pods = [a_pod(name=f"a-{number}", ordinal=number, uid=str(number)) for number in range(6)]
    pods[5] = a_pod(name="a-5", ordinal=5, uid="5", registered=False, slurmd=Slurmd.NEVER, host="")
    pods[4] = a_pod(name="a-4", ordinal=4, uid="4", deletion_cost=9)
    nodes = {f"a-{number}": node(name=f"a-{number}", instance_id=str(number)) for number in range(5)}
    nodes["a-0"] = node("IDLE+DRAIN+DYNAMIC_NORM", name="a-0", reason="mine")
    for name in ("a-1", "a-2"):
        nodes[name] = node("ALLOCATED+DYNAMIC_NORM", name=name)
    jobs = {
        "a-1": (job("RUNNING", start_time=NOW - timedelta(hours=5)),),
        "a-2": (job("RUNNING", start_time=NOW - timedelta(minutes=5)),),
    }

    order = victims.choose([join(pod, nodes, jobs, OWNER) for pod in pods], 6, NOW)

    assert [pod.name for pod in order] == ["a-5", "a-0", "a-3", "a-4", "a-2", "a-1"]


def test_a_begun_drain_keeps_its_place_among_the_busy() -> None:
    pods = [a_pod(name=f"a-{number}", ordinal=number) for number in range(2)]
    nodes = {
        "a-0": node("ALLOCATED+DRAIN+DYNAMIC_NORM", name="a-0", reason=OURS),
        "a-1": node("ALLOCATED+DYNAMIC_NORM", name="a-1"),
    }
    jobs = {"a-0": (job("RUNNING", start_time=NOW - timedelta(days=9)),), "a-1": (job("RUNNING", start_time=NOW),)}

    assert [one.name for one in victims.choose([join(pod, nodes, jobs, OWNER) for pod in pods], 1, NOW)] == ["a-0"]


def test_records_of_pods_that_are_gone() -> None:
    idle, busy = node(name="idle"), node("ALLOCATED+DYNAMIC_NORM", name="busy")
    ghost, mine = node("ALLOCATED+DYNAMIC_NORM", name="ghost"), node("IDLE+DRAIN+DYNAMIC_NORM", name="mine", reason="x")
    suspended = node(name="suspended")

    found = records.settle([idle, busy, ghost, mine, suspended], {"suspended": (job("SUSPENDED"),)}, {"ghost"})

    assert found == records.RecordCleanup(("idle",), ("ghost",), ("busy", "suspended"))
    ours = node("DOWN+DRAIN+NOT_RESPONDING+DYNAMIC_NORM", name="ours", reason=OURS)
    assert records.settle([ours], {}, set()) == records.RecordCleanup(("ours",))
    assert records.to_delete(["ours"], {"ours": ours}, {}, set(), OWNER) == ["ours"]
    assert records.settle([idle], None, set()) == records.RecordCleanup()


def test_a_drain_whose_reason_a_hook_of_slinky_has_written_over_is_nobodys() -> None:
    """Measured: `scontrol update state=down reason=preStop` keeps the drain and replaces its reason."""
    gone = node("DOWN+DRAIN+DYNAMIC_NORM", reason="preStop")

    assert not drains.is_ours(gone)
    assert not drains.is_foreign(gone)
    assert records.settle([gone], {}, set()) == records.RecordCleanup(("a-0",))
    assert records.to_delete(["a-0"], {"a-0": gone}, {}, set(), OWNER) == ["a-0"]
    assert records.why_blocked(gone, {}, OWNER) is not None


@pytest.mark.parametrize(
    ("name", "number"),
    [("a-0", 0), ("a-007", 7), ("a-b-0", None), ("a", None), ("ab-0", None), ("a-", None), ("a-x", None)],
)
def test_ordinals_are_read_from_whole_names(name: str, number: int | None) -> None:
    assert pod_names.ordinal("a", name) == number


def test_the_lowest_free_ordinals_are_taken() -> None:
    assert pod_names.lowest_free({0, 2, 5}, 3) == [1, 3, 4]
    assert pod_names.numbered("a", 7, 3) == "a-007"


def status(phase: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "slurmd", "state": state, **more}]}


@pytest.mark.parametrize(
    ("told", "deleting", "slurmd"),
    [
        ({}, False, Slurmd.NEVER),
        (status("Pending", {"waiting": {"reason": "ContainerCreating"}}), False, Slurmd.NEVER),
        (status("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}), False, Slurmd.RUNNING),
        (status("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}), True, Slurmd.RUNNING),
        (status("Running", {"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=3), False, Slurmd.BETWEEN),
        (status("Running", {"terminated": {"exitCode": 1}}), False, Slurmd.BETWEEN),
        (status("Running", {"terminated": {"exitCode": 1}}), True, Slurmd.ENDED),
        (status("Failed", {"terminated": {"exitCode": 1}}), False, Slurmd.ENDED),
        # Called Failed by others than its kubelet, which is out of reach.
        (status("Failed", {"running": {}}), False, Slurmd.RUNNING),
        ({"phase": "Failed", "reason": "Evicted"}, False, Slurmd.ENDED),
    ],
)
def test_what_a_kubelet_has_said_of_slurmd(told: dict[str, Any], deleting: bool, slurmd: Slurmd) -> None:
    metadata = {"name": "a-0", "uid": "u"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})

    assert pod_facts.read({"metadata": metadata, "status": told}, "a").slurmd is slurmd


ENDED = NOW - timedelta(seconds=3)


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_the_last_end_of_a_container_is_read(state: str) -> None:
    ended = {"terminated": {"finishedAt": "2026-01-01T11:59:57Z", "exitCode": 137}}
    status = {
        "containerStatuses": [
            {"name": "sidecar", "lastState": {"terminated": {"finishedAt": "2026-01-01T11:00:00Z"}}},
            {"name": "slurmd", "restartCount": 1, "state": {"running": {}}, state: ended},
        ]
    }

    assert pod_facts.read({"metadata": {"name": "a-0", "uid": "u"}, "status": status}, "a").last_ended_at == ENDED
