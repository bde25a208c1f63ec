"""Troubles of a NodeSet are reported with names, quoting Slurm and Kubernetes, and in one Event each."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.memory import SETTLING, Memory
from slinky_operator.nodeset.model.pod_state import Draining, Ready, Starting, State
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.hindrance import Hindrance
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning import requeue
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import checks, forgotten, ssh, status, topology, trouble_events, troubles, volumes
from slinky_operator.nodeset.report.status import Report
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, 11, 30, tzinfo=UTC)
SCHEDULER = "not scheduled: 0/2 nodes are available: 2 Insufficient cpu. preemption: none"
PULL = "container slurmd cannot get image nosuch:1 (ImagePullBackOff): not found"

SILENT: Final = {
    Reason.CLUSTER_NOT_FOUND: "the Cluster may be applied after its NodeSets",
    Reason.CONFIG_REFUSED: "the Cluster controller reports it on the NodeSet",
    Reason.POD_REFUSED: "what refuses a pod is reported when it does",
    Reason.TRAITS_REFUSED: "the write that Slurm refuses has an Event",
}
"""Reasons of troubles without an Event, and why; those of a Slurm that does not answer are the Cluster's."""

ELSEWHERE: Final = {
    Reason.CHECKS_ON_TRIAL,
    Reason.DELETING,
    Reason.VOLUME_SILENT,
    Reason.CONNECTING,
    Reason.AS_EXPECTED,
}
"""Reasons of conditions that are no trouble."""


def nodeset(replicas: int = 3, conditions: tuple[Condition, ...] = (), **spec: Any) -> NodeSet:
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "generation": 2,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    body = {"clusterName": "c", "replicas": replicas, **spec}
    stored = {"scalingMode": "StatefulSet", "conditions": [one.to_dict() for one in conditions]}
    return NodeSet.parse({"metadata": metadata, "spec": body, "status": stored})


def a_pod(number: int, hindrance: Hindrance | None = None, **values: Any) -> Pod:
    name = f"a-{number}"
    given: dict[str, Any] = {
        "ordinal": number,
        "revision": "new",
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
        "ready_since": SINCE,
        "hindrance": hindrance,
    }
    if hindrance is not None:
        given |= {"slurmd": Slurmd.NEVER, "registered": False, "ready_since": None}
    return Pod(name, name, f"u{number}", **(given | values))


def a_node(number: int, words: str = "IDLE", **values: Any) -> Node:
    state = NodeState.from_words([*words.split("+"), "DYNAMIC_NORM"])
    given: dict[str, Any] = {"extra": "ns/a", "instance_id": f"u{number}", **values}
    return Node(name=f"a-{number}", state=state, **given)


def down(number: int) -> Node:
    return a_node(
        number, "DOWN+NOT_RESPONDING", reason="Not responding", reason_set_by="slurm", reason_changed_at=SINCE
    )


def foreign(number: int, words: str = "IDLE+DRAIN") -> Node:
    return a_node(number, words, reason="disk is full", reason_set_by="alice", reason_changed_at=SINCE)


def seen(*pods: Pod, nodes: tuple[Node, ...] = (), of: NodeSet | None = None, **cluster: Any) -> Snapshot:
    return Snapshot(
        of or nodeset(len(pods)),
        replace(ClusterFacts(uid="c", listed=True), **cluster),
        SlurmFacts(readable=True, nodes={node.name: node for node in nodes}),
        Revision("new", current="new"),
        pods,
        hosts={},
    )


def report(snapshot: Snapshot, states: dict[str, State] | None = None, **found: Any) -> Report:
    usual: dict[str, State] = {pod.name: Ready() if pod.registered else Starting() for pod in snapshot.pods}
    desired = snapshot.nodeset.spec.replicas
    return status.report(snapshot, Decisions(Layout(desired), states=usual | (states or {}), **found), NOW)


def condition(told: Report, kind: str) -> Condition:
    return next(one for one in told.status.conditions if one.type == kind)


