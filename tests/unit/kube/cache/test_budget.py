"""What a namespace puts into the caches has a bound, and what is left out is never taken for absent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.cache import stubs
from slinky_operator.kube.cache.budget import FOR_STUBS, Budget, footprint
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Store, by_label
from slinky_operator.kube.objects import Object

KIB = 2**10

OURS = "cluster.slinky.slurm.net/of-us"


def thing(name: str, version: int, size: int = 0, *, namespace: str = "a", **more: Any) -> Object:
    about = {"name": name, "namespace": namespace, "resourceVersion": str(version), "labels": {"app": "x"}}
    return {"metadata": about, "data": {"text": "x" * size}, **more}


def test_a_text_weighs_what_it_takes() -> None:
    assert footprint({"a": "x" * 1000}) < 1500
    assert footprint({"a": "x" * 1000 + "\N{GRINNING FACE}"}) > 4000
    assert footprint({"x" * 1000: ""}) > 1000
    assert footprint([["y" * 1000], ["y" * 1000]]) > 2000


def test_what_does_not_fit_is_missing_until_there_is_room() -> None:
    budget = Budget(10 * KIB)
    store = Store({"app": by_label("app")}, budget=budget)
    small, large = thing("small", 1, KIB), thing("large", 2, 20 * KIB)
    assert store.put(small) == (None, small)
    # Handlers hear of it all the same.
    assert store.put(large) == (None, large)
    assert store.items() == store.find("app", "x") == [small]
    assert (store.missing("a"), store.missing("b")) == (1, 0)
    assert [namespace for namespace, _ in budget.over()] == ["a"]
    # Neither an older nor the same one changes that.
    assert store.put(thing("large", 1)) is None
    assert store.put(large) is None
    assert store.newest() == 2
    assert store.has_room_for_more() == set()
    shorter = thing("large", 3, 2 * KIB)
    assert store.put(shorter) == (None, shorter)
    assert store.missing("a") == 0
    assert list(budget.over()) == []


def test_another_namespace_has_its_own_budget_and_cluster_scoped_objects_have_none() -> None:
    store = Store(budget=Budget(10 * KIB))
    for namespace in ("a", "b", ""):
        store.put(thing("one", 1, 8 * KIB, namespace=namespace))
        store.put(thing("two", 2, 8 * KIB, namespace=namespace))
    assert [store.missing(namespace) for namespace in ("a", "b", "")] == [1, 1, 0]


def test_the_same_version_fits_once_another_object_has_gone() -> None:
    store = Store(budget=Budget(10 * KIB))
    first, second = thing("first", 1, 8 * KIB), thing("second", 2, 8 * KIB)
    store.replace([first, second], 2)
    assert store.missing("a") == 1
    store.remove(first)
    assert store.has_room_for_more() == {"a"}
    assert store.replace([second], 3) == [(None, second)]
    assert (store.missing("a"), store.items()) == (0, [second])


def test_one_that_grows_out_of_its_budget_is_missing_and_its_deletion_is_told() -> None:
    store = Store({"app": by_label("app")}, budget=Budget(10 * KIB))
    before, after = thing("x", 1), thing("x", 2, 20 * KIB)
    store.put(before)
    assert store.put(after) == (before, after)
    assert store.get("a", "x") is None
    assert store.find("app", "x") == []
    gone = thing("x", 3)
    assert store.remove(gone) == (gone, None)
    assert store.missing("a") == 0
    assert store.put(thing("x", 2)) is None


def test_a_list_forgets_what_was_left_out_and_is_gone() -> None:
    budget = Budget(10 * KIB)
    store = Store(budget=budget)
    store.put(thing("x", 1, 20 * KIB))
    store.replace([], 5)
    assert store.missing("a") == 0
    assert dict(budget.accounts) == {}


def test_of_what_users_write_stubs_are_kept_that_cannot_be_parsed() -> None:
    budget = Budget(16 * KIB)
    store = Store(budget=budget, stub=stubs.stub)
    spec = {"clusterName": "slurm", "template": {"spec": {"containers": [{"name": "x" * 50 * KIB}]}}}
    status = {"scalingMode": "StatefulSet", "conditions": [{"type": "Ready", "status": "True"}], "long": "x" * 50 * KIB}
    body = thing("w", 1, namespace="a", spec=spec, status=status, kind="NodeSet", apiVersion="v1")
    body["metadata"] |= {"uid": "u", "generation": 3, "finalizers": ["f"]}
    long = {f"nodeset.slinky.slurm.net/{number}": "x" * 300 for number in range(99)}
    body["metadata"]["annotations"] = {"long": "x" * 50 * KIB, "slinky.example.com/a": "b", **long, OURS: "here"}
    store.put(body)
    kept = store.get("a", "w")
    assert kept is not None
    assert stubs.is_stub(kept)
    assert stubs.may_be_told(kept)
    assert footprint(kept) < 8 * KIB
    # Who has it for a Cluster finds it, and its finalizers hold.
    assert kept["spec"] == {"clusterName": "slurm"}
    assert (kept["metadata"]["generation"], kept["metadata"]["finalizers"]) == (3, ["f"])
    assert kept["metadata"]["annotations"] == {OURS: "here"}
    assert kept["status"] == {key: status[key] for key in ("scalingMode", "conditions")}
    with pytest.raises(InvalidObjectError, match="over their budget"):
        ParseCache(NodeSet).read(kept)
    assert store.missing("a") == 0


def test_conditions_that_are_too_long_to_be_kept_are_not_written_over() -> None:
    conditions = [{"type": f"C{number}", "status": "True", "message": "x" * KIB} for number in range(100)]
    kept = stubs.stub(thing("w", 1, spec={}, status={"conditions": conditions}))
    assert "conditions" not in kept["status"]
    assert not stubs.may_be_told(kept)


def test_stubs_have_a_bound_too() -> None:
    budget = Budget(16 * KIB)
    store = Store(budget=budget, stub=stubs.stub)
    for number in range(200):
        store.put(thing(f"n-{number}", number + 1, 4 * KIB))
    assert store.missing("a") > 100
    assert budget.account("a").taken <= FOR_STUBS * 16 * KIB


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "remove", "list"]),
            st.sampled_from("abc"),
            st.sampled_from([0, 3, 9, 30]),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_the_account_is_what_is_kept(steps: list[tuple[str, str, int, bool]]) -> None:
    """Whatever happens in whatever order, the sums are those of the objects, and every object is kept or counted."""
    for stub in (None, stubs.stub):
        budget = Budget(12 * KIB)
        store = Store(budget=budget, stub=stub)
        there: dict[str, Object] = {}
        for version, (step, name, size, late) in enumerate(steps, start=1):
            if step == "put":
                there[name] = thing(name, version, size * KIB)
                store.put(json.loads(json.dumps(there[name])))
                if late:
                    store.put(thing(name, version - 1))
            elif step == "remove":
                there.pop(name, None)
                store.remove(thing(name, version))
            else:
                store.replace(list(there.values()), version)
            kept = store.items()
            account = budget.account("a")
            assert account.taken == sum(map(footprint, kept))
            assert account.taken <= FOR_STUBS * budget.limit
            assert len(there) == len(kept) + store.missing("a")
            assert account.objects == store.missing("a") + sum(map(stubs.is_stub, kept))
            assert {one["metadata"]["name"] for one in kept} <= there.keys()
