"""All namespaces together have a bound; the largest gives way, and never one within its share."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.kube.cache import stubs
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.store import Store, by_label, key_of
from slinky_operator.kube.cache.total import FOR_STUBS, Total
from slinky_operator.kube.objects import Object
from tests.unit.kube.cache.test_budget import KIB, thing


def shelves(limit: int) -> tuple[Total, Store, Store]:
    """A total with what users write, of which stubs are kept, and what the operator owns."""
    total = Total(limit)
    users = Store({"app": by_label("app")}, budget=Budget(10**9, total), stub=stubs.stub)
    return total, users, Store({"app": by_label("app")}, budget=Budget(10**9, total))


def test_the_largest_gives_way_to_one_within_its_share_with_its_largest_objects() -> None:
    total, _, store = shelves(100 * KIB)
    for number in range(3):
        store.put(thing(f"small-{number}", number + 1, 4 * KIB))
    store.put(thing("large", 9, 50 * KIB))
    store.put(thing("larger", 10, 20 * KIB))
    assert store.missing("a") == 0
    # Half of it is b's.
    store.put(thing("one", 11, 40 * KIB, namespace="b"))
    assert (store.missing("a"), store.missing("b")) == (1, 0)
    assert store.get("a", "large") is None
    assert len(store.find("app", "x")) == 5
    assert total.taken <= total.limit
    # Handlers were not told, but the object is not forgotten: it comes back once there is room.
    assert store.has_room_for_more() == set()
    store.remove(thing("one", 12, namespace="b"))
    assert store.has_room_for_more() == {"a"}
    assert store.put(thing("large", 9, 50 * KIB)) is not None
    assert store.missing("a") == 0


def test_one_that_has_its_share_gets_no_more_while_all_is_taken() -> None:
    _, _, store = shelves(100 * KIB)
    store.put(thing("one", 1, 45 * KIB))
    store.put(thing("two", 2, 30 * KIB, namespace="b"))
    store.put(thing("three", 3, 40 * KIB, namespace="a"))
    assert (store.missing("a"), store.missing("b")) == (1, 0)
    store.put(thing("four", 4, 10 * KIB, namespace="b"))
    assert (store.missing("a"), store.missing("b")) == (1, 0)


def test_nothing_gives_way_while_a_pass_reads_it_and_no_further_pass_begins() -> None:
    total, _, store = shelves(100 * KIB)
    store.put(thing("large", 1, 90 * KIB))
    with total.used(["a"]):
        store.put(thing("one", 2, 40 * KIB, namespace="b"))
        assert store.missing("a") == 0
        assert total.must_give_way("a")
        # What is known may change, what is new must wait.
        changed = thing("large", 3, 90 * KIB)
        assert store.put(changed) is not None
        assert store.get("a", "large") is changed
        store.put(thing("new", 4))
        assert store.get("a", "new") is None
        with total.used(["a", "b"]):
            assert not total.must_give_way("b")
        assert store.get("a", "large") is changed
    assert store.get("a", "large") is None
    assert not total.must_give_way("a")
    assert total.taken <= total.limit


def test_of_what_users_write_a_stub_stays() -> None:
    _, users, store = shelves(100 * KIB)
    users.put(thing("large", 1, 90 * KIB))
    store.put(thing("one", 2, 40 * KIB, namespace="b"))
    kept = users.get("a", "large")
    assert kept is not None
    assert stubs.is_stub(kept)
    assert users.missing("a") == 0
    assert users.find("app", "x") == [kept]


def put(total: Total, store: Store, obj: Object, size: int) -> None:
    """Store an object; it is kept where its namespace has its share."""
    namespace, name = key_of(obj)
    within = total._by_namespace[namespace] + size + 3 * KIB <= total.share(namespace)
    store.put(obj)
    if within and not total.must_give_way(namespace):
        assert store.get(namespace, name) is obj


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.integers(0, 5), st.integers(0, 60), st.booleans(), st.sampled_from("+-+<>")
        ),
        max_size=60,
    )
)
def test_the_bound_holds_whatever_comes_and_whoever_is_within_its_share_loses_nothing(
    steps: list[tuple[str, int, int, bool, str]],
) -> None:
    total, *stores = shelves(100 * KIB)
    held: list[AbstractContextManager[None]] = []
    for version, (namespace, number, size, first, what) in enumerate(steps, 1):
        obj = thing(f"o-{number}", version, size * KIB, namespace=namespace)
        if what == "<":
            held.append(total.used([namespace]))
            held[-1].__enter__()
        elif what == ">" and held:
            held.pop().__exit__(None, None, None)
        elif what == "-":
            stores[first].remove(obj)
        else:
            put(total, stores[first], obj, size * KIB)
        assert total.taken == sum(total._by_namespace.values()) == sum(sum(one._sizes.values()) for one in stores)
        assert held or total.taken <= total.limit * FOR_STUBS
    for one in held:
        one.__exit__(None, None, None)
    assert total.taken <= total.limit * FOR_STUBS
    for namespace in "abcd":
        for store in stores:
            store.drop(namespace)
    assert total.taken == 0