def test_nodes_that_are_down_are_named_with_slurms_reason_and_since_when() -> None:
    told = report(seen(a_pod(0), a_pod(1), a_pod(2), nodes=(down(0), down(1), a_node(2))))

    degraded = condition(told, "Degraded")
    one = "a-0 (DOWN+NOT_RESPONDING: Not responding, set by slurm since 2026-01-01T11:30:00Z)"
    assert (degraded.status, degraded.reason) == ("True", "NodeDown")
    assert degraded.message == f"2 nodes are down in Slurm: {one}; {one.replace('a-0', 'a-1')}"
    assert one in condition(told, "Ready").message
    assert told.status.summary == "1 of 3 ready; 2 nodes are down: a-0, a-1 (Not responding)"
    assert (told.status.nodes.down, told.status.nodes.idle) == (2, 1)


def drained_by_us(words: str, *causes: Cause) -> Node:
    return a_node(0, words, reason=drains.reason(causes, "ns/a"), reason_set_by="slurm", reason_changed_at=SINCE)


def test_a_node_that_the_operator_has_marked_down_is_no_trouble() -> None:
    told = report(seen(a_pod(0), nodes=(drained_by_us("DOWN+DRAIN", Cause.SCALE_IN),)))

    assert condition(told, "Degraded").status == "False"
    assert condition(told, "NodesOutOfService").status == "False"
    assert "down" not in told.status.summary


@pytest.mark.parametrize(
    "node",
    [
        drained_by_us("DOWN+DRAIN+NOT_RESPONDING", Cause.SCALE_IN),
        drained_by_us("DOWN+DRAIN", Cause.CORDON),
        foreign(0, "DOWN+DRAIN"),
    ],
    ids=["is silent", "is to stay", "was marked by somebody else"],
)
def test_any_other_node_that_is_down_and_drained_is_a_trouble(node: Node) -> None:
    assert condition(report(seen(a_pod(0), nodes=(node,))), "Degraded").reason == "NodeDown"


def test_many_nodes_are_told_as_five_and_a_count() -> None:
    told = report(seen(*(a_pod(n) for n in range(9)), nodes=tuple(down(n) for n in range(9))))

    assert "a-4 " in condition(told, "Degraded").message
    assert "a-5 " not in condition(told, "Degraded").message
    assert condition(told, "Degraded").message.endswith("; and 4 more")


def test_a_drain_of_somebody_else_is_shown_with_who_set_it_and_degrades_nothing() -> None:
    told = report(
        seen(a_pod(0), a_pod(1), nodes=(foreign(0), a_node(1))),
        {"a-0": Ready("disk is full")},
    )

    shown = condition(told, "NodesOutOfService")
    assert (shown.status, shown.reason) == ("True", "ForeignDrain")
    assert shown.message == (
        "1 node gets no job: a-0 (IDLE+DRAIN: disk is full, set by alice since 2026-01-01T11:30:00Z)"
    )
    assert (condition(told, "Degraded").status, condition(told, "Ready").status) == ("False", "True")
    assert told.status.summary == "2 of 2 ready; 1 drained by alice: a-0 (disk is full)"
    assert (told.status.nodes.drained, told.status.nodes.idle) == (1, 1)


@pytest.mark.parametrize("reason", ["Prolog error", "Epilog error", "epilog failed"])
def test_a_drain_that_slurm_has_set_for_a_failed_program_says_the_way_back(reason: str) -> None:
    node = a_node(0, "IDLE+DRAIN", reason=reason, reason_set_by="slurm")
    shown = condition(report(seen(a_pod(0), nodes=(node,)), {"a-0": Ready(reason)}), "NodesOutOfService")
    key = reason.split(maxsplit=1)[0].capitalize()
    assert f"correct {key}= or its script, then scontrol update NodeName=a-0 State=RESUME" in shown.message


