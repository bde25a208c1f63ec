"""Which parts of a user's ConfigMap count as text."""

from __future__ import annotations

import base64
from collections.abc import Coroutine
from typing import cast

from slinky_operator.cluster.rollout.config_sources import OVER_BUDGET, ConfigMapWatcher, text_source
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.runtime.tasks import Supervisor


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_text_counts_wherever_it_stands() -> None:
    found = text_source(
        {
            "metadata": {"name": "mine"},
            "data": {"a.conf": "a=1"},
            "binaryData": {"b.conf": encoded("b=ü".encode()), "logo": encoded(b"\x89PNG\xff"), "broken": "%"},
        }
    )
    assert found.exists
    assert found.texts == {"a.conf": "a=1", "b.conf": "b=ü"}
    assert found.not_text == ("broken", "logo")


def test_a_config_map_may_be_empty() -> None:
    assert text_source({"metadata": {"name": "mine"}}).texts == {}


async def test_config_maps_beyond_the_budget_are_refused_and_those_of_a_cluster_that_goes_make_room() -> None:
    class Idle:
        """Runs no watch."""

        def start(self, _: str, watch: Coroutine[None, None, None]) -> None:
            watch.close()

        async def stop(self, _: str) -> None:
            pass

    budget = Budget(20_000)
    watcher = ConfigMapWatcher(cast("KubeClient", None), cast("Supervisor", Idle()), budget)

    def listed(name: str) -> None:
        # As after the list of its watch.
        informer = watcher._watch(("ns", name)).informer
        body: Object = {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}}
        informer.store.put({**body, "data": {"a.conf": "x" * 15_000}})
        informer.synced.set()

    listed("first")
    listed("second")
    first, second = (await watcher.read(("ns", "slurm"), ["first", "second"])).values()
    assert (len(first.texts["a.conf"]), first.refused) == (15_000, "")
    assert (second.texts, second.exists, second.refused) == ({}, True, OVER_BUDGET)
    await watcher.forget(("ns", "slurm"))
    assert not budget.has("ns")
