"""The one state of each pod, and the last check before it is deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import SlurmFacts
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Job, Node
from tests.unit.nodeset.builders import NOW, OURS, a_pod, job, joined, node


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
    assert "somebody else's: it is a static node" in (kept(a_pod(), node("IDLE+DRAIN", extra="")) or "")
    assert (kept(a_pod(), node("IDLE+DYNAMIC_NORM", extra="ns/b")) or "").endswith("somebody else's")
    assert kept(a_pod(slurmd=Slurmd.ENDED), node("ALLOCATED+DYNAMIC_NORM"), job("RUNNING")) is None


@pytest.mark.parametrize(
    ("begun", "seen", "is_kept"),
    [
        (60, 5, True),
        (-60, 5, True),
        (-60, 31, False),
        (5, 31, False),
        (5, None, True),
        (31, None, False),
        # Another operator led when it began.
        (599, 5, True),
        (600, 5, False),
    ],
)
@pytest.mark.parametrize("slurmd", [Slurmd.RUNNING, Slurmd.NEVER])
def test_a_start_counts_from_when_the_operator_has_seen_it(
    slurmd: Slurmd, begun: int, seen: int | None, *, is_kept: bool
) -> None:
    """The times that a pod shows are those of other clocks."""
    since = NOW - timedelta(seconds=begun)
    seen_at = NOW - timedelta(seconds=seen) if seen is not None else None
    pod = a_pod(registered=False, slurmd=slurmd, created_at=NOW - timedelta(hours=1), bound_at=since, seen_at=seen_at)
    if slurmd is Slurmd.RUNNING:
        pod = replace(pod, slurmd_started_at=since)
    assert (pod_state.why_kept(joined(pod, None), NOW) is not None) is is_kept


@pytest.mark.parametrize(
    ("started", "answers", "is_kept"),
    [(3600, 3, True), (3600, 149, True), (3600, 150, False), (60, 61, False), (60, None, False)],
)
def test_a_slurmd_that_ran_while_slurmctld_was_away_has_time_to_register(
    started: int, answers: int | None, *, is_kept: bool
) -> None:
    pod = a_pod(registered=False, slurmd_started_at=NOW - timedelta(seconds=started))
    since = NOW - timedelta(seconds=answers) if answers is not None else None
    member = replace(joined(pod, None), answers_since=since)
    assert (pod_state.why_kept(member, NOW) is not None) is is_kept


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