def test_a_drained_node_is_counted_once_and_a_drain_with_jobs_is_draining() -> None:
    nodes = (foreign(0), foreign(1, "MIXED+DRAIN"), a_node(2, "ALLOCATED"))
    told = report(seen(a_pod(0), a_pod(1), a_pod(2), nodes=nodes))

    counts = told.status.nodes
    assert (counts.drained, counts.draining, counts.allocated, counts.idle) == (1, 1, 1, 0)
    assert sum(counts.to_dict().values()) == 3


def test_a_silent_node_is_told_before_slurm_gives_it_up() -> None:
    told = report(seen(a_pod(0), nodes=(a_node(0, "IDLE+NOT_RESPONDING"),)))

    assert condition(told, "NodesOutOfService").reason == "NodeNotResponding"
    assert condition(told, "Ready").message == "0 of 1 nodes are ready: a-0 is IDLE+DYNAMIC_NORM+NOT_RESPONDING"
    assert told.status.summary == "0 of 1 ready; 1 not responding: a-0"


@pytest.mark.parametrize(
    ("reason", "text", "summary"),
    [
        (
            Reason.UNSCHEDULABLE,
            SCHEDULER,
            "0 of 2 ready; 2 pods in few words",
        ),
        (Reason.IMAGE_PULL_BACK_OFF, PULL, "0 of 2 ready; 2 pods in few words"),
    ],
)
def test_pods_that_do_not_run_degrade_with_names_and_the_words_of_kubernetes(
    reason: Reason, text: str, summary: str
) -> None:
    held = Hindrance(reason, text, SINCE, "in few words")
    told = report(seen(a_pod(0, held), a_pod(1, held)))

    degraded = condition(told, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", reason)
    assert degraded.message == f"pods a-0, a-1 (since 2026-01-01T11:30:00Z): {text}"
    assert f"a-0: {text}" in condition(told, "Progressing").message
    assert told.status.summary == summary


def test_a_pod_that_has_just_been_made_is_not_in_trouble_for_having_no_node_yet() -> None:
    told = report(seen(a_pod(0, Hindrance(Reason.UNSCHEDULABLE, SCHEDULER, NOW))))

    assert condition(told, "Degraded").status == "False"
    assert SCHEDULER in condition(told, "Progressing").message


def crashing(number: int, state: dict[str, Any], **of: Any) -> Pod:
    """A pod whose slurmd has crashed twice, and what the kubelet shows of it now."""
    ended = {"exitCode": 1, "startedAt": "2026-01-01T11:58:00Z", "finishedAt": "2026-01-01T11:58:05Z"}
    shown = {"name": "slurmd", "state": state, "restartCount": 2, "lastState": {"terminated": ended}}
    obj = {"metadata": {"name": f"a-{number}", "uid": f"u{number}"}, "status": {"containerStatuses": [shown]}}
    return replace(pod_facts.read(obj, "a"), revision="new", host="host", **of)


def test_pods_that_crash_at_different_times_are_reported_once_and_in_the_same_words() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}
    runs = {"running": {"startedAt": "2026-01-01T11:59:55Z"}}
    memory, stored = Memory(), NodeSetStatus()
    told = [report(seen(crashing(0, one), crashing(1, other))) for one in (waits, runs) for other in (waits, runs)]

    events = [trouble.reason for one in told for trouble in trouble_events.due(memory, stored, one.troubles)]
    assert events == [Reason.CRASH_LOOP_BACK_OFF]
    assert len({one.status.summary for one in told}) == 1
    for kind in ("Degraded", "Progressing"):
        assert len({condition(one, kind).message for one in told}) == 1


