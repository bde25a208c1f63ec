"""Pods that run and never register: when they are recreated, how many at a time, and which are not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption import repairs, rolling_update
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.actions import (
    Announce,
    AskForSteps,
    DeleteIdlePods,
    DeletePods,
    Drain,
    Repair,
    Undrain,
)
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning.plan import Plan
from slinky_operator.nodeset.planning.survey import survey
from slinky_operator.nodeset.report import status
from slinky_operator.nodeset.slurm_nodes import drains, running_steps
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import joined, plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = "ns/a"
PATIENCE = timedelta(seconds=300)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def nodeset(
    *, reachable_since: datetime | None = LONG_AGO, degraded: str = "", message: str = "", **spec: Any
) -> NodeSet:
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "set",
        "generation": 1,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    when = (reachable_since or NOW).isoformat()
    conditions = [
        {
            "type": "SlurmReachable",
            "status": "True" if reachable_since is not None else "False",
            "reason": "AsExpected",
            "lastTransitionTime": when,
        },
        {
            "type": "Degraded",
            "status": "True" if degraded else "False",
            "reason": degraded or "AsExpected",
            "message": message,
            "lastTransitionTime": when,
        },
    ]
    return NodeSet.parse(
        {
            "metadata": metadata,
            "spec": {"clusterName": "c", "replicas": 3, **spec},
            "status": {"conditions": conditions, "scalingMode": "StatefulSet"},
        }
    )


def silent(number: int = 0, age: float = 301, **values: Any) -> Pod:
    """A pod whose slurmd runs and has not registered."""
    given: dict[str, Any] = {
        "name": f"a-{number}",
        "node_name": f"a-{number}",
        "uid": f"u{number}",
        "resource_version": "7",
        "ordinal": number,
        "revision": revision.of(nodeset()),
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "slurmd_started_at": ago(age),
        "created_at": ago(age + 1),
        "protected": True,
        "guards": frozenset({"g"}),
    }
    return Pod(**(given | values))


def good(number: int, **values: Any) -> Pod:
    return silent(number, registered=True, ready_since=LONG_AGO, **values)


def record(number: int = 0, words: str = "IDLE", **values: Any) -> Node:
    given: dict[str, Any] = {"name": f"a-{number}", "extra": OWNER, "instance_id": f"u{number}", **values}
    return Node(state=NodeState.from_words([*words.split("+"), "DYNAMIC_NORM"]), **given)


def earlier(words: str = "IDLE", number: int = 0, **values: Any) -> Node:
    """A record that an earlier pod has left."""
    return record(number, words, **({"instance_id": "before", "slurmd_start_time": LONG_AGO} | values))


def job(number: int = 1, node: str = "a-0") -> Job:
    return Job(id=number, state=JobState("RUNNING"), nodes=(node,))


def seen(*pods: Pod, of: NodeSet | None = None, nodes: tuple[Node, ...] = (), jobs: Any = ()) -> Snapshot:
    of = of or nodeset()
    known = {node.name: node for node in nodes}
    for pod in pods:
        if pod.registered and pod.ordinal is not None:
            known.setdefault(pod.node_name, record(pod.ordinal))
    slurm = SlurmFacts(readable=True, nodes=known, jobs=None if jobs is None else drains.jobs_by_node(jobs))
    wanted = revision.of(of)
    return Snapshot(
        of,
        ClusterFacts("c", listed=True),
        slurm,
        Revision(wanted, current=wanted),
        pods,
        hosts={},
        guard="g",
        max_startup=99,
    )


def repaired(of: Snapshot) -> list[str]:
    return [pod.name for action in plan(of, NOW).actions if isinstance(action, Repair) for pod in action.pods]


def condition(of: Snapshot, kind: str, made: Plan | None = None) -> Condition:
    found = status.build(of, (made or plan(of, NOW)).decisions, NOW).conditions
    return next(one for one in found if one.type == kind)


# Which, and when


def test_a_slurmd_that_never_registers_has_its_time_and_is_then_made_anew() -> None:
    assert repaired(seen(silent(age=299), good(1), good(2))) == []
    assert repaired(seen(silent(age=300), good(1), good(2))) == ["a-0"]


def test_the_jobs_are_asked_for_first() -> None:
    unasked = seen(silent(), good(1), good(2), jobs=None)

    assert survey(unasked, NOW).needs_jobs
    assert plan(unasked, NOW).actions == ()
    assert not survey(seen(silent(age=299), good(1), good(2), jobs=None), NOW).needs_jobs


def test_the_next_look_is_when_its_time_is_up() -> None:
    assert plan(seen(silent(age=290), good(1), good(2)), NOW).wake_up == 10


@pytest.mark.parametrize(
    "values",
    [
        {"slurmd_started_at": ago(20), "last_ended_at": ago(21)},
        {"created_at": ago(20)},
        {"slurmd": Slurmd.BETWEEN, "slurmd_started_at": None},
        {"slurmd": Slurmd.NEVER, "slurmd_started_at": None, "stuck": "ImagePullBackOff"},
        {"registered": True},
        {"cordoned": True},
    ],
    ids=["restarted", "recreated, on a slow clock", "crashes", "has no image", "has registered", "is cordoned"],
)
def test_these_are_left_alone(values: dict[str, Any]) -> None:
    assert repaired(seen(replace(silent(), **values), good(1), good(2))) == []


@pytest.mark.parametrize(
    "of",
    [
        nodeset(reachable_since=None),
        nodeset(reachable_since=ago(299)),
        nodeset(updateStrategy={"rollingUpdate": {"maxUnavailable": 1}}, replicas=0),
    ],
    ids=["Slurm has been away until now", "Slurm was away until lately", "none are wanted"],
)
def test_so_are_all_of_these_nodesets(of: NodeSet) -> None:
    assert repaired(seen(silent(), good(1), good(2), of=of)) == []


def test_none_goes_where_none_could_be_made_in_its_place() -> None:
    of = seen(silent(), good(1), good(2))

    assert repaired(replace(of, revision=replace(of.revision, problems=("spec.template: no",)))) == []
    assert repaired(replace(of, cluster=ClusterFacts("c", listed=False))) == []
    assert repaired(replace(of, slurm=SlurmFacts(readable=False))) == []


def test_a_pod_whose_node_slurm_has_lost_stays() -> None:
    of = seen(replace(silent(), registered=True), good(1), good(2))
    without = replace(of, slurm=replace(of.slurm, nodes={name: of.slurm.nodes[name] for name in ("a-1", "a-2")}))

    assert not [one for one in plan(without, NOW).actions if isinstance(one, Repair | DeletePods | DeleteIdlePods)]
    told = condition(without, "Degraded")
    assert told.reason == "NodeUnknown"
    assert told.message == (
        "Slurm does not know the nodes of pods a-0, which had registered: a-0: recreated once slurmd has shown for 2 "
        "minutes that nothing runs there"
    )


def lost(*pods: Pod, **values: Any) -> Snapshot:
    """The node of the first pod, which had registered, is unknown to Slurm."""
    of = seen(replace(silent(), registered=True, address="10.0.0.1"), good(1), good(2), *pods, **values)
    known = {name: node for name, node in of.slurm.nodes.items() if name != "a-0"}
    return replace(of, slurm=replace(of.slurm, nodes=known))


def shown(of: Snapshot, steps: StepsSeen) -> Snapshot:
    """The same after answers of the first pod's slurmd."""
    return replace(of, steps={"u0": steps}, idle=running_steps.idle({"u0": steps}, NOW))


