"""What an update replaces, in which order and how much at once."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.nodeset.disruption import rolling_update
from slinky_operator.nodeset.disruption.victims import Tier
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from tests.unit.nodeset.builders import NOW, joined, nodeset, updating

NEW = Revision("new", current="old")


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
            rank=lambda member: (Tier.IDLE, 0, 0.0, False, 0, -(member.pod.ordinal or 0)),
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
