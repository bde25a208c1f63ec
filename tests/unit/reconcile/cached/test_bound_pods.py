"""Pods of some Nodes are in one cache: each Node is watched by itself, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object, Page, WatchEvent
from slinky_operator.kube.resources import VIRTUAL_NODES, VIRTUAL_PODS, Resource
from slinky_operator.reconcile.cached.bound_pods import BOUND_TO, BoundPods


class Api:
    """Lists and watches by Node."""

    def __init__(self) -> None:
        self.version = 1
        self.nodes: dict[str, Object] = {}
        self.pods: dict[tuple[str, str], Object] = {}
        self.asked: list[str | None] = []
        self.watches: dict[str | None, asyncio.Queue[WatchEvent | None]] = {}

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    def _tell(self, selector: str | None, kind: Any, obj: Object) -> None:
        if selector in self.watches:
            self.watches[selector].put_nowait(WatchEvent(kind, obj))

    def node(self, name: str) -> None:
        self.nodes[name] = {"metadata": {"name": name, "resourceVersion": self._next()}}
        self._tell(None, "ADDED", self.nodes[name])

    def remove_node(self, name: str) -> None:
        gone = {"metadata": {"name": name, "resourceVersion": self._next()}}
        del self.nodes[name]
        self._tell(None, "DELETED", gone)

    def pod(self, name: str, node: str, text: str = "") -> None:
        about = {"name": name, "namespace": "team", "uid": name, "resourceVersion": self._next()}
        self.pods[node, name] = {"metadata": about, "spec": {"nodeName": node, "text": text}}
        self._tell(f"spec.nodeName={node}", "ADDED", self.pods[node, name])

    def remove_pod(self, name: str, node: str, *, is_told: bool = True) -> None:
        gone = self.pods.pop((node, name))
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": self._next()}}
        if is_told:
            self._tell(f"spec.nodeName={node}", "DELETED", gone)

    async def pages(self, resource: Resource, *_: Any, field_selector: str | None = None, **__: Any) -> Any:
        if resource == VIRTUAL_NODES:
            yield Page(list(self.nodes.values()), str(self.version), "")
            return
        self.asked.append(field_selector)
        node = (field_selector or "").removeprefix("spec.nodeName=")
        found = [{**pod, "metadata": dict(pod["metadata"])} for (where, _), pod in self.pods.items() if where == node]
        yield Page(found, self._next(), "")

    async def watch(self, _: Resource, *__: Any, field_selector: str | None = None, **___: Any) -> Any:
        queue = self.watches[field_selector] = asyncio.Queue()
        while (event := await queue.get()) is not None:
            yield [event]

    def cut(self, node: str) -> None:
        """End a watch, whose version is too old to go on from."""
        selector = f"spec.nodeName={node}"
        self._tell(selector, "BOOKMARK", {"metadata": {"resourceVersion": ""}})
        self.watches[selector].put_nowait(None)


@asynccontextmanager
async def watched(api: Api, budget: Budget | None = None) -> AsyncIterator[BoundPods]:
    client = cast("KubeClient", api)
    nodes = Informer(client, VIRTUAL_NODES)
    pods = BoundPods(client, VIRTUAL_PODS, nodes, budget=budget)
    tasks = [asyncio.create_task(one.run()) for one in (nodes, pods)]
    try:
        yield pods
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def until(holds: Callable[[], Any]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for sets no event
        await asyncio.sleep(0.001)


def names(pods: BoundPods) -> set[str]:
    return {obj["metadata"]["name"] for obj in pods.store}


async def test_only_pods_of_these_nodes_are_asked_for() -> None:
    api = Api()
    api.node("a")
    api.pod("p", "a")
    api.pod("foreign", "real")
    async with watched(api) as pods:
        await asyncio.wait_for(pods.synced.wait(), 10)
        assert names(pods) == {"p"}
        api.node("b")
        api.pod("q", "b")
        await until(lambda: names(pods) == {"p", "q"})
        assert set(api.asked) == {"spec.nodeName=a", "spec.nodeName=b"}
        assert [obj["metadata"]["name"] for obj in pods.store.find(BOUND_TO, "b")] == ["q"]


async def test_without_nodes_it_is_ready_at_once() -> None:
    async with watched(Api()) as pods:
        await asyncio.wait_for(pods.synced.wait(), 10)
        assert names(pods) == set()


async def test_a_list_of_one_node_forgets_no_pods_of_others() -> None:
    api = Api()
    for node in "ab":
        api.node(node)
        api.pod(f"p-{node}", node)
    async with watched(api) as pods:
        await until(lambda: len(names(pods)) == 2 and len(api.watches) == 3)
        api.remove_pod("p-a", "a", is_told=False)
        api.cut("a")
        await until(lambda: names(pods) == {"p-b"})


async def test_a_node_that_goes_is_watched_until_its_last_pod_has_gone() -> None:
    api = Api()
    api.node("a")
    api.pod("p", "a")
    gone: list[Object] = []
    async with watched(api) as pods:
        pods.add_handler(lambda old, new: gone.append(old) if new is None and old is not None else None)
        await until(lambda: len(api.watches) == 2)
        api.remove_node("a")
        api.pod("late", "a")
        await until(lambda: names(pods) == {"p", "late"})
        for name in ("p", "late"):
            api.remove_pod(name, "a")
        await until(lambda: len(gone) == 2)
        assert names(pods) == set()


async def test_a_namespace_over_its_budget_lacks_pods_until_there_is_room() -> None:
    api = Api()
    api.node("a")
    api.pod("small", "a")
    api.pod("large", "a", "x" * 50_000)
    async with watched(api, Budget(20_000)) as pods:
        await asyncio.wait_for(pods.synced.wait(), 10)
        assert (names(pods), pods.store.missing("team")) == ({"small"}, 1)
        await until(lambda: len(api.watches) == 2)
        api.remove_pod("large", "a", is_told=False)
        api.cut("a")
        await until(lambda: not pods.store.missing("team"))