def test_a_pod_that_has_stopped_crashing_is_no_trouble_any_more() -> None:
    long_since = crashing(0, {"running": {"startedAt": "2026-01-01T11:50:00Z"}})
    lately = crashing(0, {"running": {"startedAt": "2026-01-01T11:50:01Z"}})

    assert condition(report(seen(long_since)), "Degraded").status == "False"
    assert "exits repeatedly" not in condition(report(seen(long_since)), "Progressing").message
    assert condition(report(seen(lately)), "Degraded").reason == "CrashLoopBackOff"
    usual: dict[str, State] = {"a-0": Ready()}
    assert requeue.wake_up(seen(lately), Decisions(Layout(1), states=usual), (), NOW) == 1
    assert requeue.wake_up(seen(long_since), Decisions(Layout(1), states=usual), (), NOW) is None


def test_several_troubles_are_told_side_by_side() -> None:
    pods = a_pod(0, Hindrance(Reason.IMAGE_PULL_BACK_OFF, PULL)), a_pod(1)

    degraded = condition(report(seen(*pods, nodes=(down(1),))), "Degraded")

    assert degraded.reason == "ImagePullBackOff"
    assert PULL in degraded.message
    assert "a-1 (DOWN+NOT_RESPONDING" in degraded.message


def test_a_bad_image_is_told_while_slurm_is_away() -> None:
    snapshot = seen(a_pod(0, Hindrance(Reason.IMAGE_PULL_BACK_OFF, PULL)))
    blind = replace(snapshot, slurm=SlurmFacts(readable=False, reason=Reason.SLURM_UNREACHABLE, why="no route"))

    degraded = condition(report(blind), "Degraded")

    assert degraded.reason == "SlurmUnreachable"
    assert degraded.message == f"no route; pod a-0: {PULL}"
    told = report(blind)
    assert condition(told, "Ready").message.startswith("not known how many of 1 nodes are ready: no route")
    assert told.status.summary.startswith("1 pod; Slurm is unreachable: no route; 1 pod container slurmd")


def test_a_spec_that_no_pod_can_be_made_from_is_nothing_that_goes_on() -> None:
    snapshot = seen(of=nodeset(2))
    bad = replace(snapshot, revision=replace(snapshot.revision, problems=("spec.features[0]: no",)))

    told = report(bad)

    assert (condition(told, "Degraded").status, condition(told, "Progressing").status) == ("True", "False")
    assert condition(told, "Progressing").reason == "AsExpected"
    assert told.status.summary == "0 of 2 ready; invalid spec.features[0]: no"


def test_nodes_are_not_told_in_service_while_nobody_knows() -> None:
    blind = SlurmFacts(readable=False, reason=Reason.SLURM_UNREACHABLE, why="no route")

    shown = condition(report(replace(seen(a_pod(0)), slurm=blind)), "NodesOutOfService")

    assert (shown.status, shown.reason, shown.message) == ("Unknown", "SlurmUnreachable", "no route")


def test_a_drain_that_has_taken_too_long_degrades_with_node_and_deadline() -> None:
    of = nodeset(1, drain={"timeout": "10m"})
    late = Overdue(a_pod(0), SINCE)
    told = report(seen(a_pod(0), nodes=(foreign(0),), of=of), overdue={"a-0": late})

    degraded = condition(told, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "DrainTimedOut")
    assert degraded.message == (
        "the drain of a-0 takes longer than spec.drain.timeout, which ended 2026-01-01T11:40:00Z (onTimeout Wait)"
    )


def test_a_new_nodeset_waits_for_its_cluster_and_is_not_blamed_for_it() -> None:
    snapshot = seen(of=nodeset(2), listed=False)
    blind = replace(snapshot, slurm=SlurmFacts(readable=False, reason=Reason.CONNECTING, why="no answer yet"))

    told = report(blind)

    assert condition(told, "Degraded").status == "False"
    assert condition(told, "Progressing").reason == "NotInConfig"
    assert told.status.summary == "waiting for Cluster c"


