"""Triggers that controllers share: which events bring a pass, and over what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.triggers import Triggers, cluster_of, is_same, own_key, written_by_users

BEFORE: Object = {"metadata": {"namespace": "team", "name": "a", "uid": "u", "generation": 1, "labels": {"a": "b"}}}


def changed(**fields: Any) -> Object:
    return {**BEFORE, "metadata": {**BEFORE["metadata"], **fields}}


@pytest.mark.parametrize(("old", "new"), [(None, BEFORE), (BEFORE, None), (BEFORE, changed(generation=2))])
def test_each_event_of_a_kind_is_about_its_object(old: Object | None, new: Object | None) -> None:
    assert list(own_key(old, new)) == [("team", "a")]


def test_no_event_is_about_nothing() -> None:
    assert list(own_key(None, None)) == []


@pytest.mark.parametrize(
    ("new", "same"),
    [
        ({**BEFORE, "status": {"summary": "new"}}, True),
        (changed(labels={}), True),
        (changed(uid="another"), False),
        (changed(generation=2), False),
        (changed(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (None, False),
    ],
)
def test_a_status_is_nothing_that_users_write(new: Object | None, same: bool) -> None:
    assert is_same(BEFORE, new, written_by_users) is same
    assert is_same(new, BEFORE, written_by_users) is same


def test_more_fields_may_count() -> None:
    assert not is_same(BEFORE, changed(labels={}), lambda obj: written_by_users(obj, "labels"))


def test_what_slurm_shows_is_about_its_cluster() -> None:
    clients = {"u": SimpleNamespace(namespace="team", name="slurm")}
    assert list(cluster_of(clients, "u")) == [("team", "slurm")]
    assert list(cluster_of(clients, "gone")) == []


def test_a_controller_that_reads_nothing_of_slurm_names_none_of_its_events() -> None:
    triggers = Triggers(objects={})
    node: Any = None
    assert list(triggers.contact("u")) == list(triggers.node("u", node)) == []
