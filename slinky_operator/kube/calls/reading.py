"""Reads of the Kubernetes API: one object, a collection, and what changes in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

import aiohttp

from slinky_operator.kube import errors
from slinky_operator.kube.calls.depth import decoded
from slinky_operator.kube.calls.transport import Transport, words
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Listing, Object, Objects, Page, WatchEvent, WatchEvents
from slinky_operator.kube.resources import PODS, Resource

PAGE_SIZE: Final = 100
"""Objects in one answer to a list; decoding 100 pods keeps the event loop busy for about 8 ms."""

PAGE_BYTES: Final = 2 * 2**20
"""Bytes of one answer to a list, unless one object alone has more. Of larger objects fewer are asked for at a time.
Decoding so many keeps the event loop busy for about 17 ms."""

SLICE: Final = 16
"""Events decoded, and objects handed over, before others have their turn."""


class Reading(Transport):
    """What reads."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Read one object, or raise `NotFound`."""
        target = Target("get", str(resource), namespace, name)
        return await self._send(target, "GET", resource.path(namespace, name))

    async def get_scale(self, resource: Resource, name: str, namespace: str) -> Object:
        """Read the scale subresource (`spec.replicas`, `status.replicas`, `status.selector`)."""
        target = Target("get", f"{resource}/scale", namespace, name)
        return await self._send(target, "GET", resource.path(namespace, name, "scale"))

    async def ask_pod(self, namespace: str, pod: str, port: int, path: str, *, most: int) -> Object:
        """Ask a pod over TLS by way of the API server, once, and return its answer, an object in JSON.

        The API server connects to the address in the status of the pod. It verifies no certificate there and shows
        none, and passes on no credentials.

        Parameters
        ----------
        port
            Port of the pod; none of its containers has to name it.
        path
            Path at the pod, from its first slash on.
        most
            Bytes of the answer.

        Raises
        ------
        KubeError
            What either of both has answered: only the message tells them apart. `Unavailable` with the status 503 if
            the API server has no connection to the pod; `TooLong`.
        """
        target = Target("get", f"{PODS}/proxy", namespace, pod)
        asked = PODS.path(namespace, f"https:{pod}:{port}", "proxy")
        return await self._send(target, "GET", f"{asked}{path}", most=most, attempts=1)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing:
        """Read a whole collection, page by page, at one version. Of what may be large, take `each`.

        Raises
        ------
        Gone
            If the pages took so long that the version expired.
        """
        items: Objects = []
        version = ""
        async for page in self.pages(
            resource, namespace, label_selector=label_selector, field_selector=field_selector, page_size=page_size
        ):
            items.extend(page.items)
            version = page.resource_version
        return Listing(items, version)

    async def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]:
        """Read a whole collection at one version, object by object.

        Only a page of it is in memory: whoever may create objects in a namespace decides how many there are, and how
        long they are.

        Raises
        ------
        Gone
            If the pages took so long that the version expired.
        """
        async for page in self.pages(resource, namespace, label_selector=label_selector, field_selector=field_selector):
            for count, obj in enumerate(page.items, 1):
                yield obj
                if count % SLICE == 0:
                    await asyncio.sleep(0)
            # Not held while the next page is on its way.
            page.items.clear()

    async def some(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str | None = None, most: int
    ) -> Page:
        """Read the first objects of a collection: enough to know whether there are any."""
        target = Target("list", str(resource), namespace)
        query = _selectors(None, field_selector) | {"limit": str(most)}
        answer = await self._send(target, "GET", resource.path(namespace), query=query)
        metadata = answer.get("metadata") or {}
        version, token = str(metadata.get("resourceVersion") or ""), str(metadata.get("continue") or "")
        return Page(answer.get("items") or [], version, token)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Page]:
        """Read a collection page by page; all pages show the same version.

        Items of a list lack `kind` and `apiVersion` on the wire; they are filled in, so that an object looks
        the same wherever it came from. A page has `PAGE_BYTES` at most, or one object.
        """
        target = Target("list", str(resource), namespace)
        query = _selectors(label_selector, field_selector)
        size = page_size
        while True:
            most = PAGE_BYTES if size > 1 else None
            try:
                answer = await self._send(
                    target, "GET", resource.path(namespace), query=query | {"limit": str(size)}, most=most
                )
            except errors.TooLong:
                size = max(1, size // 4)
                continue
            metadata = answer.get("metadata") or {}
            items: Objects = answer.get("items") or []
            for item in items:
                item.setdefault("kind", resource.kind)
                item.setdefault("apiVersion", resource.api_version)
            token = str(metadata.get("continue") or "")
            yield Page(items, str(metadata.get("resourceVersion") or ""), token)
            if not token:
                return
            query = {**query, "continue": token}
            # One long object must not make a request of every later one.
            size = min(page_size, 2 * size)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        duration: float = 300.0,
        silence: float = 100.0,
    ) -> AsyncIterator[WatchEvents]:
        """Follow changes after a version; yields what arrived together, in order, and ends when the server ends it.

        Parameters
        ----------
        resource_version
            Version of a list, or of the last event seen.
        duration
            Seconds after which the server is asked to end the watch.
        silence
            Seconds without any byte after which the connection is taken for dead. API servers send a bookmark
            about once a minute.

        Raises
        ------
        Gone
            If the version is too old: list again.
        Unavailable
            If the connection breaks or stays silent. A line cut in the middle is dropped; the caller watches again
            from the last version it has seen.
        """
        target = Target("watch", str(resource), namespace)
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(duration))),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=silence)
        path = resource.path(namespace)
        try:
            async with self._connection.request("GET", path, query=query, timeout=timeout) as response:
                if response.status != HTTPStatus.OK:
                    if response.status == HTTPStatus.UNAUTHORIZED:
                        # For the next attempt, which is the caller's.
                        await self._connection.refresh()
                    await self._raise_for(target, response)
                rest = b""
                # Lines are cut here: aiohttp's own readline refuses lines longer than its buffer, and objects may
                # be as large as etcd takes them.
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for start in range(0, len(lines), SLICE):
                        if start:
                            # Some hundred events may come at once; others want their turn between them.
                            await asyncio.sleep(0)
                        yield [_decode(target, line) for line in lines[start : start + SLICE] if line]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.Unavailable(target, words(error)) from error


def _selectors(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
    return {key: value for key, value in pairs if value}


def _decode(target: Target, line: bytes) -> WatchEvent:
    """Decode one line of a watch; an ERROR line becomes the exception it describes."""
    try:
        event = decoded(line)
        kind, obj = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise errors.Unavailable(target, f"no watch event: {line[:100]!r}") from error
    if kind == "ERROR":
        raise errors.from_status(target, obj)
    return WatchEvent(kind, obj)