def test_a_scale_in_says_how_many_nodes_and_jobs_and_until_when() -> None:
    job = Job(
        id=7,
        state=JobState("RUNNING"),
        nodes=("a-4",),
        end_time=NOW + timedelta(minutes=30),
        time_limit=timedelta(hours=1),
    )
    pods = [a_pod(number) for number in range(5)]
    state = Draining(frozenset({Cause.SCALE_IN}), SINCE, (job,))
    told = report(
        seen(*pods, nodes=tuple(a_node(n) for n in range(5)), of=nodeset(3)),
        {"a-3": Draining(frozenset({Cause.SCALE_IN}), SINCE, ()), "a-4": state},
        victims=("a-4", "a-3"),
    )

    assert condition(told, "Ready").message == "5 of 5 nodes are ready: 5 pods, 3 wanted"
    assert told.status.summary == (
        "5 ready, 3 wanted; draining 2 of 5 for scale-in, 1 job left until 2026-01-01 12:30 UTC"
    )


def test_all_is_well_in_few_words() -> None:
    assert report(seen(a_pod(0), nodes=(a_node(0),))).status.summary == "1 of 1 ready"


def test_the_status_text_is_bounded() -> None:
    held = Hindrance(Reason.CONTAINER_NOT_CREATED, "container slurmd: " + "x" * 300)
    assert len(report(seen(a_pod(0, held))).status.summary) == 120


# Events


def test_a_trouble_is_told_in_one_event_and_again_for_further_nodes() -> None:
    memory, stored = Memory(), NodeSetStatus()
    one = report(seen(a_pod(0), a_pod(1), nodes=(down(0), a_node(1)))).troubles
    both = report(seen(a_pod(0), a_pod(1), nodes=(down(0), down(1)))).troubles

    assert [trouble.reason for trouble in trouble_events.due(memory, stored, one)] == [Reason.NODE_DOWN]
    assert trouble_events.due(memory, stored, one) == []
    assert len(trouble_events.due(memory, stored, both)) == 1
    assert trouble_events.due(memory, stored, one) == []
    assert trouble_events.due(memory, stored, []) == []
    assert len(trouble_events.due(memory, stored, one)) == 1


def test_after_a_start_of_the_operator_nothing_is_told_again() -> None:
    told = report(seen(a_pod(0), nodes=(down(0),)))

    assert trouble_events.due(Memory(), told.status, told.troubles) == []
    assert len(trouble_events.due(Memory(), NodeSetStatus(), told.troubles)) == 1


def test_after_a_start_only_what_is_new_is_told() -> None:
    stored = report(seen(a_pod(0), a_pod(1), nodes=(down(0), a_node(1)))).status
    now = report(seen(a_pod(0), a_pod(1), nodes=(down(0), down(1)))).troubles

    assert trouble_events.due(Memory(), stored, now) == list(now)


