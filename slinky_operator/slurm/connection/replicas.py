"""Several slurmrestds in front of one Slurm: a call goes to one that answers.

A replica that is gone refuses the connection, or does not take it; one that hangs takes it and stays silent. Silence
alone proves nothing: slurmrestd waits for slurmctld for up to half a minute. So a replica that is silent is asked for
something that it answers by itself, without slurmctld. One that stays silent is put last, and a read is sent to the
next one too, whose answer is taken if it comes first.

A write that may have arrived is never sent again. It goes to the replica that has answered last, and to another one
only if there was no connection to send it on.

What an answer means is not asked here: one that says that slurmctld is away comes from a replica that works. Which
replicas there are is decided by the Cluster controller; without any, calls go to the URL that they name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, Final

import httpx
from typing_extensions import override

from slurm_client.wire import CHANGES_NOTHING

logger = logging.getLogger(__name__)

PATIENCE: Final = 2.0
"""Seconds of silence after which a replica is checked, and that it has for its answer."""

CONNECTING: Final = 3.0
"""Seconds for a connection: a Node that is off does not even refuse it."""

AT_A_TIME: Final = 3
"""Replicas, at most, that have the same read."""

SERVER_ERROR: Final = 500

ALIVE_PATH: Final = "/livez"
"""Where slurmrestd answers without slurmctld: 204, and 404 before Slurm 26.05."""

ALIVE_HEADERS: Final = {"X-SLURM-USER-TOKEN": "probe", "Connection": "close"}
"""slurmrestd judges no token; without one it logs an error."""

SILENT: Final = "does not answer"

_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class ReplicaTransport(httpx.AsyncBaseTransport):
    """An httpx transport that sends requests to one of several servers.

    Parameters
    ----------
    inner
        What sends the requests; closed along with this one.
    urls
        Base URLs of the replicas, without paths.
    patience
        Seconds of silence after which a replica is checked.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, urls: Sequence[str] = (), *, patience: float = PATIENCE
    ) -> None:
        self._inner = inner
        self._patience = patience
        self._order: list[str] = list(dict.fromkeys(urls))
        """The one that calls go to, then those that are tried after it."""
        self._doubtful: set[str] = set()
        """Those that did not answer last; they are tried after all others."""
        self._checks: dict[str, asyncio.Task[bool]] = {}

    @property
    def urls(self) -> Sequence[str]:
        """The replicas, in the order in which they are tried; none if calls go where they say."""
        return tuple(self._order)

    def use(self, urls: Sequence[str]) -> None:
        """Use these replicas from the next request on; those that are known keep their order, new ones come last."""
        known = [one for one in self._order if one in urls]
        self._doubtful &= set(known)
        self._order = [*known, *(one for one in dict.fromkeys(urls) if one not in known)]
        self._order.sort(key=self._doubtful.__contains__)
        self._checks = {url: check for url, check in self._checks.items() if url in urls}

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        order = list(self._order)
        if len(order) <= 1:
            return await self._inner.handle_async_request(_addressed(request, order[0]) if order else request)
        if request.extensions.get(CHANGES_NOTHING) is True:
            return await _Read(self, request, order).answer()
        return await self._write(request, order)

    @override
    async def aclose(self) -> None:
        for check in self._checks.values():
            check.cancel()
        await self._inner.aclose()

    async def send(self, request: httpx.Request, url: str) -> httpx.Response:
        """Send a request to one replica."""
        response = await self._inner.handle_async_request(_addressed(request, url))
        self._doubtful.discard(url)
        if response.status_code >= SERVER_ERROR:
            # Slurm's fault, most of the time. Should it be this one's, the next call is answered by another.
            self._put_last(url)
        return response

    def doubt(self, url: str, why: str) -> None:
        """Send what follows to others, if there are others: this one has not answered."""
        if url in self._order:
            if self._order[0] == url:
                logger.warning("slurmrestd at %s %s: calls go to another one", url, why)
            self._doubtful.add(url)
            self._put_last(url)

    def _put_last(self, url: str) -> None:
        if url in self._order:
            self._order.remove(url)
            self._order.append(url)
            self._order.sort(key=self._doubtful.__contains__)

    async def is_alive(self, url: str) -> bool:
        """Whether a replica answers at all; calls that ask at the same time share one check."""
        check = self._checks.get(url)
        if check is None or check.done():
            check = self._checks[url] = asyncio.create_task(self._checked(url))
        return await asyncio.shield(check)

    async def _checked(self, url: str) -> bool:
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self._patience)
        request = httpx.Request("GET", f"{url}{ALIVE_PATH}", headers=ALIVE_HEADERS, extensions={"timeout": limits})
        try:
            async with asyncio.timeout(self._patience):
                response = await self._inner.handle_async_request(request)
                await response.aclose()
        except httpx.PoolTimeout:
            # Too many calls are under way to ask: nothing is known.
            return True
        except (httpx.TransportError, TimeoutError):
            return False
        return True

    async def wait(self, *tasks: asyncio.Task[Any], patient: bool = False) -> None:
        """Wait until one of these has ended; if not `patient`, no longer than silence means nothing."""
        limit = None if patient else self._patience
        await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)

    async def _write(self, request: httpx.Request, order: Sequence[str]) -> httpx.Response:
        for url in order[:-1]:
            try:
                return await self._watched(request, url)
            except _NEVER_SENT as error:
                self.doubt(url, _unreached(error))
        return await self._watched(request, order[-1])

    async def _watched(self, request: httpx.Request, url: str) -> httpx.Response:
        """Send a write to one replica; if that hangs, at least what follows goes elsewhere."""
        task = asyncio.create_task(self.send(request, url))
        try:
            await self.wait(task)
            while not task.done():
                if not await self.is_alive(url):
                    self.doubt(url, SILENT)
                await self.wait(task)
        except BaseException:
            await _ended(task)
            raise
        return task.result()


