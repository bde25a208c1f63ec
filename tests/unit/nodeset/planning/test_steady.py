"""A pass is left out if only the load of nodes has changed since one that planned nothing, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.model.drain_requests import DrainRequest
from slinky_operator.nodeset.model.loads import told_by
from slinky_operator.nodeset.model.pods.hindrance import Hindrance
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning import survey
from slinky_operator.nodeset.planning.decisions import undecided
from slinky_operator.nodeset.planning.plan import Plan
from slinky_operator.nodeset.planning.steady import LONGEST, Steady, follow, goes_on, steady
from slinky_operator.nodeset.report.status import loads_of
from tests.unit.nodeset.builders import NOW, a_pod, node, nodeset

IDLE = "IDLE+DYNAMIC_NORM"

PODS = tuple(a_pod(name=f"a-{number}", ordinal=number, uid=f"u{number}") for number in range(2))


def seen(words: str = IDLE, **record: Any) -> Snapshot:
    """Two registered pods; the state of the node of the second, and what else its record says."""
    of = nodeset(replicas=2)
    records = {f"a-{number}": node(IDLE, name=f"a-{number}", instance_id=f"u{number}") for number in range(2)}
    records["a-1"] = node(words, **{"name": "a-1", "instance_id": "u1", **record})
    slurm = SlurmFacts(readable=True, nodes=records)
    return Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), pods=PODS)


def with_slurm(**values: Any) -> Snapshot:
    snapshot = seen()
    return replace(snapshot, slurm=replace(snapshot.slurm, **values))


def with_status(**values: Any) -> Snapshot:
    snapshot = seen()
    status = snapshot.nodeset.status.model_copy(update=values)
    return replace(snapshot, nodeset=snapshot.nodeset.model_copy(update={"status": status}))


def with_metadata(**values: Any) -> Snapshot:
    snapshot = seen()
    metadata = snapshot.nodeset.metadata.model_copy(update=values)
    return replace(snapshot, nodeset=snapshot.nodeset.model_copy(update={"metadata": metadata}))


def steady_at(snapshot: Snapshot) -> Steady:
    """A pass over a snapshot that planned nothing."""
    by_node = {pod.node_name: pod for pod in snapshot.pods}
    return Steady(snapshot, NOW + timedelta(seconds=LONGEST), None, loads_of(snapshot), by_node)


BEFORE = steady_at(seen())


@pytest.mark.parametrize(
    "snapshot",
    [
        seen(),
        seen("MIXED+DYNAMIC_NORM", alloc_cpus=2, tres_used="cpu=2"),
        seen("ALLOCATED+DYNAMIC_NORM", alloc_cpus=4, alloc_memory_mib=64, gres_used="gpu:1"),
        seen("IDLE+COMPLETING+DYNAMIC_NORM"),
        seen("IDLE+PLANNED+DYNAMIC_NORM"),
        with_status(slurm_idle=7, number_idle=7),
        with_metadata(resource_version="another"),
        replace(seen(), pods_in_sight=99, state_writes=3),
        replace(seen(), cluster=replace(seen().cluster, maintenance_changes_in=12.0)),
    ],
)
def test_load_makes_no_whole_pass(snapshot: Snapshot) -> None:
    assert goes_on(BEFORE, snapshot, NOW)


@pytest.mark.parametrize(
    "snapshot",
    [
        seen("IDLE+DRAIN+DYNAMIC_NORM"),
        seen("MIXED+DRAIN+DYNAMIC_NORM", reason="somebody"),
        seen("DOWN+DYNAMIC_NORM"),
        seen("IDLE+NOT_RESPONDING+DYNAMIC_NORM"),
        seen("IDLE+MAINTENANCE+DYNAMIC_NORM"),
        seen("IDLE"),
        seen(reason="a remark"),
        seen(features=("a",)),
        seen(instance_id="another"),
        seen(extra="ns/b"),
        with_slurm(nodes={"a-0": seen().slurm.nodes["a-0"]}),
        with_slurm(nodes={**seen().slurm.nodes, "a-2": node(name="a-2")}),
        with_slurm(jobs={}),
        with_slurm(readable=False),
        with_status(summary="another operator"),
        with_metadata(uid="another"),
        with_metadata(generation=7),
        with_metadata(annotations={labels.ANNOTATION_SKIP_DRAIN: "true"}),
        with_metadata(deletion_timestamp=NOW),
        replace(seen(), pods=PODS[:1]),
        replace(seen(), pods=(PODS[0], replace(PODS[1], cordoned=True))),
        replace(seen(), hosts={}),
        replace(seen(), guard="another"),
        replace(seen(), ended=frozenset({"a-1"})),
        replace(seen(), unlisted=frozenset({"a-1"})),
        replace(seen(), foreign_pods={"a-2": "there is a pod a-2 that is not ours"}),
        replace(seen(), checks_are_old=True),
        replace(seen(), drain_requests={"h": DrainRequest("ns", "r", "u", "h", "x")}),
        replace(seen(), cluster=replace(seen().cluster, update_wait="another release")),
        replace(seen(), revision=Revision("another")),
    ],
)
def test_anything_else_makes_one(snapshot: Snapshot) -> None:
    assert not goes_on(BEFORE, snapshot, NOW)


def test_the_load_of_a_node_whose_pod_has_not_registered_makes_one() -> None:
    pods = (PODS[0], replace(PODS[1], registered=False))
    before = steady_at(replace(seen(), pods=pods))
    assert not goes_on(before, replace(seen("MIXED+DYNAMIC_NORM"), pods=pods), NOW)


def test_its_time_is_over() -> None:
    assert not goes_on(BEFORE, seen(), NOW + timedelta(seconds=LONGEST))
    assert replace(BEFORE, wakes_at=NOW + timedelta(seconds=9)).wakes_in(NOW + timedelta(seconds=2)) == 7
    assert BEFORE.wakes_in(NOW) is None


def test_which_pass_is_followed() -> None:
    snapshot = seen()
    status = snapshot.nodeset.status
    found = survey.survey(snapshot, NOW)
    quiet = Plan(undecided(found), wake_up=5)
    shown = loads_of(snapshot).shown_in(status)
    wakes_at = NOW + timedelta(seconds=5)
    expected = replace(BEFORE, until=wakes_at, wakes_at=wakes_at)
    assert steady(found, quiet, shown) == replace(expected, loads=told_by(shown))
    assert steady(found, Plan(undecided(found)), shown) == replace(BEFORE, loads=told_by(shown))
    assert steady(replace(found, needs_jobs=True), quiet, status) is None
    assert steady(replace(found, suspects=("a-9",)), quiet, status) is None
    assert steady(found, quiet, NodeSetStatus(summary="it has something to say")) is None
    asked = replace(found, snapshot=snapshot.with_jobs({}))
    assert steady(asked, quiet, status) is None
    health = snapshot.nodeset.spec.model_copy(update={"health": nodeset(health={"podConditions": "All"}).spec.health})
    all_states = replace(snapshot, nodeset=snapshot.nodeset.model_copy(update={"spec": health}))
    assert steady(replace(found, snapshot=all_states), quiet, status) is None


def test_two_pods_with_one_node_are_followed_by_no_pass() -> None:
    snapshot = replace(seen(), pods=(PODS[0], replace(PODS[1], node_name="a-0")))
    found = survey.survey(snapshot, NOW)
    assert steady(found, Plan(undecided(found)), snapshot.nodeset.status) is None


def test_what_a_kubelet_writes_besides_makes_no_whole_pass() -> None:
    pods = (PODS[0], replace(PODS[1], resource_version="another"))
    snapshot = replace(seen("MIXED+DYNAMIC_NORM"), pods=pods)
    assert goes_on(BEFORE, snapshot, NOW)
    followed = follow(BEFORE, snapshot)
    assert followed.pods["a-1"] is pods[1]
    assert followed.loads.counts == loads_of(snapshot).counts


@pytest.mark.parametrize(
    "values",
    [
        {"address": "10.0.0.9"},
        {"told": DrainCondition("True", "Drained", "x", since="2026-01-02T00:00:00Z")},
        {"node_states": {"SlurmNodeStateDrain": DrainCondition("True", "Drain", "x", since="2026-01-02T00:00:00Z")}},
        {"hindrance": Hindrance(Reason.PODS_NOT_READY, "it waits", brief="another word")},
    ],
)
def test_what_rules_read_of_a_pod_makes_one(values: dict[str, Any]) -> None:
    told = DrainCondition("True", "Drained", "x", since="2026-01-01T00:00:00Z")
    known: dict[str, Any] = {
        "told": told,
        "node_states": {"SlurmNodeStateDrain": DrainCondition("True", "Drain", "x", since="2026-01-01T00:00:00Z")},
        "hindrance": Hindrance(Reason.PODS_NOT_READY, "it waits", brief="a word"),
    }
    pod = replace(PODS[1], **known)
    before = steady_at(replace(seen(), pods=(PODS[0], pod)))
    assert goes_on(before, replace(seen(), pods=(PODS[0], replace(pod, resource_version="another"))), NOW)
    assert not goes_on(before, replace(seen(), pods=(PODS[0], replace(pod, **values))), NOW)


def test_passes_are_followed_in_turn() -> None:
    steps = ["MIXED+DYNAMIC_NORM", "ALLOCATED+DYNAMIC_NORM", "IDLE+COMPLETING+DYNAMIC_NORM", IDLE]
    before = BEFORE
    for words in steps:
        snapshot = seen(words)
        assert goes_on(before, snapshot, NOW)
        before = follow(before, snapshot)
        whole = loads_of(snapshot)
        assert before.snapshot is snapshot
        assert (before.loads.counts, before.loads.idle, before.loads.allocated) == (
            whole.counts,
            whole.idle,
            whole.allocated,
        )


def test_what_it_says() -> None:
    snapshot = seen("MIXED+DYNAMIC_NORM")
    counted = loads_of(snapshot).shown_in(snapshot.nodeset.status)
    assert (counted.nodes.idle, counted.nodes.allocated) == (1, 1)
    assert (counted.slurm_idle, counted.number_idle, counted.slurm_allocated, counted.number_allocated) == (1, 1, 1, 1)
