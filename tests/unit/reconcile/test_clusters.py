"""Clusters are parsed once for all controllers, and none that is gone is kept for long."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_operator.kube.cache.store import Store
from slinky_operator.reconcile.clusters import SLACK, ClusterReader

KEY = ("ns", "c")


def cluster(name: str = "c", uid: str = "u", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "ns", "uid": uid},
        "spec": spec,
    }


@pytest.fixture
def store() -> Store:
    return Store()


async def test_a_version_is_parsed_once(store: Store) -> None:
    reader = ClusterReader(store)
    store.put(cluster())
    first = await reader.find(KEY)
    assert first is not None
    assert await reader.named(KEY) is reader.known(KEY) is first
    store.put(copy.deepcopy(cluster()))
    assert await reader.find(KEY) is not first


async def test_one_that_cannot_be_parsed_exists_all_the_same(store: Store) -> None:
    reader = ClusterReader(store)
    store.put(cluster(controller="none"))
    assert reader.exists(KEY)
    assert isinstance(await reader.named(KEY), InvalidObjectError)
    assert await reader.find(KEY) is reader.known(KEY) is None
    with pytest.raises(InvalidObjectError):
        reader.read(cluster(controller="none"))


async def test_one_that_does_not_exist_is_none(store: Store) -> None:
    reader = ClusterReader(store)
    assert not reader.exists(KEY)
    assert await reader.named(KEY) is reader.known(KEY) is None


async def test_one_made_again_under_its_name_is_another(store: Store) -> None:
    reader = ClusterReader(store)
    store.put(cluster(uid="old"))
    assert (found := await reader.find(KEY)) is not None
    assert found.uid == "old"
    store.put(cluster(uid="new"))
    assert (found := reader.known(KEY)) is not None
    assert found.uid == "new"


async def test_deleted_ones_are_forgotten(store: Store) -> None:
    reader = ClusterReader(store)
    for number in range(100):
        store.put(cluster(uid=f"u{number}"))
        await reader.find(KEY)
        assert len(reader) <= SLACK + 2