class _Read:
    """One read, until a replica has answered it."""

    def __init__(self, replicas: ReplicaTransport, request: httpx.Request, order: Sequence[str]) -> None:
        self._replicas = replicas
        self._request = request
        self._left = list(order)
        self._asked: dict[asyncio.Task[httpx.Response], str] = {}
        self._hanging: set[str] = set()

    async def answer(self) -> httpx.Response:
        """Return the first answer; raises the last replica's error if none answers."""
        taken: asyncio.Task[httpx.Response] | None = None
        try:
            self._ask_next()
            while taken is None:
                await self._replicas.wait(*self._asked)
                taken = self._answered()
                if taken is None:
                    await self._check()
            for task in self._asked:
                if task is not taken:
                    await _ended(task)
        except BaseException:
            for task in self._asked:
                await _ended(task)
            raise
        return taken.result()

    def _ask_next(self) -> None:
        url = self._left.pop(0)
        self._asked[asyncio.create_task(self._replicas.send(self._request, url))] = url

    def _answered(self) -> asyncio.Task[httpx.Response] | None:
        """Return a request that has been answered; for each that has failed, ask the next replica."""
        for task in [one for one in self._asked if one.done()]:
            error = task.exception()
            if error is None:
                return task
            url = self._asked.pop(task)
            self._replicas.doubt(url, _unreached(error))
            if not isinstance(error, httpx.TransportError):
                raise error
            if self._left:
                self._ask_next()
            elif not self._asked:
                raise error
        return None

    async def _check(self) -> None:
        """Ask one more replica if all that have been asked hang."""
        waiting = next((url for url in self._asked.values() if url not in self._hanging), None)
        if waiting is not None:
            check = asyncio.create_task(self._replicas.is_alive(waiting))
            try:
                await self._replicas.wait(check, *self._asked, patient=True)
                if not check.done() or check.result():
                    return
            finally:
                check.cancel()
            self._hanging.add(waiting)
            self._replicas.doubt(waiting, SILENT)
        if self._left and len(self._asked) < AT_A_TIME and self._hanging.issuperset(self._asked.values()):
            self._ask_next()


def _unreached(error: BaseException) -> str:
    return f"cannot be reached ({type(error).__name__})"


def _addressed(request: httpx.Request, url: str) -> httpx.Request:
    """The same request for another server; its header Host stays that of the URL that was asked for."""
    base = httpx.URL(url)
    target = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port)
    limits: dict[str, Any] = dict(request.extensions.get("timeout") or {})
    limits["connect"] = min(limits.get("connect") or CONNECTING, CONNECTING)
    extensions = {**request.extensions, "timeout": limits}
    return httpx.Request(request.method, target, headers=request.headers, stream=request.stream, extensions=extensions)


async def _ended(task: asyncio.Task[httpx.Response]) -> None:
    """End a request that nobody waits for any more, and give its connection back."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        with contextlib.suppress(httpx.TransportError):
            await task.result().aclose()
