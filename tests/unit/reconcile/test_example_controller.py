"""The example of docs/development/add-a-kind.md does what it says, on the current skeleton."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slinky_operator.cluster import spec as cluster
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.nodeset import spec as nodeset
from slinky_operator.reconcile.cached.caches import CacheSpec, merged
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.triggers import connect
from slinky_operator.runtime.queue import WorkQueue
from slinky_operator.settings import Settings
from tests.support.memory_kube import MemoryKube
from tests.unit.reconcile.example_controller import SPEC, TRIGGERS, CensusReconciler

KEY = ("ns", "c")


class Events:
    """Keeps Events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((reason, message))


class Listened:
    """A cache or a client map that only keeps who listens."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def subscribe(self, handler: Any) -> None:
        self.handlers.append(handler)

    def subscribe_contact(self, handler: Any) -> None:
        self.handlers.append(handler)


def census() -> tuple[MemoryKube, Events, CensusReconciler]:
    kube, events = MemoryKube(), Events()
    clusters, nodesets = kube.cache(CLUSTERS), kube.cache(NODESETS, INDEXES_OF_NODESETS)
    return kube, events, CensusReconciler(kube, events, clusters, nodesets)


def a_cluster(**spec: Any) -> Object:
    return {"metadata": {"name": "c", "namespace": "ns"}, "spec": spec}


def a_nodeset(name: str, of: str = "c") -> Object:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterName": of}}


async def test_a_pass_writes_what_differs_and_nothing_the_second_time() -> None:
    kube, _, reconciler = census()
    kube.put(CLUSTERS, a_cluster())
    kube.put(NODESETS, a_nodeset("a"))
    kube.put(NODESETS, a_nodeset("b", of="other"))

    await reconciler.reconcile(KEY)
    await reconciler.reconcile(KEY)

    assert [status["summary"] for status in kube.statuses] == ["1 NodeSet"]


async def test_an_invalid_object_is_reported_and_not_worked_on() -> None:
    kube, _, reconciler = census()
    kube.put(CLUSTERS, a_cluster(partitions="none"))

    result = await reconciler.reconcile(KEY)

    assert result.requeue_after is None
    assert kube.statuses == [{"summary": "spec invalid"}]


async def test_an_object_that_is_gone_needs_nothing() -> None:
    kube, _, reconciler = census()

    assert (await reconciler.reconcile(KEY)).requeue_after is None
    await reconciler.tell(KEY, RuntimeError("of an earlier pass"))
    assert kube.statuses == []


async def test_what_is_kept_of_an_object_goes_with_it_also_if_another_has_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube, _, reconciler = census()
    forgotten: list[str] = []
    monkeypatch.setattr(reconciler, "forget", forgotten.append)

    for uid in ("first", "second"):
        kube.put(CLUSTERS, {**a_cluster(), "metadata": {"name": "c", "namespace": "ns", "uid": uid}})
        await reconciler.reconcile(KEY)
    assert forgotten == ["first"]

    await kube.delete(CLUSTERS, "c", "ns")
    await reconciler.reconcile(KEY)
    await reconciler.reconcile(KEY)
    assert forgotten == ["first", "second"]


async def test_a_failed_pass_is_shown_on_the_object_until_one_passes() -> None:
    kube, events, reconciler = census()
    kube.put(CLUSTERS, a_cluster())
    refused = errors.Forbidden(Target("patch", str(CLUSTERS), "ns", "c"), "no such right", status=403)

    await reconciler.tell(KEY, refused)
    assert [reason for reason, _ in events.told] == ["Forbidden"]
    assert {one["type"]: one["status"] for one in kube.statuses[-1]["conditions"]} == {
        "Ready": "False",
        "Degraded": "True",
    }

    await reconciler.reconcile(KEY)
    assert kube.statuses[-1]["summary"] == "0 NodeSets"


async def test_events_wake_the_cluster_that_a_nodeset_names_and_named() -> None:
    queue: WorkQueue[tuple[str, str]] = WorkQueue()
    caches = {CLUSTERS: Listened(), NODESETS: Listened()}
    connect(TRIGGERS, queue, caches, Listened())

    for handler in caches[NODESETS].handlers:
        handler(a_nodeset("a", of="before"), a_nodeset("a", of="after"))

    async with asyncio.timeout(30):
        woken = {await queue.get(), await queue.get()}
    assert woken == {("ns", "before"), ("ns", "after")}


def test_caches_of_all_controllers_are_one_for_each_kind() -> None:
    settings = Settings(identity="test", lease_namespace="test")
    wanted = [cache for spec in (cluster.SPEC, nodeset.SPEC, SPEC) for cache in spec.caches(settings)]
    found = {cache.resource: cache for cache in merged(wanted)}

    assert found.keys() == {cache.resource for cache in wanted}
    for cache in wanted:
        assert cache.indexers.items() <= found[cache.resource].indexers.items()


@pytest.mark.parametrize(
    "other",
    [
        CacheSpec(NODESETS, INDEXES_OF_NODESETS, label_selector="some"),
        CacheSpec(NODESETS, {"cluster": lambda _: []}, mirrored=True),
    ],
    ids=["other objects", "other index"],
)
def test_two_controllers_cannot_want_different_caches_of_one_kind(other: CacheSpec) -> None:
    with pytest.raises(ValueError, match="nodesets"):
        merged([CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True), other])


def test_a_key_is_described_for_log_lines() -> None:
    assert SPEC.describe(KEY) == ("Cluster", "ns", "c")