IDLE = StepsSeen(ago(10), LONG_AGO, idle_since=ago(121))


def test_a_slurmd_whose_node_is_lost_is_asked_and_its_pod_made_anew_once_it_has_shown_to_be_idle() -> None:
    (asked,) = [one for one in plan(lost(), NOW).actions if isinstance(one, AskForSteps)]
    assert [one.pod.name for one in asked.questions] == ["a-0"]
    idle = shown(lost(), IDLE)
    assert repaired(idle) == ["a-0"]
    assert not [one for one in plan(idle, NOW).actions if isinstance(one, AskForSteps | Announce)]
    told = condition(idle, "Degraded")
    assert told.reason == "NodeUnknown"
    assert "slurmd shows that nothing runs on a-0: recreated as maxUnavailable allows" in told.message


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (replace(IDLE, idle_since=ago(119)), "recreated once slurmd has shown"),
        (replace(IDLE, idle_since=None, jobs=frozenset({7})), "Slurm does not know: a-0 (jobs 7)"),
        (replace(IDLE, asked_at=ago(181)), "recreated once slurmd has shown"),
        (running_steps.unanswered("it is away", ago(1)), "(a-0: it is away), so the pods are kept. If none runs: "),
    ],
    ids=["not for long", "a job runs", "an old answer", "no answer"],
)
def test_a_lost_node_that_is_not_proven_idle_keeps_its_pod(steps: StepsSeen, words: str) -> None:
    of = shown(lost(), steps)
    assert not [one for one in plan(of, NOW).actions if isinstance(one, Repair | DeletePods | DeleteIdlePods)]
    assert words in condition(of, "Degraded").message


