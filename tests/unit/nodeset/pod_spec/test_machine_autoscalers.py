"""Annotations for what removes Kubernetes Nodes: they say what the PodDisruptionBudget says."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.nodeset.pod_spec.machine_autoscalers import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    of_new_pod,
    told,
)
from tests.unit.nodeset.pod_spec.test_builder import build, nodeset


def test_a_pod_is_kept_from_its_beginning() -> None:
    found = build()["metadata"]["annotations"]
    assert (found[SAFE_TO_EVICT], found[DO_NOT_DISRUPT]) == ("false", "true")


def test_only_a_pod_outside_the_budget_may_go() -> None:
    assert told(nodeset(), protected=True) == {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}
    assert told(nodeset(), protected=False) == {SAFE_TO_EVICT: "true", DO_NOT_DISRUPT: None}


@pytest.mark.parametrize("protected", [True, False])
def test_without_protection_nothing_is_said(protected: bool) -> None:
    bare = nodeset(workloadDisruptionProtection=False)
    assert told(bare, protected=protected) == {SAFE_TO_EVICT: None, DO_NOT_DISRUPT: None}
    assert of_new_pod(bare) == {}


@pytest.mark.parametrize("metadata", ["text", {"annotations": 7}, {"annotations": None}, None])
def test_a_template_of_any_shape_keeps_no_pod_from_its_drain(metadata: object) -> None:
    owner = nodeset()
    owner = owner.model_copy(update={"spec": owner.spec.model_copy(update={"template": {"metadata": metadata}})})
    assert told(owner, protected=True) == {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}


@pytest.mark.parametrize("protected", [True, False])
@pytest.mark.parametrize(("key", "other"), [(SAFE_TO_EVICT, DO_NOT_DISRUPT), (DO_NOT_DISRUPT, SAFE_TO_EVICT)])
def test_what_a_template_says_stays(key: str, other: str, protected: bool) -> None:
    mine: dict[str, Any] = {"template": {"metadata": {"annotations": {key: "mine"}}}}
    assert told(nodeset(**mine), protected=protected).keys() == {other}
    assert build(mine)["metadata"]["annotations"][key] == "mine"
