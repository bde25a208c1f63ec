"""Nothing is counted twice: own writes are waited for, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def pod(name: str, uid: str, version: int = 1, *, going: bool = False) -> Object:
    metadata: Object = {"name": name, "namespace": "a", "uid": uid, "resourceVersion": str(version)}
    if going:
        metadata["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    return {"metadata": metadata}


def made() -> tuple[Expectations, Store, Clock]:
    clock, store = Clock(), Store()
    return Expectations(store, clock=clock, timeout=60), store, clock


def test_a_creation_is_waited_for_until_the_cache_shows_it() -> None:
    expectations, _, _ = made()
    expectations.expect_creations("owner", "a", ["p0", "p1"])
    expectations.created(pod("p0", "u0"))
    expectations.created(pod("p1", "u1"))
    expectations.observe(None, pod("p0", "u0"))
    assert not expectations.satisfied("owner")
    assert expectations.satisfied("other")
    expectations.observe(None, pod("p1", "u1"))
    assert expectations.satisfied("owner")


def test_an_event_that_overtakes_the_reply_counts() -> None:
    expectations, _, _ = made()
    expectations.expect_creations("owner", "a", ["p0"])
    expectations.observe(None, pod("p0", "u0"))
    assert not expectations.satisfied("owner")
    expectations.created(pod("p0", "u0"))
    assert expectations.satisfied("owner")


def test_last_events_of_a_predecessor_do_not_count() -> None:
    expectations, _, _ = made()
    expectations.expect_creations("owner", "a", ["p0"])
    expectations.observe(pod("p0", "old"), pod("p0", "old", 2))
    expectations.created(pod("p0", "new"))
    expectations.observe(pod("p0", "old", 2), None)
    assert not expectations.satisfied("owner")
    expectations.observe(None, pod("p0", "new"))
    assert expectations.satisfied("owner")


def test_what_was_not_created_is_not_waited_for() -> None:
    expectations, _, _ = made()
    expectations.expect_creations("owner", "a", ["p0"])
    expectations.creation_failed("a", "p0")
    assert expectations.satisfied("owner")


def test_a_deletion_is_seen_by_its_timestamp_its_end_or_its_successor() -> None:
    expectations, _, _ = made()
    expectations.expect_deletions("owner", ["u0", "u1", "u2", "u3"])
    expectations.observe(pod("p0", "u0"), pod("p0", "u0", 2))
    assert not expectations.satisfied("owner")
    expectations.observe(pod("p0", "u0", 2), pod("p0", "u0", 3, going=True))
    expectations.observe(pod("p1", "u1"), None)
    expectations.observe(pod("p2", "u2"), pod("p2", "successor", 9))
    assert not expectations.satisfied("owner")
    expectations.deletion_failed("u3")
    assert expectations.satisfied("owner")


def test_an_update_is_waited_for_by_version_unless_the_cache_was_faster() -> None:
    expectations, store, _ = made()
    store.put(pod("p0", "u0", 5))
    expectations.expect_version("owner", pod("p0", "u0", 7))
    expectations.observe(pod("p0", "u0", 5), pod("p0", "u0", 6))
    assert not expectations.satisfied("owner")
    expectations.observe(pod("p0", "u0", 6), pod("p0", "u0", 8))
    assert expectations.satisfied("owner")
    store.put(pod("p0", "u0", 9))
    expectations.expect_version("owner", pod("p0", "u0", 9))
    assert expectations.satisfied("owner")


def test_an_update_that_no_handler_has_seen_is_found_in_the_cache() -> None:
    expectations, store, clock = made()
    store.put(pod("p0", "u0", 5))
    expectations.expect_version("owner", pod("p0", "u0", 7))
    store.put(pod("p0", "u0", 6))
    assert not expectations.satisfied("owner")
    store.put(pod("p0", "u0", 7))
    assert expectations.satisfied("owner")
    expectations.expect_version("owner", pod("p0", "u0", 9))
    clock.now += 60
    assert expectations.satisfied("owner")
    assert not expectations._owner_of


def test_no_version_is_waited_for_of_one_that_went_while_the_reply_was_on_its_way() -> None:
    expectations, store, _ = made()
    expectations.expect_version("owner", pod("p0", "u0", 7))
    assert expectations.satisfied("owner")
    store.put(pod("p0", "u1", 8))
    expectations.expect_version("owner", pod("p0", "u0", 7))
    assert expectations.satisfied("owner")


def test_after_the_timeout_the_cache_is_believed() -> None:
    expectations, _, clock = made()
    expectations.expect_creations("owner", "a", ["p0"])
    expectations.expect_deletions("owner", ["u1"])
    clock.now += 59
    assert not expectations.satisfied("owner")
    assert expectations.expires_in("owner") == 1
    clock.now += 1
    assert expectations.satisfied("owner")
    assert expectations.expires_in("owner") is None


def test_forgetting_an_owner_leaves_nothing_behind() -> None:
    expectations, _, _ = made()
    expectations.expect_creations("owner", "a", ["p0"])
    expectations.expect_deletions("owner", ["u1"])
    expectations.forget("owner")
    assert expectations.satisfied("owner")
    expectations.created(pod("p0", "u0"))
    expectations.observe(pod("p1", "u1"), None)
    assert not expectations._creations
    assert not expectations._owner_of


@given(order=st.permutations(["created0", "seen0", "created1", "seen1", "gone2", "seen3"]))
def test_in_any_order_everything_is_waited_for_exactly_once(order: list[str]) -> None:
    expectations, store, _ = made()
    store.put(pod("p3", "u3", 4))
    expectations.expect_creations("owner", "a", ["p0", "p1"])
    expectations.expect_deletions("owner", ["u2"])
    expectations.expect_version("owner", pod("p3", "u3", 5))
    for position, step in enumerate(order):
        assert not expectations.satisfied("owner"), order[:position]
        kind, number = step[:-1], step[-1]
        name, uid = f"p{number}", f"u{number}"
        if kind == "created":
            expectations.created(pod(name, uid))
        elif kind == "seen":
            expectations.observe(None, pod(name, uid, 5))
        else:
            expectations.observe(pod(name, uid), None)
    assert expectations.satisfied("owner")