def test_lost_nodes_are_made_anew_a_few_at_a_time_and_not_while_a_job_names_them() -> None:
    pods = [replace(silent(number), registered=True) for number in range(3)]
    of = seen(*pods)
    of = replace(of, slurm=replace(of.slurm, nodes={}), idle=frozenset({"u0", "u1", "u2"}))
    assert len(repaired(of)) == 1
    assert repaired(replace(shown(lost(jobs=(job(),)), IDLE))) == []


def test_an_idle_lost_node_does_not_keep_its_pod() -> None:
    member = joined(replace(silent(), registered=True))
    assert pod_state.why_kept(member, NOW) == "Slurm does not know node a-0, which had registered"
    assert pod_state.why_kept(replace(member, is_idle=True), NOW) is None
    assert pod_state.why_kept(replace(member, is_idle=True, jobs=(job(),)), NOW) is not None


# Whose the record is


@pytest.mark.parametrize(
    ("node", "meant"),
    [
        (None, True),
        (earlier(), True),
        (earlier("DOWN"), True),
        (earlier("IDLE+DRAIN", reason="slurm-operator: repair (ns/a)"), True),
        (earlier("IDLE+DRAIN", reason="an administrator's"), False),
        (earlier(extra="ns/a-b"), False),
        (earlier(extra=""), False),
        (record(), False),
        (record(0, "IDLE+DRAIN", reason="slurm-operator: repair (ns/a)"), False),
        # Slurm 26.05 keeps the first uid: that it is this one's slurmd shows by when it started.
        (earlier(slurmd_start_time=ago(301)), False),
    ],
)
def test_a_record_tells_whether_a_pod_may_be_meant(node: Node | None, meant: bool) -> None:
    assert repairs.is_repair_candidate(joined(silent(), node)) is meant


def test_a_predecessors_node_is_drained_first() -> None:
    actions = plan(seen(silent(), good(1), good(2), nodes=(earlier(),)), NOW).actions

    assert not [one for one in actions if isinstance(one, Repair)]
    (action,) = [one for one in actions if isinstance(one, Drain)]
    assert action == Drain(("a-0",), "slurm-operator: repair (ns/a)", frozenset({Cause.REPAIR}), ("a-0",))

    drained = earlier("IDLE+DRAIN", reason="slurm-operator: repair (ns/a)")
    assert repaired(seen(silent(), good(1), good(2), nodes=(drained,))) == ["a-0"]
    busy = earlier("ALLOCATED+DRAIN", reason="slurm-operator: repair (ns/a)")
    assert repaired(seen(silent(), good(1), good(2), nodes=(busy,))) == []


def test_one_that_registers_under_our_drain_is_given_back() -> None:
    drained = record(0, "IDLE+DRAIN", reason="slurm-operator: repair (ns/a)")

    actions = plan(seen(silent(), good(1), good(2), nodes=(drained,)), NOW).actions

    assert Undrain(("a-0",)) in actions
    assert not [one for one in actions if isinstance(one, Repair)]


def test_a_job_that_names_the_node_keeps_the_pod() -> None:
    of = seen(silent(), good(1), good(2), jobs=[job(7)])

    assert repaired(of) == []
    assert "it stays, since its node is named by jobs 7" in condition(of, "Degraded").message


# The last look


def recheck(pod: Pod, node: Node | None, *jobs: Job) -> tuple[list[Pod], list[str]]:
    return repairs.recheck([joined(pod, node, *jobs)], NOW)


def test_just_before_slurm_has_the_last_word() -> None:
    pod = silent()

    assert recheck(pod, None) == ([pod], [])
    assert recheck(pod, None, job()) == ([], ["jobs name node a-0, which Slurm does not show"])
    assert recheck(pod, earlier("IDLE+DRAIN", reason="slurm-operator: repair (ns/a)")) == ([pod], [])
    assert recheck(pod, earlier())[0] == []
    # It has registered, was drained by somebody, or the node is somebody else's: no longer ours to repair.
    for node in (record(), record(0, "IDLE+DRAIN", reason="x"), earlier("IDLE+DRAIN", reason="x"), earlier(extra="")):
        assert recheck(pod, node) == ([], [])
    assert recheck(replace(pod, slurmd_started_at=ago(29)), None)[0] == []


