"""Objects never go back in time, and indexes follow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.kube.cache.store import OWNER, Store, by_label, by_owner, key_of
from slinky_operator.kube.objects import Object


def thing(
    name: str, version: int, *, namespace: str = "a", app: str | None = None, owners: tuple[str, ...] = ()
) -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "resourceVersion": str(version),
            "uid": f"{namespace}/{name}",
            "labels": {} if app is None else {"app": app},
            "ownerReferences": [{"uid": uid} for uid in owners],
        }
    }


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    store = Store()
    new = thing("x", 5)
    assert store.put(new) == (None, new)
    assert store.put(thing("x", 4)) is None
    assert store.put(thing("x", 5)) is None
    assert store.get("a", "x") is new


def test_the_dead_do_not_come_back_from_an_older_list() -> None:
    store = Store()
    store.put(thing("x", 5))
    gone = thing("x", 9)
    assert store.remove(gone) == (gone, None)
    assert store.replace([thing("x", 5)], 7) == []
    assert store.put(thing("x", 8)) is None
    reborn = thing("x", 10)
    assert store.put(reborn) == (None, reborn)


def test_a_late_deletion_of_the_predecessor_spares_the_successor() -> None:
    store = Store()
    store.put(thing("x", 9))
    assert store.remove(thing("x", 5)) is None
    assert ("a", "x") in store


def test_a_list_drops_ghosts_of_its_namespace_only_and_keeps_what_is_newer_than_the_list() -> None:
    store = Store()
    ghost, newer, other = thing("ghost", 5), thing("newer", 20), thing("other", 5, namespace="b")
    for obj in (ghost, newer, other):
        store.put(obj)
    assert store.replace([], 10, "a") == [(ghost, None)]
    assert store.items() == [newer, other]
    assert store.items("b") == [other]


def test_after_etcd_was_restored_from_a_backup_the_list_is_believed() -> None:
    store = Store({"app": by_label("app")})
    ghost, changed, other = thing("ghost", 90), thing("changed", 95, app="new"), thing("other", 99, namespace="b")
    for obj in (ghost, changed, other):
        store.put(obj)
    store.remove(thing("back", 97))
    known = store.newest("a")
    assert known == 97
    as_backed_up = [thing("changed", 40, app="old"), thing("back", 30)]
    assert store.replace(as_backed_up, 50, "a", known=known) == [
        (changed, as_backed_up[0]),
        (None, as_backed_up[1]),
        (ghost, None),
    ]
    assert store.find("app", "old") == [as_backed_up[0]]
    assert store.items("b") == [other]
    # Versions count on from there.
    newer = thing("changed", 51, app="old")
    assert store.put(newer) == (as_backed_up[0], newer)


def test_what_comes_while_a_list_is_under_way_is_no_restored_backup() -> None:
    store = Store()
    store.put(thing("x", 5))
    known = store.newest()
    store.put(thing("y", 20))
    assert store.replace([thing("x", 5)], 10, known=known) == []
    assert {obj["metadata"]["name"] for obj in store} == {"x", "y"}


def test_indexes_follow_labels_and_owners() -> None:
    store = Store({"app": by_label("app"), OWNER: by_owner})
    store.put(thing("x", 1, app="red", owners=("u1", "u2")))
    second = thing("x", 2, app="blue", owners=("u2",))
    store.put(second)
    assert store.find("app", "red") == store.find(OWNER, "u1") == []
    assert store.find("app", "blue") == store.find(OWNER, "u2") == [second]
    assert store.values("app") == ["blue"]
    store.remove(thing("x", 3))
    assert store.values("app") == store.values(OWNER) == []


def test_whether_an_index_lists_others() -> None:
    store = Store({"app": by_label("app")})
    store.put(thing("x", 1, app="red"))
    x = key_of(thing("x", 1))
    assert not store.lists_others("app", "red", x)
    assert not store.lists_others("app", "blue", x)
    assert store.lists_others("app", "red", None)
    assert store.lists_others("app", "red", ("", "y"))
    store.put(thing("y", 2, app="red"))
    assert store.lists_others("app", "red", x)


EVENT = st.tuples(
    st.sampled_from(["put", "remove", "list"]), st.sampled_from("xyz"), st.sampled_from(["red", "blue", None])
)


@given(history=st.lists(EVENT, max_size=30), data=st.data())
def test_any_order_of_arrival_ends_in_the_last_state(
    history: list[tuple[str, str, str | None]], data: st.DataObject
) -> None:
    """Lists arrive late, watch events come in order: the two sources of a mirror."""
    store = Store({"app": by_label("app")})
    truth: dict[str, Object] = {}
    late: list[tuple[int, list[Object]]] = []
    for version, (kind, name, app) in enumerate(history, start=1):
        if kind == "put":
            truth[name] = thing(name, version, app=app)
            store.put(truth[name])
        elif kind == "remove" and truth.pop(name, None) is not None:
            store.remove(thing(name, version, app=app))
        elif kind == "list":
            late.append((version, list(truth.values())))
        arrives: bool = data.draw(st.booleans())
        if late and arrives:
            at, items = late.pop(0)
            store.replace(items, at)
    for at, items in late:
        store.replace(items, at)
    assert {obj["metadata"]["name"]: obj for obj in store} == truth
    for app in ("red", "blue"):
        expected = {n for n, obj in truth.items() if obj["metadata"]["labels"].get("app") == app}
        assert {obj["metadata"]["name"] for obj in store.find("app", app)} == expected


def test_the_layout_changes_with_objects_labels_and_indexes_and_with_nothing_else() -> None:
    store = Store({"app": by_label("app"), OWNER: by_owner})
    known = [store.layout]

    def has_changed() -> bool:
        known.append(store.layout)
        return known[-1] != known[-2]

    store.put(thing("x", 1))
    assert has_changed()
    store.put(thing("x", 2))
    assert not has_changed()
    store.put(thing("x", 1, app="older"))
    assert not has_changed()
    store.put(thing("x", 3, app="one"))
    assert has_changed()
    store.put(thing("x", 4, app="one", owners=("u",)))
    assert has_changed()
    store.remove(thing("x", 5))
    assert has_changed()
    store.put(thing("y", 6))
    assert has_changed()
    store.replace([], 7)
    assert has_changed()


def test_keys_of_an_index_are_those_of_its_objects() -> None:
    store = Store({"app": by_label("app")})
    for name, app in (("x", "web"), ("y", "web"), ("z", "db")):
        store.put(thing(name, 5, app=app))
    found = store.find_keys("app", "web")
    assert found == [key_of(one) for one in store.find("app", "web")] == [("a", "x"), ("a", "y")]
    store.remove(thing("x", 6, app="web"))
    # What was found before stays as it was.
    assert found == [("a", "x"), ("a", "y")]
    assert store.find_keys("app", "web") == [("a", "y")]
    assert store.find_keys("app", "none") == []
