"""What is written to a Node: only what the operator has written is changed or removed, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.node_labels.model import Found, Record, WantedLabels, found_on
from slinky_operator.node_labels.plan import plan
from tests.support.memory_kube import merge

PREFIX = labels.KUBERNETES_NODE_PREFIX
NAMES = st.sampled_from(["gpu", "rack", "workload-manager"])
VALUES = st.sampled_from(["", "a", "b"])
COUNTS = st.sampled_from([0, 1, 1000])
WANTED = st.builds(WantedLabels, st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, COUNTS))


def node(own: dict[str, str], capacity: dict[str, str], **annotations: str) -> Object:
    return {
        "metadata": {"name": "n", "labels": {"zone": "here", **own}, "annotations": {"a": "b", **annotations}},
        "status": {"capacity": {"cpu": "8", **capacity}},
    }


def passed(obj: Object, wanted: WantedLabels, *, keeps: bool = False) -> Object:
    patch = plan(wanted, found_on(obj), keeps=keeps).patch()
    return obj if patch is None else merge(obj, patch)


@given(
    own=st.dictionaries(NAMES.map(PREFIX.__add__), VALUES),
    capacity=st.dictionaries(NAMES.map(PREFIX.__add__), st.sampled_from(["0", "1", "1k"])),
    steps=st.lists(st.tuples(WANTED, st.booleans()), max_size=5),
)
def test_what_others_have_written_is_never_touched(
    own: dict[str, str], capacity: dict[str, str], steps: list[tuple[WantedLabels, bool]]
) -> None:
    obj = before = node(own, capacity)
    for wanted, keeps in steps:
        obj = passed(obj, wanted, keeps=keeps)
        assert own.items() <= obj["metadata"]["labels"].items()
        assert capacity.items() <= obj["status"]["capacity"].items()
        found = found_on(obj)
        assert wanted.labels.keys() <= found.labels.keys()
        assert wanted.resources.keys() <= found.resources.keys()
        assert plan(wanted, found, keeps=keeps).patch() is None
    assert passed(obj, WantedLabels()) == before


def test_what_is_written_is_recorded_in_the_same_patch() -> None:
    planned = plan(WantedLabels({"rack": "r1"}, {"gpu": 4}), Found(), keeps=False)
    assert planned.patch() == {
        "metadata": {
            "labels": {f"{PREFIX}rack": "r1"},
            "annotations": {labels.ANNOTATION_NODE_RECORD: '{"labels": ["rack"], "resources": ["gpu"]}'},
        },
        "status": {"capacity": {f"{PREFIX}gpu": "4"}},
    }


def test_a_value_of_somebody_else_is_named_unless_it_is_the_wanted_one() -> None:
    found = Found({"rack": "r2", "zone": "z"}, {"gpu": "1k"})
    planned = plan(WantedLabels({"rack": "r1", "zone": "z"}, {"gpu": 4}), found, keeps=False)
    assert planned.patch() is None
    assert planned.foreign == (f"label {PREFIX}rack", f"resource {PREFIX}gpu")
    assert plan(WantedLabels({}, {"gpu": 1000}), found, keeps=False).foreign == ()


def test_a_resource_that_a_kubelet_has_reset_is_written_again() -> None:
    found = Found({}, {"gpu": "0"}, Record(resources=frozenset({"gpu"})))
    assert plan(WantedLabels({}, {"gpu": 4}), found, keeps=False).patch() == {
        "status": {"capacity": {f"{PREFIX}gpu": "4"}}
    }


def test_a_source_that_cannot_be_read_removes_nothing() -> None:
    found = Found({"rack": "r1"}, {"gpu": "4"}, Record(frozenset({"rack"}), frozenset({"gpu"})))
    assert plan(WantedLabels(), found, keeps=True).patch() is None
    assert plan(WantedLabels(), found, keeps=False).patch() == {
        "metadata": {"labels": {f"{PREFIX}rack": None}, "annotations": {labels.ANNOTATION_NODE_RECORD: None}},
        "status": {"capacity": {f"{PREFIX}gpu": None}},
    }


@pytest.mark.parametrize("text", ["", "x", "[]", "3", '{"labels": 3}', '{"labels": [1, {}, "a/b"]}', "[" * 100_000])
def test_a_record_that_somebody_has_changed_claims_nothing(text: str) -> None:
    annotation: dict[str, Any] = {labels.ANNOTATION_NODE_RECORD: text}
    found = found_on(node({f"{PREFIX}rack": "r1"}, {}, **annotation))
    assert found.record == Record()
    assert plan(WantedLabels(), found, keeps=False).patch() is None
