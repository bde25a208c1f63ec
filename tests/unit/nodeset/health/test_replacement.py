"""Which nodes are replaced: those that are bad and proven empty, counted before they are, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.health import Replace
from slinky_api.v1alpha1.nodeset.status import MAX_REPLACEMENTS, NodeSetStatus, Replacement
from slinky_operator.nodeset.health import choice, replacement
from slinky_operator.nodeset.health.replacement import TAKES, ReplacementChoice
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import stamp
from tests.unit.nodeset.builders import NOW, OWNER, a_pod, job, joined, node
from tests.unit.nodeset.health.test_choice import OURS, host, seen

HELD = frozenset({Cause.HEALTH})


def tried(number: int, *, ago: float = 3600, tries: int = 1, uid: str = "earlier") -> Replacement:
    """A try on a Node, so many seconds ago."""
    last = stamp(NOW - timedelta(seconds=ago))
    return Replacement(host=f"host-{number}", tries=tries, last=last, pod=f"a-{number}", pod_uid=uid)


def bad(
    *hosts: KubernetesNode, records: Sequence[Replacement] = (), drained: Sequence[int] | None = None, **given: Any
) -> Snapshot:
    """A NodeSet whose nodes are drained for their health, and hold no job."""
    reasons = dict.fromkeys(range(len(hosts)) if drained is None else drained, OURS)
    spec = {"policy": "RecreatePod", **given}
    snapshot = seen(list(hosts), reasons=reasons, maxUnhealthy="100%", replace=spec)
    ready = tuple(replace(pod, ready_since=NOW - timedelta(hours=2)) for pod in snapshot.pods)
    status = NodeSetStatus(replacements=tuple(records) or None)
    of = snapshot.nodeset.model_copy(update={"status": status})
    return replace(snapshot, nodeset=of, pods=ready, slurm=replace(snapshot.slurm, jobs={}))


def chosen(snapshot: Snapshot, **causes: frozenset[Cause]) -> ReplacementChoice:
    live = snapshot.members
    why = {member.name: HELD for member in live} | causes
    states = {one.name: pod_state.classify(one, snapshot.slurm, why[one.name]) for one in live}
    return replacement.choose(snapshot, live, choice.choose(snapshot, live, len(live), (), (), NOW), states, why, NOW)


def names(found: ReplacementChoice) -> tuple[list[str], dict[str, int]]:
    """Pods that are deleted now, and tries by Node."""
    return [pod.name for pod in found.pods], {one.host: one.tries for one in found.records}


def test_a_try_is_counted_before_anything_is_done() -> None:
    first = chosen(bad(host(0)))

    assert names(first) == ([], {"host-0": 1})
    assert first.records[0] == Replacement(host="host-0", tries=1, last=stamp(NOW), pod="a-0", pod_uid="u0")
    assert names(chosen(bad(host(0), records=first.records))) == (["a-0"], {"host-0": 1})


def test_without_a_policy_nothing_is_done_and_nothing_remembered() -> None:
    assert chosen(bad(host(0), records=[tried(0)], policy="Nothing")) == ReplacementChoice()


@pytest.mark.parametrize(
    "changed",
    [
        lambda one: replace(one, slurm=replace(one.slurm, jobs={"a-0": (job("RUNNING"),)})),
        lambda one: replace(one, slurm=replace(one.slurm, jobs=None)),
        lambda one: replace(one, slurm=replace(one.slurm, readable=False)),
        lambda one: replace(one, cluster=replace(one.cluster, deleting=True)),
        lambda one: replace(one, hosts={}),
        lambda one: replace(one, hosts={"host-0": host(0, None)}),
        lambda one: replace(one, hosts={"host-0": host(0, 10)}),
    ],
    ids=["a job", "jobs not asked for", "no answer", "deleted Cluster", "unknown Node", "well", "not for long enough"],
)
def test_what_is_not_proven_empty_or_not_bad_is_left_alone(changed: Any) -> None:
    assert names(chosen(changed(bad(host(0))))) == ([], {})


@pytest.mark.parametrize("cause", [Cause.CORDON, Cause.SCALE_IN, Cause.UPDATE, Cause.REPAIR])
def test_what_is_drained_for_something_else_as_well_is_not_replaced(cause: Cause) -> None:
    assert names(chosen(bad(host(0)), **{"a-0": HELD | {cause}})) == ([], {})


def test_a_drain_by_somebody_else_is_theirs() -> None:
    snapshot = bad(host(0))
    theirs = {"a-0": replace(snapshot.slurm.nodes["a-0"], reason="mine")}

    assert names(chosen(replace(snapshot, slurm=replace(snapshot.slurm, nodes=theirs)))) == ([], {})


def test_under_a_cordon_only_what_can_come_up_elsewhere_is_recreated() -> None:
    why = HELD | {Cause.NODE_CORDON}
    snapshot = bad(host(0, cordoned=True))
    pinned = replace(snapshot, pods=(replace(snapshot.pods[0], pinned_to="host-0"),))
    one_each = replace(snapshot, pods=(replace(snapshot.pods[0], on_node=True),))

    assert names(chosen(snapshot, **{"a-0": why})) == ([], {"host-0": 1})
    assert names(chosen(pinned, **{"a-0": why})) == names(chosen(one_each, **{"a-0": why})) == ([], {})


def test_no_more_at_once_than_the_spec_says_and_the_longest_trouble_first() -> None:
    hosts = host(0, 100), host(1, 900), host(2, 500)

    assert names(chosen(bad(*hosts))) == ([], {"host-1": 1})
    assert names(chosen(bad(*hosts, maxConcurrent=2))) == ([], {"host-1": 1, "host-2": 1})
    begun = [tried(1, ago=10, uid="u1")]
    assert names(chosen(bad(*hosts, records=begun))) == (["a-1"], {"host-1": 1})


def test_two_pods_on_one_node_are_replaced_one_after_the_other() -> None:
    snapshot = bad(host(0), host(1), maxConcurrent=2)
    both = replace(snapshot, pods=tuple(replace(pod, host="host-0") for pod in snapshot.pods))
    first = chosen(both)

    assert names(first) == ([], {"host-0": 1})
    of = both.nodeset.model_copy(update={"status": NodeSetStatus(replacements=first.records)})
    assert names(chosen(replace(both, nodeset=of))) == (["a-0"], {"host-0": 1})


def test_one_that_has_yet_to_come_back_keeps_its_place_for_a_while() -> None:
    """Its pod has gone, or the next one has not registered."""
    hosts = host(0, None), host(1)
    away = bad(*hosts, records=[tried(0, ago=10)], drained=[1])
    starting = replace(away.pods[0], registered=False, ready_since=None)

    for pods in (away.pods[1:], (starting, away.pods[1])):
        found = chosen(replace(away, pods=pods))
        assert names(found) == ([], {"host-0": 1})
        assert found.wake_up == TAKES.total_seconds() - 10
        assert replacement.absent(replace(away, pods=pods), NOW) == {"a-0"}
    assert names(chosen(away)) == ([], {"host-0": 1, "host-1": 1})
    late = bad(*hosts, records=[tried(0, ago=TAKES.total_seconds())], drained=[1])
    assert names(chosen(replace(late, pods=late.pods[1:]))) == ([], {"host-0": 1, "host-1": 1})


def test_a_try_that_was_not_made_in_time_is_another_one() -> None:
    """Nobody knows what happened to the pod since; meanwhile it keeps its place, but not that of a missing node."""
    late = tried(0, ago=TAKES.total_seconds(), uid="u0")
    assert names(chosen(bad(host(0), records=[late], backoffSeconds=0))) == ([], {"host-0": 2})
    assert chosen(bad(host(0), records=[late], maxTries=1)).given_up

    well = bad(host(0, None), host(1), records=[tried(0, ago=10, uid="u0")], drained=[1])
    assert names(chosen(well)) == ([], {"host-0": 1})
    assert not replacement.absent(well, NOW)


def test_the_pause_on_one_node_doubles() -> None:
    assert chosen(bad(host(0), records=[tried(0, ago=500)])).wake_up == 100
    assert names(chosen(bad(host(0), records=[tried(0, ago=600)]))) == ([], {"host-0": 2})
    assert chosen(bad(host(0), records=[tried(0, ago=600, tries=2)])).wake_up == 600
    assert names(chosen(bad(host(0), records=[tried(0, ago=1200, tries=2)]))) == ([], {"host-0": 3})


def test_after_the_last_try_a_node_stays_out_and_a_day_later_it_has_all_again() -> None:
    found = chosen(bad(host(0), records=[tried(0, ago=80_000, tries=3)]))

    assert names(found) == ([], {"host-0": 3})
    assert [(one.node, one.record.tries) for one in found.given_up] == [("a-0", 3)]
    assert names(chosen(bad(host(0), records=[tried(0, ago=86_400, tries=3)]))) == ([], {"host-0": 1})


def test_the_status_has_room_for_so_many_nodes() -> None:
    others = [tried(number) for number in range(1, MAX_REPLACEMENTS + 1)]

    found = chosen(bad(host(0), records=others))

    assert found.is_full
    assert len(found.records) == MAX_REPLACEMENTS


def test_a_status_that_somebody_has_edited_does_no_harm() -> None:
    """A time that is none is as good as no try; the next one is counted."""
    broken = tried(0).model_copy(update={"last": "yesterday"})

    assert names(chosen(bad(host(0), records=[broken]))) == ([], {"host-0": 1})


def test_the_last_look_finds_jobs_and_drains_of_others() -> None:
    pod, words = a_pod(), "IDLE+DRAIN+DYNAMIC_NORM"

    assert replacement.why_kept(joined(pod, node(words, reason=OURS)), NOW) is None
    assert replacement.why_kept(joined(pod, node(words, reason=OURS), job("RUNNING")), NOW)
    assert replacement.why_kept(joined(pod, node(reason=OURS)), NOW)
    for reason in ("mine", drains.reason({Cause.NODE_CORDON}, OWNER)):
        assert "is not drained for its health" in str(
            replacement.why_kept(joined(pod, node(words, reason=reason)), NOW)
        )


def test_a_budget_counts_what_is_away_for_a_replacement() -> None:
    snapshot = seen([host(0), host(1)], reasons={0: OURS}, maxUnhealthy=2)

    assert sorted(choice.choose(snapshot, snapshot.members, 2, (), (), NOW).drained) == ["a-0", "a-1"]
    assert sorted(choice.choose(snapshot, snapshot.members, 2, (), {"a-9"}, NOW).drained) == ["a-0"]


def test_one_that_comes_back_to_a_bad_node_has_its_place_already() -> None:
    """It would wait for itself: its node got jobs until it was ready."""
    snapshot = seen([host(0), host(1)], maxUnhealthy=1)

    found = choice.choose(snapshot, snapshot.members, 2, (), {"a-0"}, NOW)

    assert list(found.drained) == ["a-0"]
    assert [one.pod for one in found.waiting] == ["a-1"]
    smaller = seen([host(0), host(1)], reasons={1: OURS}, maxUnhealthy=1)
    found = choice.choose(smaller, smaller.members, 2, (), {"a-0"}, NOW)
    assert list(found.drained) == ["a-1"]
    assert [one.pod for one in found.waiting] == ["a-0"]


def test_defaults() -> None:
    assert Replace() == Replace(max_concurrent=1, backoff_seconds=600, max_tries=3, within_seconds=86_400)
