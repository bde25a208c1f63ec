"""Which states of nodes are conditions of pods, and how many are written at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.nodeset.health import node_states
from slinky_operator.nodeset.health.node_states import REASON, UNPROVEN, StateChanges
from slinky_operator.nodeset.memory import STATE_WRITES_A_SECOND, STATE_WRITES_AT_ONCE, Memory
from slinky_operator.nodeset.model.actions import PodStates, ShowStates
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from tests.unit.nodeset.builders import NOW, a_pod, job, node, nodeset, plan

LONG_AGO = NOW - timedelta(hours=1)


def seen(words: str, *, mode: str | None = "Problems", shown: dict[str, str] | None = None, **given: Any) -> Snapshot:
    """A pod whose node has these states; and the conditions that it has already, with their messages."""
    of = nodeset(health={"nodeConditions": [{"type": "Bad"}], **({"podConditions": mode} if mode else {})})
    states = {f"SlurmNodeState{kind}": DrainCondition("True", REASON, text) for kind, text in (shown or {}).items()}
    reason = {"reason": "disk\n(sda)", "reason_changed_at": LONG_AGO} if "DRAIN" in words or "DOWN" in words else {}
    record = node(f"{words}+DYNAMIC_NORM", **reason)
    held: dict[str, Any] = {"jobs": {}, **given}
    slurm = SlurmFacts(readable=True, nodes={record.name: record}, **held)
    pods = (a_pod(node_states=states),)
    return Snapshot(of, ClusterFacts("c"), slurm, Revision(revision.of(of)), pods=pods, hosts={}, state_writes=100)


def written(snapshot: Snapshot, **causes: Any) -> dict[str, str] | None:
    """The conditions that are True after what is written, with their messages; None if nothing is."""
    found = node_states.changes(snapshot, snapshot.members, causes, NOW).pods
    if not found:
        return None
    (one,) = found
    return {
        kind.removeprefix("SlurmNodeState"): told.message for kind, told in one.states.items() if told.status == "True"
    }


@pytest.mark.parametrize(
    ("words", "problems", "every"),
    [
        ("IDLE", None, {"Idle": ""}),
        ("MIXED", None, {"Mixed": ""}),
        ("ALLOCATED+COMPLETING", None, {"Allocated": "", "Completing": ""}),
        ("IDLE+DRAIN", {"Idle": "", "Drain": "disk (sda)"}, {"Idle": "", "Drain": "disk (sda)"}),
        ("MIXED+DRAIN", {"Mixed": "", "Drain": "disk (sda)"}, {"Mixed": "", "Drain": "disk (sda)"}),
        ("DOWN+NOT_RESPONDING", *({"Down": "disk (sda)", "NotResponding": "disk (sda)"},) * 2),
        (
            "IDLE+INVALID_REG+MAINTENANCE",
            {"InvalidReg": "", "Maintenance": ""},
            {"Idle": "", "InvalidReg": "", "Maintenance": ""},
        ),
        ("IDLE+CLOUD+TELEPORTING", None, {"Idle": ""}),
    ],
)
def test_states_and_flags_are_conditions(words: str, problems: dict[str, str] | None, every: dict[str, str]) -> None:
    assert written(seen(words)) == problems
    assert written(seen(words, mode="All")) == every


def test_what_is_about_to_be_drained_shows_whether_it_is_busy() -> None:
    assert written(seen("ALLOCATED"), **{"a-0": {"update"}}) == {"Allocated": ""}
    snapshot = seen("IDLE")
    assert written(replace(snapshot, pods=(replace(snapshot.pods[0], cordoned=True),))) == {"Idle": ""}


@pytest.mark.parametrize("given", [{"jobs": None}, {"jobs": {"a-0": (job("SUSPENDED"),)}}])
def test_a_drained_node_counts_as_busy_until_it_is_proven_empty(given: dict[str, Any]) -> None:
    snapshot = seen("IDLE+DRAIN", **given)

    assert written(snapshot) == {"Idle": "", "Drain": "disk (sda)", "Allocated": UNPROVEN}
    assert node_states.is_open(snapshot.members[0])
    assert node_states.changes(snapshot, snapshot.members, {}, NOW).is_late


def test_answers_older_than_the_drain_prove_nothing() -> None:
    snapshot = seen("IDLE+DRAIN")
    fresh = replace(snapshot.slurm.nodes["a-0"], reason_changed_at=NOW - timedelta(seconds=20))

    found = written(replace(snapshot, slurm=replace(snapshot.slurm, nodes={"a-0": fresh})))

    assert found is not None
    assert found["Allocated"] == UNPROVEN


def test_what_was_proven_stays_so_without_another_question() -> None:
    snapshot = seen("IDLE+DRAIN", jobs=None, shown={"Idle": "", "Drain": "disk (sda)"})

    assert written(snapshot) is None
    assert not node_states.is_open(snapshot.members[0])


def test_a_state_that_is_over_becomes_false_and_stays() -> None:
    snapshot = seen("IDLE", shown={"Drain": "disk (sda)", "Idle": ""})
    (one,) = node_states.changes(snapshot, snapshot.members, {}, NOW).pods

    assert set(one.states.values()) == {DrainCondition("False", REASON, "")}
    after = replace(snapshot, pods=(replace(one.pod, node_states=one.states),))
    assert node_states.changes(after, after.members, {}, NOW) == StateChanges()


def test_switched_off_ours_are_false_and_those_of_others_are_left_alone() -> None:
    snapshot = seen("IDLE+DRAIN", mode=None, shown={"Drain": "disk (sda)"})
    theirs = {"SlurmNodeStateDrain": DrainCondition("True", "Theirs", "x")}

    assert written(snapshot) == {}
    assert written(replace(snapshot, pods=(replace(snapshot.pods[0], node_states=theirs),))) is None


def test_without_an_answer_of_slurm_or_a_record_of_its_own_a_pod_keeps_what_it_shows() -> None:
    snapshot = seen("IDLE+DRAIN", shown={"Down": ""})
    earlier = replace(snapshot.slurm.nodes["a-0"], instance_id="earlier")

    assert written(replace(snapshot, slurm=SlurmFacts(readable=False))) is None
    assert written(replace(snapshot, slurm=replace(snapshot.slurm, nodes={"a-0": earlier}))) is None
    assert written(replace(snapshot, slurm=replace(snapshot.slurm, nodes={}))) is None


def many(count: int, words: str, **given: Any) -> Snapshot:
    snapshot = seen("IDLE", mode="All")
    pods = tuple(a_pod(name=f"a-{number:03}", uid=f"u{number}", **given) for number in range(count))
    records = {
        pod.name: node(f"{words}+DYNAMIC_NORM", name=pod.name, instance_id=pod.uid, reason_changed_at=LONG_AGO)
        for pod in pods
    }
    return replace(snapshot, pods=pods, slurm=replace(snapshot.slurm, nodes=records), state_writes=20)


def chosen(snapshot: Snapshot) -> tuple[PodStates, ...]:
    found = node_states.changes(snapshot, snapshot.members, {}, NOW)
    assert found.is_late == (len(found.pods) < len(snapshot.pods))
    return found.pods


def test_so_many_are_written_in_one_pass_and_those_that_cannot_wait() -> None:
    assert len(chosen(many(300, "IDLE"))) == 20
    assert chosen(replace(many(300, "IDLE"), state_writes=0)) == ()
    empty = {"SlurmNodeStateDrain": DrainCondition("True", REASON, "")}
    assert len(chosen(many(300, "IDLE", node_states=empty))) == 300


def test_problems_are_written_first() -> None:
    snapshot = many(300, "IDLE")
    down = replace(snapshot.slurm.nodes["a-299"], state=node("DOWN+DYNAMIC_NORM").state)
    nodes = {**snapshot.slurm.nodes, "a-299": down}

    assert chosen(replace(snapshot, slurm=replace(snapshot.slurm, nodes=nodes)))[0].pod.name == "a-299"


def test_a_nodeset_has_so_many_writes_a_second() -> None:
    memory, done = Memory(), 0
    for tenth in range(600):
        allowed = memory.state_writes(tenth / 10)
        memory.note_state_writes(allowed)
        done += allowed

    assert done <= STATE_WRITES_AT_ONCE + 60 * STATE_WRITES_A_SECOND
    assert done >= 50 * STATE_WRITES_A_SECOND


def test_one_pass_looks_at_each_pod_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 5,000 pods a second look is a quarter of a second."""
    looked: list[str] = []
    real = node_states.wanted

    def wanted(member: Member, **given: Any) -> node_states.States | None:
        looked.append(member.name)
        return real(member, **given)

    monkeypatch.setattr(node_states, "wanted", wanted)
    snapshot = many(10, "IDLE")
    metadata = snapshot.nodeset.metadata.model_copy(update={"finalizers": (labels.FINALIZER_NODESET_DRAIN,)})
    nodeset_ = snapshot.nodeset.model_copy(update={"metadata": metadata})

    planned = plan(replace(snapshot, nodeset=nodeset_), NOW)

    assert [len(one.pods) for one in planned.actions if isinstance(one, ShowStates)] == [10]
    assert sorted(looked) == [pod.name for pod in snapshot.pods]
