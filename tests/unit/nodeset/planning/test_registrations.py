"""Where it is recorded that pods have registered: on the pods, or in the status of their NodeSet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning import registrations
from slinky_operator.nodeset.planning.registrations import Registrations
from tests.unit.nodeset.builders import NOW, a_pod, joined, node, nodeset

LONG_AGO = timedelta(hours=1)
JUST_NOW = timedelta(seconds=4)


def pods(count: int, age: timedelta = JUST_NOW, first: int = 0, **values: Any) -> list[Pod]:
    """Pods whose slurmds have registered, and of which nothing is recorded."""
    given = {"registered": False, "revision": "v1", "created_at": NOW - age, **values}
    return [
        a_pod(**{"name": f"a-{number}", "uid": f"uid-{number}", "ordinal": number, **given})
        for number in range(first, first + count)
    ]


def chosen(
    found: Iterable[Pod], *, missing: int = 0, state_writes: int = 100, written: int = 0, readable: bool = True
) -> Registrations:
    members: list[Member] = [
        joined(one, node(name=one.node_name, instance_id=one.uid) if readable else None) for one in found
    ]
    slurm = SlurmFacts(readable=readable)
    given = tuple(one.pod for one in members)
    snapshot = Snapshot(nodeset(), ClusterFacts("c"), slurm, Revision("v1"), given, state_writes=state_writes)
    return registrations.choose(snapshot, members, missing, written, NOW)


def names(found: Iterable[Pod]) -> list[str]:
    return [one.name for one in found]


def test_a_few_are_marked_at_once_and_the_status_says_nothing() -> None:
    found = chosen(pods(20))
    assert len(found.marks) == 20
    assert (found.recorded, found.uids, found.late, found.due_in) == (None, frozenset(), 0, None)


def test_of_many_the_status_tells_and_one_of_each_revision_is_marked() -> None:
    found = chosen([*pods(30), *pods(10, first=30, revision="v2")])
    assert names(found.marks) == ["a-0", "a-30"]
    assert found.recorded is not None
    assert found.recorded.ordinals == "1-29,31-39"
    assert len(found.uids) == 38
    assert found.due_in == 26.0


def test_those_that_are_still_to_come_count_too() -> None:
    assert len(chosen(pods(3), missing=17).marks) == 3
    assert names(chosen(pods(3), missing=18).marks) == ["a-0"]


def test_when_all_is_quiet_they_are_marked_within_the_budget() -> None:
    recorded = pods(50, LONG_AGO, registered=True, unmarked=True)
    found = chosen(recorded, state_writes=30, written=6)
    assert len(found.marks) == found.late == 24
    assert found.recorded is not None
    # A mark may fail: what is recorded stays so until the pod shows it.
    assert found.recorded.ordinals == "0-49"
    assert found.due_in == registrations.AGAIN


def test_what_is_recorded_stays_so_although_slurm_has_forgotten_it() -> None:
    found = chosen(pods(50, registered=True, unmarked=True), readable=False)
    assert found.recorded is not None
    assert found.recorded.ordinals == "0-49"
    assert len(found.uids) == 50


def test_without_a_decision_it_stays_as_well() -> None:
    given = tuple(pods(3, registered=True, unmarked=True))
    snapshot = Snapshot(nodeset(), ClusterFacts("c"), SlurmFacts(readable=False), Revision("v1"), given)
    found = registrations.keep(snapshot)
    assert found.recorded is not None
    assert found.recorded.ordinals == "0-2"
    assert found.marks == ()


def test_a_pod_of_a_node_is_marked_at_once() -> None:
    found = chosen(pods(30, ordinal=None, on_node=True))
    assert len(found.marks) == 30
    assert found.recorded is None


def test_what_is_being_deleted_stays_recorded_and_is_not_marked() -> None:
    going = pods(30, LONG_AGO, registered=True, unmarked=True, deleting=True)
    snapshot = Snapshot(nodeset(), ClusterFacts("c"), SlurmFacts(readable=True), Revision("v1"), tuple(going))
    found = registrations.choose(snapshot, (), 0, 0, NOW)
    assert found.marks == ()
    assert found.recorded is not None
    assert found.recorded.ordinals == "0-29"
