"""A pass is left out if only the load of nodes has changed since one that planned nothing, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.model.drain_requests import DrainRequest
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning import survey
from slinky_operator.nodeset.planning.decisions import undecided
from slinky_operator.nodeset.planning.plan import Plan
from slinky_operator.nodeset.planning.steady import LONGEST, Steady, goes_on, steady
from slinky_operator.nodeset.report.status import with_loads
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


BEFORE = Steady(seen(), NOW + timedelta(seconds=LONGEST), None)


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
        replace(seen(), foreign_pods=frozenset({"a-2"})),
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
    before = replace(BEFORE, snapshot=replace(seen(), pods=pods))
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
    assert steady(found, quiet, status) == Steady(snapshot, NOW + timedelta(seconds=5), NOW + timedelta(seconds=5))
    assert steady(found, Plan(undecided(found)), status) == BEFORE
    assert steady(replace(found, needs_jobs=True), quiet, status) is None
    assert steady(replace(found, suspects=("a-9",)), quiet, status) is None
    assert steady(found, quiet, NodeSetStatus(summary="it has something to say")) is None
    asked = replace(found, snapshot=snapshot.with_jobs({}))
    assert steady(asked, quiet, status) is None
    shown = snapshot.nodeset.spec.model_copy(update={"health": nodeset(health={"podConditions": "All"}).spec.health})
    all_states = replace(snapshot, nodeset=snapshot.nodeset.model_copy(update={"spec": shown}))
    assert steady(replace(found, snapshot=all_states), quiet, status) is None


def test_what_it_says() -> None:
    snapshot = seen("MIXED+DYNAMIC_NORM")
    counted = with_loads(snapshot)
    assert (counted.nodes.idle, counted.nodes.allocated) == (1, 1)
    assert (counted.slurm_idle, counted.number_idle, counted.slurm_allocated, counted.number_allocated) == (1, 1, 1, 1)
