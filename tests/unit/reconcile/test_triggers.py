"""Triggers that controllers share: which events bring a pass, and over what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.triggers import (
    AT_ONCE,
    Triggers,
    cluster_of,
    connect,
    is_same,
    own_key,
    written_by_users,
)
from slinky_operator.runtime.queue import WorkQueue

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


@pytest.mark.parametrize("of_slurm", [True, False])
async def test_an_event_about_many_objects_leaves_the_loop_to_others(*, of_slurm: bool) -> None:
    many = [("team", f"job-{number}") for number in range(2 * AT_ONCE + 1)]

    def source(*_: object) -> Iterator[tuple[str, str]]:
        yield from many

    told: dict[str, Callable[..., None]] = {}
    cache = SimpleNamespace(add_handler=lambda handler: told.update(cache=handler))
    slurm = SimpleNamespace(subscribe=lambda _: None, subscribe_contact=lambda handler: told.update(contact=handler))
    queue: WorkQueue[tuple[str, str]] = WorkQueue()
    triggers: Any = Triggers({} if of_slurm else {SLURMJOBS: source}, contact=source)
    connect(triggers, queue, {SLURMJOBS: cache}, slurm)
    told["contact" if of_slurm else "cache"]("uid", None)
    # What the event was about has changed since.
    known, seen = len(many), [len(queue)]
    many.clear()
    while len(queue) < known:
        await asyncio.sleep(0)
        seen.append(len(queue))
    assert seen == [AT_ONCE, 2 * AT_ONCE, known]
