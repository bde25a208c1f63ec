"""Kubernetes Nodes that other Clusters choose, too: found in turns, however many Clusters there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slinky_operator.bridge.nodes import sharing
from slinky_operator.bridge.nodes.sharing import A_PASS, Sharing
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object

HOSTS = [f"kn-{number}" for number in range(5)]


def other(number: int, **node_labels: str) -> Object:
    spec = {"jobs": {"bridge": {"nodeLabels": node_labels}}}
    return {"metadata": {"namespace": "team", "name": f"c-{number:03}", "uid": str(number)}, "spec": spec}


@pytest.fixture
def nodes() -> Store:
    store = Store()
    for name in HOSTS:
        labels = {"slurm": "pods", "name": name}
        store.put({"metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels}})
    return store


async def test_each_of_many_clusters_is_looked_at_in_its_turn_and_a_few_in_a_pass(
    nodes: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def chooses(cluster: Object, node_labels: Mapping[str, str]) -> bool:
        compared.append(cluster["metadata"]["name"])
        return bool(cluster["spec"]["jobs"]["bridge"]["nodeLabels"].items() <= node_labels.items())

    monkeypatch.setattr(sharing, "chooses", chooses)
    many = [other(number, slurm="pods" if number == 2 * A_PASS else "no") for number in range(3 * A_PASS)]
    found = Sharing()
    told: list[Mapping[str, Any]] = []
    for number in range(3):
        compared.clear()
        told.append(await found.look(HOSTS, nodes, many))
        assert len(compared) == A_PASS * len(HOSTS)
        assert set(compared) == {one["metadata"]["name"] for one in many[number * A_PASS :][:A_PASS]}

    assert told == [{}, {}, {f"team/c-{2 * A_PASS:03}": tuple(HOSTS)}]


async def test_what_has_changed_is_seen_in_the_next_round_and_what_is_gone_is_forgotten(nodes: Store) -> None:
    found = Sharing()
    assert await found.look(HOSTS, nodes, [other(1, name="kn-1")]) == {"team/c-001": ("kn-1",)}
    assert await found.look(HOSTS, nodes, [other(1, name="kn-2")]) == {"team/c-001": ("kn-2",)}
    assert await found.look([*HOSTS, "gone"], nodes, []) == {}