# How many at a time


def test_no_more_go_than_an_update_may_take_and_the_oldest_first() -> None:
    pods = [silent(0, 400), silent(1, 500), silent(2, 450)]

    assert repaired(seen(*pods)) == ["a-1"]
    two = nodeset(updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    assert sorted(repaired(seen(*pods, of=two))) == ["a-1", "a-2"]


@pytest.mark.parametrize(
    "other",
    [
        silent(1, 10),
        silent(1, 10, slurmd=Slurmd.NEVER, slurmd_started_at=None),
        silent(1, deleting=True, gone_by=NOW + timedelta(seconds=20)),
    ],
    ids=["runs since just now", "is on its way up", "is on its way out"],
)
def test_one_that_is_under_way_takes_its_place(other: Pod) -> None:
    assert repaired(seen(silent(), other, good(2))) == []


def test_so_does_one_that_is_yet_to_be_made() -> None:
    assert repaired(seen(silent(), good(2))) == []


def test_one_that_keeps_others_from_being_made_goes_all_the_same() -> None:
    of = nodeset(replicas=9, maxConcurrentStartup=1)
    known = seen(silent(), good(1), of=of)

    assert repaired(known) == ["a-0"]
    assert "7 wait until others have registered (maxConcurrentStartup)" in condition(known, "Progressing").message


@pytest.mark.parametrize(
    "other",
    [
        silent(1, slurmd=Slurmd.NEVER, slurmd_started_at=None),
        silent(1, 10, last_ended_at=ago(11), created_at=LONG_AGO),
        silent(1, deleting=True, gone_by=ago(1)),
    ],
    ids=["has never started", "crashes now and again", "is stuck on its way out"],
)
def test_one_that_will_not_come_up_does_not_hold_the_others_up(other: Pod) -> None:
    # What is to be deleted is missing all the same, and will be made when it has gone.
    of = nodeset(replicas=2) if other.deleting else None
    assert repaired(seen(silent(), other, good(2), of=of)) == ["a-0"]


def test_updates_and_repairs_share_one_budget() -> None:
    updating = record(1, "ALLOCATED+DRAIN", reason="slurm-operator: update (ns/a)")
    old = good(1, revision="old")

    assert repaired(seen(silent(), old, good(2), nodes=(updating,))) == []

    of = seen(silent(), old, good(2))
    causes = plan(of, NOW).decisions.causes
    assert causes == {"a-0": {Cause.REPAIR}}


def test_one_that_is_outdated_too_goes_once() -> None:
    made = plan(seen(silent(revision="old"), good(1), good(2)), NOW)

    assert made.decisions.causes == {"a-0": {Cause.REPAIR}}


def test_a_pod_that_slurm_knows_has_run_whatever_its_kubelet_has_said_so_far() -> None:
    pod = silent(slurmd=Slurmd.NEVER, slurmd_started_at=None, created_at=ago(5))
    kept = earlier(slurmd_start_time=ago(2))

    def known(node: Node | None = None) -> frozenset[str]:
        return pod_state.known([joined(pod, node)], OWNER)

    assert known(record()) == known(kept) == {"a-0"}
    assert known() == known(earlier()) == known(earlier(extra="ns/a-b")) == frozenset()
    assert rolling_update.has_never_run(pod, known())
    assert not rolling_update.has_never_run(pod, known(record()))


def test_an_update_takes_no_more_than_its_budget_of_pods_that_slurm_knows_before_their_kubelets_have_spoken() -> None:
    young = {"slurmd": Slurmd.NEVER, "slurmd_started_at": None, "revision": "old"}
    pods = [silent(number, 5, **young) for number in range(3)]

    made = plan(seen(*pods, nodes=tuple(record(number) for number in range(3))), NOW)

    assert len(made.decisions.causes) == 1


# What is reported


def announced(of: Snapshot) -> list[tuple[str, str | None]]:
    times = [one for action in plan(of, NOW).actions if isinstance(action, Announce) for one in action.times]
    return [(pod.name, when) for pod, when in times]


def test_the_time_is_written_on_the_pod_once_its_slurmd_is_late() -> None:
    assert announced(seen(silent(age=29), good(1), good(2))) == []
    assert announced(seen(silent(age=100), good(1), good(2))) == [("a-0", "2026-01-01T12:03:20Z")]
    assert announced(seen(silent(age=100, register_by=ago(-200)), good(1), good(2))) == []
    assert announced(seen(good(0, register_by=ago(-200)), good(1), good(2))) == [("a-0", None)]


def test_what_was_told_stays_when_the_operator_is_started_again() -> None:
    # An operator that has just started has just reached Slurm.
    of = nodeset(reachable_since=ago(1))
    told = seen(silent(age=100, register_by=ago(-200)), good(1), good(2), of=of)

    assert plan(told, NOW).decisions.waits["a-0"].until == ago(-200)
    assert plan(seen(silent(age=100), good(1), good(2), of=of), NOW).decisions.waits["a-0"].until == ago(-299)


def test_a_slurmd_has_its_whole_time_whatever_is_written_on_its_pod() -> None:
    started: dict[str, Any] = {"slurmd_started_at": ago(10), "created_at": ago(1000)}
    early = seen(silent(register_by=ago(600), **started), good(1), good(2))
    late = seen(silent(register_by=ago(-9000), **started), good(1), good(2))
    naive = seen(silent(register_by=ago(600).replace(tzinfo=None), **started), good(1), good(2))

    for one in (early, late, naive):
        assert plan(one, NOW).decisions.waits["a-0"].until == ago(-290)


@pytest.mark.parametrize(
    ("reason", "goes"),
    [(Reason.SLURM_UNREACHABLE, True), (Reason.CONTROLLER_DOWN, True), (Reason.CONNECTING, False)],
)
def test_the_time_is_taken_off_while_slurm_is_away(reason: Reason, goes: bool) -> None:
    of = seen(silent(age=100, register_by=ago(-200)), silent(1), good(2))
    blind = replace(of, slurm=SlurmFacts(readable=False, reason=reason, why="no answer"))

    assert announced(blind) == ([("a-0", None)] if goes else [])


def test_it_is_told_since_when_and_until_when() -> None:
    progressing = condition(seen(silent(age=100), good(1), good(2)), "Progressing")

    assert progressing.reason == "NotRegistered"
    assert progressing.message == (
        "a-0 has run since 2026-01-01T11:58:20Z and has not registered; "
        "it is recreated at 2026-01-01T12:03:20Z unless it does"
    )


def test_what_is_over_time_is_told_with_what_becomes_of_it() -> None:
    of = seen(silent(0, 400), silent(1, 500), good(2))

    degraded = condition(of, "Degraded")

    assert (degraded.status, degraded.reason) == ("True", "NotRegistered")
    assert degraded.message == (
        "a-1 has run since 2026-01-01T11:51:40Z and has not registered; it is recreated; "
        "a-0 has run since 2026-01-01T11:53:20Z and has not registered; it is recreated when maxUnavailable leaves room"
        f". Probably {repairs.LIKELY}"
    )


def test_it_stays_told_until_those_in_their_place_have_registered() -> None:
    before = nodeset(degraded="NotRegistered")

    assert condition(seen(silent(age=5), good(1), good(2), of=before), "Degraded").reason == "NotRegistered"
    starting = silent(age=5, slurmd=Slurmd.NEVER, slurmd_started_at=None)
    assert "have yet to register" in condition(seen(starting, good(1), good(2), of=before), "Degraded").message
    assert condition(seen(good(0), good(1), good(2), of=before), "Degraded").status == "False"
    assert condition(seen(silent(age=5), good(1), good(2)), "Degraded").status == "False"


def test_it_stays_told_beside_another_trouble_that_is_told_first() -> None:
    down = record(1, "DOWN")
    both = condition(seen(silent(), good(1), good(2), nodes=(down,)), "Degraded")
    assert both.reason == "NodeDown"
    assert repairs.LIKELY in both.message

    before = nodeset(degraded=both.reason, message=both.message)
    crowded = seen(silent(age=5), good(1), good(2), of=before, nodes=(down,))
    assert repairs.LIKELY in condition(crowded, "Degraded").message
    alone = nodeset(degraded="NodeDown", message="1 node is down in Slurm: a-1 (DOWN)")
    assert repairs.LIKELY not in condition(replace(crowded, nodeset=alone), "Degraded").message


def test_of_many_jobs_that_name_its_node_five_are_told() -> None:
    of = seen(silent(), good(1), good(2), jobs=tuple(job(number) for number in range(1, 301)))

    assert "its node is named by jobs 1, 2, 3, 4, 5 and 295 more" in condition(of, "Degraded").message
