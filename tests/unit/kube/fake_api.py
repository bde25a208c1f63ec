"""A small API server that misbehaves on request: one collection over real HTTP, with list, watch and faults."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import Fence, OpenFence
from slinky_operator.kube.objects import Object


class FakeApi:
    """Pods of one namespace; every change gets the next version.

    `list_faults`, `watch_faults` and `write_faults` are used up one by one, by the next request of that kind:
    an HTTP status, or for watches `cut` (the connection breaks within a line), `gone` and `error` (an ERROR event),
    `end` (a watch that ends at once).
    """

    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.objects: dict[str, Object] = {}
        self.log: list[tuple[int, str, Object]] = []
        self.changed = asyncio.Condition()
        self.list_faults: deque[int] = deque()
        self.watch_faults: deque[int | str] = deque()
        self.write_faults: deque[int | str] = deque()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.tokens: list[str | None] = []
        self.writes: list[Any] = []
        self.page_size: int | None = None
        self.held: asyncio.Event | None = None
        """What the next request for a second or later page waits for."""
        self.cut_watches = asyncio.Event()
        self.url = ""

    def count(self, kind: str) -> int:
        return sum(1 for request in self.requests if request[0] == kind)

    async def put(self, name: str, **labels: str) -> Object:
        self.version += 1
        known = self.objects.get(name)
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": str(self.version),
            "labels": labels,
            "managedFields": [{"manager": "x"}],
        }
        obj = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
        self.objects[name] = obj
        await self._append("MODIFIED" if known else "ADDED", obj)
        return obj

    async def remove(self, name: str) -> None:
        self.version += 1
        obj = self.objects.pop(name)
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        await self._append("DELETED", obj)

    async def bookmark(self) -> None:
        self.version += 1
        await self._append("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self.version)}})

    def compact(self) -> None:
        """Forget the past: versions up to now can no longer be watched from."""
        self.version += 1
        self.compacted = self.version
        self.log.clear()

    async def _append(self, kind: str, obj: Object) -> None:
        async with self.changed:
            self.log.append((self.version, kind, obj))
            self.changed.notify_all()

    async def _after(self, seen: int) -> list[tuple[int, str, Object]]:
        async with self.changed:
            while not any(version > seen for version, _, _ in self.log):
                await self.changed.wait()
            return [entry for entry in self.log if entry[0] > seen]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        kind = "write" if request.method != "GET" else "watch" if "watch" in query else "list"
        self.tokens.append(request.headers.get("Authorization"))
        self.requests.append((kind, request.path, query))
        if kind == "write":
            return await self._write(request)
        return await (self._watch(request, query) if kind == "watch" else self._list(query))

    async def _write(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.writes.append(body)
        fault = self.write_faults.popleft() if self.write_faults else None
        if fault == "cut":
            assert request.transport is not None
            request.transport.abort()
        if isinstance(fault, int):
            return status(fault, "scripted")
        return web.json_response({"kind": "Pod", "metadata": {"name": "x", "resourceVersion": "1"}})

    async def _list(self, query: dict[str, str]) -> web.StreamResponse:
        if self.list_faults:
            return status(self.list_faults.popleft(), "scripted")
        items = sorted(self.objects.values(), key=lambda obj: str(obj["metadata"]["name"]))
        # Items of a list carry neither kind nor apiVersion on the wire.
        bare = [{"metadata": json.loads(json.dumps(obj["metadata"]))} for obj in items]
        if "continue" in query and self.held is not None:
            held, self.held = self.held, None
            _ = await held.wait()
        size = self.page_size or int(query["limit"])
        start = int(query.get("continue", "0"))
        token = str(start + size) if start + size < len(bare) else ""
        metadata = {"resourceVersion": str(self.version), "continue": token}
        return web.json_response({"metadata": metadata, "items": bare[start : start + size]})

    async def _watch(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        fault = self.watch_faults.popleft() if self.watch_faults else None
        if isinstance(fault, int):
            return status(fault, "scripted")
        seen = int(query["resourceVersion"])
        if seen < self.compacted:
            return status(410, "too old")
        response = web.StreamResponse()
        await response.prepare(request)
        if fault == "end":
            return response
        if fault in {"gone", "error"}:
            await response.write(error_event(410 if fault == "gone" else 500))
            return response
        await self._stream(request, response, seen, cut=fault == "cut")
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, seen: int, *, cut: bool) -> None:
        while True:
            fresh = await self._after(seen)
            if seen < self.compacted:
                await response.write(error_event(410))
                return
            for version, kind, obj in fresh:
                line = json.dumps({"type": kind, "object": obj}).encode() + b"\n"
                if cut:
                    await response.write(line[: len(line) // 2])
                    assert request.transport is not None
                    request.transport.close()
                    return
                # Two writes, so that lines do not come in one piece.
                await response.write(line[:7])
                await response.write(line[7:])
                seen = version
            if self.cut_watches.is_set():
                self.cut_watches.clear()
                return


def status(code: int, message: str) -> web.Response:
    document = {"kind": "Status", "status": "Failure", "code": code, "message": message}
    headers = {"Retry-After": "0.01"} if code == 429 else {}
    return web.json_response(document, status=code, headers=headers)


def error_event(code: int) -> bytes:
    document = {"kind": "Status", "code": code, "message": "scripted"}
    return json.dumps({"type": "ERROR", "object": document}).encode() + b"\n"


@asynccontextmanager
async def running() -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client_of(fake: FakeApi, fence: Fence | None = None) -> AsyncIterator[KubeClient]:
    async with Connection(Configuration(host=fake.url)) as connection:
        yield KubeClient(connection, fence=fence or OpenFence(), field_manager="test", timeout=120)


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; the test's own timeout ends a wait in vain."""
    while not condition():  # noqa: ASYNC110 - conditions are of any kind
        await asyncio.sleep(0.005)
