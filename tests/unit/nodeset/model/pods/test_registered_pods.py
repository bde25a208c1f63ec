"""Pods that have registered, as the status records them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slinky_api.v1alpha1.nodeset.status import LONGEST_ORDINALS, RegisteredPods
from slinky_operator.nodeset.model.pods import registered_pods
from slinky_operator.nodeset.model.pods.pod_facts import Pod

BEGIN = datetime(2026, 11, 1, 12, tzinfo=UTC)


def pod(ordinal: int | None, seconds: int = 0) -> Pod:
    name = f"a-{ordinal}"
    return Pod(name, name, f"{name}-{seconds}", ordinal=ordinal, created_at=BEGIN + timedelta(seconds=seconds))


def test_ordinals_that_follow_each_other_are_one_range() -> None:
    recorded, left = registered_pods.record([pod(number) for number in (7, 0, 2, 1, 10, 9)])
    assert recorded == RegisteredPods(ordinals="0-2,7,9-10", created_until="2026-11-01T12:00:00Z")
    assert left == ()


def test_what_is_recorded_is_read_again() -> None:
    pods = [pod(number, number) for number in (0, 1, 2, 7, 11)]
    recorded, _ = registered_pods.record(pods)
    found = registered_pods.read(recorded)
    assert all(map(found.has, pods))
    assert not any(found.has(pod(number)) for number in (3, 6, 8, 10, 12))


def test_a_younger_pod_with_such_an_ordinal_is_another_one() -> None:
    recorded, _ = registered_pods.record([pod(3, 10), pod(4, 20)])
    found = registered_pods.read(recorded)
    assert found.has(pod(3, 10))
    assert not found.has(pod(3, 21))


def test_a_pod_of_a_node_has_no_ordinal_and_is_not_recorded() -> None:
    assert registered_pods.record([pod(None)]) == (None, (pod(None),))
    assert not registered_pods.read(RegisteredPods(ordinals="0-9", created_until="2027-01-01T00:00:00Z")).has(pod(None))


def test_without_pods_nothing_is_recorded() -> None:
    assert registered_pods.record(()) == (None, ())
    assert not registered_pods.read(None).has(pod(0))


def test_what_has_no_room_is_left() -> None:
    pods = [pod(number) for number in range(0, 4000, 2)]
    recorded, left = registered_pods.record(pods)
    assert recorded is not None
    assert len(recorded.ordinals) <= LONGEST_ORDINALS
    found = registered_pods.read(recorded)
    assert left
    assert [found.has(one) for one in pods] == [one not in left for one in pods]


@pytest.mark.parametrize("text", ["", "x", "-3", "1-", "1-2-3", "9" * 5000])
def test_what_nobody_has_written_names_no_pod(text: str) -> None:
    found = registered_pods.read(RegisteredPods.model_construct(ordinals=text, created_until="2027-01-01T00:00:00Z"))
    assert not any(found.has(pod(number)) for number in (0, 1, 2, 3, 9))


@pytest.mark.parametrize("until", ["", "soon", "2027-01-01T00:00:00"])
def test_without_a_time_nothing_is_named(until: str) -> None:
    assert not registered_pods.read(RegisteredPods(ordinals="0-9", created_until=until)).has(pod(1))
