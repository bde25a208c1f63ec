"""Fragments of pod templates have the shape of the API server's types, or are rejected by field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from slinky_operator.slurm.pod_templates.shapes import misfits
from slinky_operator.slurm.pod_templates.templates import POD_TEMPLATE, RefusedFragment, merge
from tests.support.from_schema import shaped


@pytest.mark.parametrize(
    ("fragment", "field", "reason"),
    [
        ({"spec": []}, "spec", "must be a map of fields"),
        ({"spec": {"containers": "x"}}, "spec.containers", "must be a list"),
        ({"spec": {"containers": ["x"]}}, "spec.containers[0]", "must be a map of fields"),
        ({"spec": {"containers": [None]}}, "spec.containers[0]", "must not be null"),
        ({"spec": {"containers": [{"name": 1}]}}, "spec.containers[0].name", "must be a text"),
        ({"spec": {"containers": [{"args": [1]}]}}, "spec.containers[0].args[0]", "must be a text"),
        ({"spec": {"nodeSelector": {"a": True}}}, "spec.nodeSelector[a]", "must be a text"),
        ({"spec": {"hostNetwork": "true"}}, "spec.hostNetwork", "must be true or false"),
        ({"spec": {"priority": True}}, "spec.priority", "must be a whole number"),
        ({"metadata": {"labels": ["a"]}}, "metadata.labels", "must be a map"),
        ({"spec": {"$patch": []}}, "spec.$patch", "must be replace or delete"),
        ({"spec": {"$retainKeys": "a"}}, "spec.$retainKeys", "must be a list"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(fragment: dict[str, Any], field: str, reason: str) -> None:
    assert list(misfits(fragment, POD_TEMPLATE)) == [(field, reason)]
    with pytest.raises(RefusedFragment) as caught:
        merge({}, fragment)
    assert (caught.value.field, caught.value.reason) == (field, reason)


@pytest.mark.parametrize(
    "fragment",
    [
        {},
        {"spec": None},
        {"spec": {"fieldOfTomorrow": [1, {"a": "b"}]}},
        {"spec": {"containers": [{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}},
        {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": "http"}}}, {"$patch": "delete", "name": "a"}]}},
    ],
)
def test_what_the_api_server_takes_is_taken(fragment: dict[str, Any]) -> None:
    assert list(misfits(fragment, POD_TEMPLATE)) == []


@given(shaped(POD_TEMPLATE))
def test_what_is_made_from_the_table_fits_it(fragment: dict[str, Any]) -> None:
    assert list(misfits(fragment, POD_TEMPLATE)) == []