def test_each_reason_of_a_trouble_is_reported_in_events_or_is_silent_for_a_reason() -> None:
    sources = (ast.parse(inspect.getsource(module)) for module in (troubles, checks, forgotten, ssh, topology, volumes))
    named = {
        Reason[node.attr]
        for source in sources
        for node in ast.walk(source)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    assert named - ELSEWHERE == troubles.EVENTFUL | SILENT.keys()
    assert troubles.EVENTFUL.isdisjoint(SILENT)


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (seen(of=nodeset(scalingMode="DaemonSet")), Reason.SCALING_MODE_FIXED),
        (seen(a_pod(0), uid="", gone=True), Reason.CLUSTER_GONE),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_stops_a_nodeset_until_somebody_acts_is_told_once_in_an_event(snapshot: Snapshot, reason: Reason) -> None:
    memory, found = Memory(), report(snapshot)
    assert [one.reason for one in trouble_events.due(memory, NodeSetStatus(), found.troubles)] == [reason]
    assert trouble_events.due(memory, found.status, found.troubles) == []
    assert trouble_events.due(Memory(), found.status, found.troubles) == []


def test_a_nodeset_that_needs_nodes_nobody_watches_is_told_once_in_an_event() -> None:
    found = status.report(seen(of=nodeset(scalingMode="StatefulSet")), Decisions(Layout(None)), NOW)
    memory = Memory()
    assert [one.reason for one in trouble_events.due(memory, NodeSetStatus(), found.troubles)] == [
        Reason.NODES_NOT_WATCHED
    ]
    assert trouble_events.due(memory, found.status, found.troubles) == []


def test_what_the_cluster_is_in_trouble_for_is_no_event_of_the_nodeset() -> None:
    blind = SlurmFacts(readable=False, reason=Reason.SLURM_UNREACHABLE, why="no route")
    told = report(replace(seen(a_pod(0)), slurm=blind))

    assert condition(told, "Degraded").status == "True"
    assert trouble_events.due(Memory(), NodeSetStatus(), told.troubles) == []


def test_a_status_stands_until_slurm_has_had_time_to_answer_a_new_operator() -> None:
    told = report(seen(a_pod(0), nodes=(a_node(0),))).status
    of = nodeset(1, conditions=told.conditions)
    connecting = SlurmFacts(readable=False, reason=Reason.CONNECTING, why="no answer yet")
    blind = replace(seen(a_pod(0), of=of), slurm=connecting)
    memory = Memory()

    assert memory.settles_in(blind, lambda: 100.0) == SETTLING
    assert memory.settles_in(blind, lambda: 110.0) == SETTLING - 10
    assert memory.settles_in(blind, lambda: 100.0 + SETTLING) is None
    assert Memory().settles_in(replace(blind, slurm=SlurmFacts(readable=True)), lambda: 0.0) is None
    away = replace(connecting, reason=Reason.SLURM_UNREACHABLE)
    assert Memory().settles_in(replace(blind, slurm=away), lambda: 0.0) is None
    new = replace(blind, nodeset=nodeset(1))
    assert Memory().settles_in(new, lambda: 0.0) is None


def gone(before: Report | None, generation: int) -> Snapshot:
    """A NodeSet that is being deleted, with the status of an earlier pass."""
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "deletionTimestamp": "2026-01-01T11:00:00Z",
        "generation": generation,
        "finalizers": [labels.FINALIZER_NODESET_DRAIN],
    }
    body = {"metadata": metadata, "spec": {"clusterName": "c", "replicas": generation}}
    stored = before.status.to_dict() if before is not None else {"scalingMode": "StatefulSet"}
    return seen(a_pod(0), nodes=(a_node(0),), of=NodeSet.parse({**body, "status": stored}))


def test_what_is_applied_to_a_nodeset_that_is_being_deleted_goes_with_it_and_that_is_said() -> None:
    memory, pods = Memory(), (a_pod(0),)
    running = report(seen(*pods, nodes=(a_node(0),)))
    # The deletion is a generation of its own, also right after a change, or while the Cluster goes, too.
    earlier = [running, report(gone(None, 3)), report(seen(*pods, nodes=(a_node(0),), deleting=True))]
    for before in earlier:
        assert condition(report(gone(before, 3)), "Progressing").reason == "Deleting"
    deleting = report(gone(running, 3))
    assert condition(deleting, "Degraded").status == "False"

    # Somebody applies the manifest, and thinks that the NodeSet is back.
    told = report(gone(deleting, 4))

    assert condition(told, "Progressing").reason == "AppliedWhileDeleting"
    degraded = condition(told, "Degraded")
    assert degraded.reason == "AppliedWhileDeleting"
    assert degraded.message == (
        "the NodeSet was changed after its deletion, and goes with that change. Wait until it has gone "
        "(kubectl wait --for=delete nodesets.slinky.slurm.net/a --namespace ns), then apply it again"
    )
    assert told.status.summary == "deleting, 1 pod left; apply it again afterwards"
    due = trouble_events.due(memory, deleting.status, told.troubles)
    assert [one.text for one in due] == [degraded.message]
    # It stays said, and an operator that has just started has no further Event.
    again = report(gone(told, 4))
    assert condition(again, "Degraded").message == degraded.message
    assert trouble_events.due(Memory(), told.status, again.troubles) == []
