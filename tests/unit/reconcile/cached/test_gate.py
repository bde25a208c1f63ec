"""No pass while something that its rules read is not in the caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from slinky_operator.kube.cache.budget import MIB, OverBudgetError
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, CONFIGMAPS, NODESETS, PODS, SLURMJOBS, Resource
from slinky_operator.reconcile.cached.caches import Caches, CacheSpec, merged
from slinky_operator.reconcile.cached.gate import Gate
from slinky_operator.reconcile.cached.indexes import OWNERS
from slinky_operator.reconcile.failures import explained
from slinky_operator.reconcile.reconciler import Postponed
from slinky_operator.runtime.controller import Result

KEY = ("a", "slurm")


@dataclass
class Passes:
    run: list[Key] = field(default_factory=list)

    async def reconcile(self, key: Key) -> Result:
        self.run.append(key)
        return Result()


class World:
    def __init__(self, total: int | None = None) -> None:
        specs = [
            *(CacheSpec(resource, mirrored=True) for resource in (CLUSTERS, NODESETS, SLURMJOBS)),
            *(CacheSpec(resource, owners=OWNERS) for resource in (PODS, CONFIGMAPS)),
        ]
        client = cast("KubeClient", None)
        self.caches = Caches(client, specs, namespaces=(), relist_every=60.0, budget=MIB, total=total)
        self.passes = Passes()

    def gate(self, resource: Resource, *reads: Resource) -> Gate:
        return Gate(self.passes, resource, reads, self.caches)

    def put(self, resource: Resource, name: str, size: int = 0, namespace: str = "a", **spec: Any) -> None:
        about = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
        body: Object = {"kind": resource.kind, "metadata": about, "spec": {**spec, "long": ["x" * size]}}
        cache = self.caches.by_resource[resource]
        if isinstance(cache, Informer):
            cache.store.put(body)
        else:
            cache.feed("ADDED", body)

    def listed(self, namespace: str = "a") -> None:
        for cache in self.caches.by_resource.values():
            if isinstance(cache, Informer):
                cache._shown.add(namespace)


async def test_a_namespace_is_listed_before_anything_is_decided_in_it() -> None:
    world = World()
    world.put(CLUSTERS, "slurm")
    gate = world.gate(CLUSTERS, PODS)
    assert isinstance(await gate.reconcile(KEY), Postponed)
    assert world.passes.run == []
    world.listed()
    assert not isinstance(await gate.reconcile(KEY), Postponed)
    assert world.passes.run == [KEY]


async def test_who_reads_what_is_missing_waits_and_says_so_and_nobody_else() -> None:
    world = World()
    world.put(CLUSTERS, "slurm")
    world.listed()
    world.put(CONFIGMAPS, "large", 2 * MIB)
    with pytest.raises(OverBudgetError, match="namespace a is over the operator's memory budget of 1 MiB") as raised:
        await world.gate(CLUSTERS, PODS, CONFIGMAPS).reconcile(KEY)
    assert world.passes.run == []
    found = explained(raised.value, "")
    assert found is not None
    assert found.reason == "OverBudget"
    assert "1 objects and 2 MiB" in found.message
    assert "namespaceBudget" in found.message
    await world.gate(CLUSTERS, PODS).reconcile(KEY)
    assert world.passes.run == [KEY]
    # Of one that is not in the cache nobody knows whether it is gone: its NodeSets may be.
    assert isinstance(await world.gate(CLUSTERS, CONFIGMAPS).reconcile(("a", "other")), Postponed)
    assert world.passes.run == [KEY]


async def test_an_object_that_is_too_large_itself_is_not_read_and_stops_no_other() -> None:
    world = World()
    world.put(NODESETS, "small")
    world.put(NODESETS, "large", 2 * MIB, clusterName="slurm")
    world.listed()
    gate = world.gate(NODESETS, PODS)
    await gate.reconcile(("a", "small"))
    with pytest.raises(OverBudgetError, match="this object was not read"):
        await gate.reconcile(("a", "large"))
    assert world.passes.run == [("a", "small")]


async def test_an_object_waits_for_the_namespace_of_its_cluster() -> None:
    world = World()
    world.put(CLUSTERS, "slurm")
    world.put(SLURMJOBS, "hello", namespace="team", clusterNamespace="a", clusterName="slurm")
    gate = world.gate(SLURMJOBS, PODS)
    assert isinstance(await gate.reconcile(("team", "hello")), Postponed)
    world.listed()
    world.put(PODS, "large", 2 * MIB)
    with pytest.raises(OverBudgetError, match="namespace a "):
        await gate.reconcile(("team", "hello"))
    assert world.passes.run == []


async def test_the_largest_namespace_is_told_that_all_together_take_too_much() -> None:
    world = World(MIB)
    world.put(CLUSTERS, "slurm")
    world.listed()
    world.put(CONFIGMAPS, "large", 900 * 2**10)
    world.listed("b")
    world.put(CLUSTERS, "slurm", namespace="b")
    world.put(CONFIGMAPS, "small", 400 * 2**10, namespace="b")
    with pytest.raises(OverBudgetError, match=r"memory budget of 1 MiB for all namespaces is used up") as raised:
        await world.gate(CLUSTERS, CONFIGMAPS).reconcile(KEY)
    assert "namespace a has more than its share of 0 MiB" in str(raised.value)
    await world.gate(CLUSTERS, CONFIGMAPS).reconcile(("b", "slurm"))
    assert world.passes.run == [("b", "slurm")]


async def test_nothing_is_lost_during_a_pass_and_none_begins_before_it_gives_way() -> None:
    world = World(MIB)
    world.put(CLUSTERS, "slurm")
    world.listed()
    world.listed("b")
    world.put(CONFIGMAPS, "large", 900 * 2**10)
    gate = world.gate(CLUSTERS, CONFIGMAPS)
    configs = world.caches.store(CONFIGMAPS)

    async def amid(key: Key) -> Result:
        world.put(CONFIGMAPS, "small", 400 * 2**10, namespace="b")
        assert configs.get("a", "large") is not None
        assert isinstance(await gate.reconcile(key), Postponed)
        return Result()

    world.passes.reconcile = amid  # type: ignore[method-assign]
    await gate.reconcile(KEY)
    assert configs.get("a", "large") is None
    with pytest.raises(OverBudgetError):
        await gate.reconcile(KEY)


def test_a_cache_keeps_all_if_one_of_its_readers_wants_all() -> None:
    both = [CacheSpec(PODS, owners=frozenset({CLUSTERS})), CacheSpec(PODS, owners=frozenset({NODESETS}))]
    assert merged(both)[0].owners == {CLUSTERS, NODESETS}
    assert merged([*both, CacheSpec(PODS)])[0].owners == frozenset()
    assert merged([CacheSpec(PODS), *both])[0].owners == frozenset()


async def test_no_pass_where_another_release_of_the_operator_serves() -> None:
    world = World()
    world.put(CLUSTERS, "slurm")
    world.listed()
    elsewhere: set[str] = {"a"}
    gate = Gate(world.passes, CLUSTERS, (PODS,), world.caches, lambda: elsewhere)
    assert isinstance(await gate.reconcile(KEY), Postponed)
    assert world.passes.run == []
    elsewhere.clear()
    await gate.reconcile(KEY)
    assert world.passes.run == [KEY]
