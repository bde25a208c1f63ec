"""What an update replaces, in which order and how much at once; and what is recorded of revisions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset.disruption import rolling_update
from slinky_operator.nodeset.model import revision, revision_records
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revision_records import Recorded, Revision, RevisionChanges
from tests.unit.nodeset.builders import joined

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Revision("new", current="old")


def nodeset(**spec: Any) -> NodeSet:
    metadata = {"name": "a", "namespace": "ns", "uid": "set-uid"}
    return NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 4, **spec}})


def updating(**rolling: Any) -> NodeSet:
    return nodeset(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def a_pod(number: int, **values: Any) -> Pod:
    given: dict[str, Any] = {
        "name": f"a-{number}",
        "node_name": f"a-{number}",
        "uid": str(number),
        "ordinal": number,
        "host": "host",
        "revision": "old",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
        "ready_since": NOW,
    }
    return Pod(**(given | values))


def stuck(ordinal: int, revision: str) -> Pod:
    return a_pod(ordinal, revision=revision, slurmd=Slurmd.NEVER, registered=False, ready_since=None)


def names(members: list[Member]) -> list[str]:
    return [member.name for member in members]


def chosen(
    pods: list[Pod],
    *,
    allowed: int,
    unavailable: int,
    under_way: int = 0,
    begun: tuple[str, ...] = (),
    known: tuple[str, ...] = (),
) -> list[str]:
    return sorted(
        rolling_update.choose(
            map(joined, pods),
            allowed=allowed,
            unavailable=unavailable,
            under_way=under_way,
            begun=begun,
            known=known,
            healthy=lambda member: member.pod.ready_since is not None,
            rank=lambda member: (4, 0, 0.0, 0, -(member.pod.ordinal or 0)),
        )
    )


@pytest.mark.parametrize(("value", "number"), [(1, 1), (3, 3), (0, 1), ("25%", 1), ("26%", 2), ("0%", 1), ("100%", 4)])
def test_the_budget_is_at_least_one_and_rounded_up(value: int | str, number: int) -> None:
    assert rolling_update.budget(updating(maxUnavailable=value), 4) == number


def test_an_update_reaches_what_is_at_or_above_the_partition() -> None:
    pods = [a_pod(number) for number in range(4)]

    assert names(rolling_update.outdated(map(joined, pods), updating(partition=2), NEW, ())) == ["a-2", "a-3"]
    assert names(rolling_update.outdated(map(joined, pods), updating(), NEW, ())) == ["a-0", "a-1", "a-2", "a-3"]
    assert rolling_update.outdated(map(joined, pods), updating(paused=True), NEW, ()) == []
    assert rolling_update.outdated(map(joined, pods), nodeset(updateStrategy={"type": "OnDelete"}), NEW, ()) == []


def test_without_ordinals_the_first_names_keep_the_old_revision() -> None:
    pods = [a_pod(number, name=name, ordinal=None) for number, name in enumerate(["c", "a", "b"])]

    assert names(rolling_update.outdated(map(joined, pods), updating(partition=2), NEW, ())) == ["c"]


def test_what_is_held_back_is_made_anew_as_it_was() -> None:
    assert revision_records.target(1, updating(partition=2), NEW) == "old"
    assert revision_records.target(2, updating(partition=2), NEW) == "new"
    assert revision_records.target(7, updating(paused=True), NEW) == "old"
    assert revision_records.target(0, nodeset(updateStrategy={"type": "OnDelete"}), NEW) == "new"
    assert revision_records.target(0, updating(partition=2), Revision("new")) == "new"


def test_a_pod_that_never_came_up_is_replaced_even_where_an_update_is_held_back() -> None:
    pods = [stuck(0, "broken"), a_pod(1, revision="older"), stuck(2, "old")]

    assert names(rolling_update.outdated(map(joined, pods), updating(partition=3), NEW, ())) == ["a-0"]


def test_a_bad_revision_stops_at_the_budget_and_mending_goes_on() -> None:
    old = [a_pod(number) for number in range(3)]

    assert chosen(old, allowed=1, unavailable=1) == []
    assert chosen(old, allowed=2, unavailable=1) == ["a-2"]
    # The spec is mended: the stuck one is outdated too, and goes first whatever the budget has left.
    assert chosen([*old, stuck(3, "broken")], allowed=1, unavailable=1) == ["a-3"]


def test_those_that_are_broken_anyway_go_before_those_that_serve() -> None:
    pods = [a_pod(0), a_pod(1, ready_since=None), a_pod(2)]

    assert chosen(pods, allowed=1, unavailable=1) == ["a-1"]


def test_those_that_may_come_back_do_not_go_beside_what_is_to_come_up() -> None:
    pods = [a_pod(0), a_pod(1, ready_since=None), a_pod(2, ready_since=None)]

    assert chosen(pods, allowed=1, unavailable=3, under_way=1) == []
    assert chosen(pods, allowed=2, unavailable=3, under_way=1) == ["a-2"]
    assert chosen(pods, allowed=1, unavailable=3) == ["a-2"]


def test_what_was_begun_goes_on_as_far_as_the_budget_allows() -> None:
    pods = [a_pod(number) for number in range(4)]

    assert chosen(pods, allowed=2, unavailable=2, begun=("a-0", "a-1")) == ["a-0", "a-1"]
    assert chosen(pods, allowed=1, unavailable=2, begun=("a-0", "a-1")) == ["a-1"]


# Hashes


def test_the_hash_is_about_what_the_user_wrote() -> None:
    first = revision.of(nodeset(image="x"))

    assert first == revision.of(nodeset(image="x", replicas=9, minReadySeconds=3))
    assert first != revision.of(nodeset(image="y"))
    assert first != revision.of(nodeset(image="x", features=["f"]))


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        ({}, "654abff244"),
        ({"image": "slurmd:1", "features": ["f"], "weight": 0}, "98f08a94fb"),
        (
            {
                "template": {"spec": {"containers": [{"name": "slurmd", "env": []}]}},
                "resources": {"limits": {"cpu": 2}},
                "gres": "gpu:1",
                "extraConf": "MemSpecLimit=64",
            },
            "dc6980fa83",
        ),
    ],
)
def test_the_hash_of_a_spec_is_the_same_in_every_release(spec: dict[str, Any], known: str) -> None:
    # Where this fails, an upgrade of the operator replaces every pod of every user: is that wanted?
    assert revision.of(nodeset(**spec)) == known


def test_a_recorded_spec_is_restored_with_everything_else_as_it_is_now() -> None:
    before = nodeset(
        image="x", features=["f"], weight=3, gres="gpu:1", extraConf="CoreSpecCount=1", resources={"limits": {"cpu": 2}}
    )
    now = nodeset(template={"metadata": {"labels": {"a": "b"}}}, replicas=9, minReadySeconds=5)

    restored = revision.restored(now, revision.content(before))

    assert revision.of(restored) == revision.of(before)
    assert (restored.spec.replicas, restored.spec.min_ready_seconds) == (9, 5)


# What is recorded


def recorded(hash_: str, number: int) -> Recorded:
    return Recorded(f"a-{hash_}", f"uid-{hash_}", hash_, number, {"image": hash_})


def test_what_is_written_is_read_back() -> None:
    owner = nodeset(image="x")
    obj = revision_records.build(owner, "h", revision.content(owner), 3)
    obj["metadata"]["uid"] = "u"

    assert revision_records.read(obj) == Recorded("a-h", "u", "h", 3, {"image": "x"})
    assert [one["uid"] for one in obj["metadata"]["ownerReferences"]] == ["set-uid"]
    assert obj["metadata"]["labels"][labels.LABEL_NODESET_UID] == "set-uid"


def test_a_new_spec_becomes_the_newest_revision() -> None:
    kept = [recorded("old", 4)]

    assert revision_records.upkeep("new", kept, current="old", carried={"old"}, limit=0) == RevisionChanges(record=5)
    assert revision_records.upkeep("new", [], current="new", carried=(), limit=0) == RevisionChanges(record=1)


def test_an_older_spec_finds_its_revision_again() -> None:
    old, new = recorded("old", 1), recorded("new", 2)

    assert revision_records.upkeep("old", [old, new], current="new", carried={"new"}, limit=0) == RevisionChanges(
        renumber=(old, 3)
    )
    assert revision_records.upkeep("new", [old, new], current="old", carried=(), limit=0) == RevisionChanges()


def test_the_oldest_go_beyond_the_limit_and_none_that_a_pod_carries() -> None:
    kept = [recorded(name, number) for number, name in enumerate(["carried", "first", "second", "third", "old", "new"])]

    found = revision_records.upkeep("new", kept, current="old", carried={"carried"}, limit=1)

    assert [one.hash for one in found.drop] == ["first", "second"]


def test_the_revision_before_an_update_is_the_last_one_that_all_had() -> None:
    owner = NodeSet.parse(
        {
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"clusterName": "c", "replicas": 1},
            "status": {"nodeSetHash": "old"},
        }
    )

    assert revision_records.current(owner, "new", [recorded("old", 1)]) == "old"
    assert revision_records.current(owner, "new", []) == "new"
    assert revision_records.current(nodeset(), "new", [recorded("old", 1)]) == "new"
