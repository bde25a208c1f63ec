"""Where kopf watches the custom resources and passes events on.

Each event of a custom resource goes into the mirror of its kind, which stores it and calls its handlers. Nothing
else happens in a kopf handler: kopf neither retries nor reports failures there, stores its state in annotations for any
other kind of handler, and misses deletions while its watch is broken (the mirrors' own slow relist finds them). The
controllers decide how to react to a change.

kopf decodes with the standard library, which raises RecursionError for some thousand levels; kopf ends with it, and so
would each successor of the process. So its answers are cut before it reads them (`kube.calls.depth`).
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import aiohttp
import kopf
from typing_extensions import override

from slinky_operator.kube.cache.budget import footprint
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.calls.depth import decoded, readable
from slinky_operator.kube.calls.discovery import until_shown
from slinky_operator.runtime.garbage_collection import Sweeper

FIRST_PAUSE: Final = 1.0
"""Seconds before kopf's second attempt at a request."""

LONGEST_PAUSE: Final = 30.0
"""Maximum seconds between two attempts."""

LONG_FIELDS: Final = ("spec", "status")
"""Fields of an object that only the mirror needs."""

CHUNK: Final = 8
"""Objects in one answer to kopf's lists; an object may have some 1.5 MB."""

IDLE_S: Final = 0.1
"""Seconds for which kopf keeps the last event of an object after it was handled."""


class Credentials(kopf.ConnectionInfo):
    """Credentials for kopf, checked as `kube.calls.connection` checks the API server."""

    @override
    def as_ssl_context(self) -> ssl.SSLContext:
        """Return kopf's TLS settings without Python 3.13's strict mode, which many cluster CAs fail."""
        context = super().as_ssl_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


@dataclass(frozen=True, kw_only=True)
class Session(kopf.AiohttpSession):
    """A session, and what it was made of: kopf compares that with credentials which the API server has refused."""

    credentials: kopf.ConnectionInfo
    aiohttp_session: aiohttp.ClientSession = field(compare=False)

    @classmethod
    def of(cls, credentials: kopf.ConnectionInfo) -> Session:
        """Open a session as kopf opens one of its own."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=credentials.as_ssl_context()),
            headers=credentials.as_http_headers(),
            proxy=credentials.proxy_url,
            trust_env=credentials.trust_env,
            response_class=ShallowResponse,
        )
        return cls(server=credentials.server, credentials=credentials, aiohttp_session=session)


class ShallowResponse(aiohttp.ClientResponse):
    """An answer without what is nested too deeply, read whole or line by line."""

    @override
    async def json(self, **_: Any) -> Any:
        return decoded(await self.read())

    @override
    async def start(self, connection: Any) -> ShallowResponse:
        _ = await super().start(connection)
        # All but the reading of pieces is the stream's.
        self.content = cast("aiohttp.StreamReader", _Lines(self.content))
        return self


class _Lines:
    """A stream that is read in whole lines."""

    def __init__(self, stream: aiohttp.StreamReader) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Give lines as they arrive; what arrives together is given together."""
        rest = b""
        async for piece in self._stream.iter_chunked(size):
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                yield b"".join(readable(line) + b"\n" for line in lines)
        if rest:
            yield readable(rest)


class Backoffs(Iterable[float]):
    """Seconds between kopf's attempts, increasing and without end; by default kopf gives up after a minute."""

    @override
    def __iter__(self) -> Iterator[float]:
        pause = FIRST_PAUSE
        while True:
            yield pause * random.uniform(0.75, 1.0)  # noqa: S311 - jitter
            pause = min(2 * pause, LONGEST_PAUSE)


def registry(connection: Connection, mirrors: Sequence[Mirror]) -> kopf.OperatorRegistry:
    """Return kopf's handlers: use the operator's credentials, feed each mirror.

    Parameters
    ----------
    connection
        Whose credentials kopf uses.
    mirrors
        One per custom resource.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> Session:
        return Session.of(Credentials(**await connection.credentials()))

    sweeper = Sweeper()
    for mirror in mirrors:
        _feed(handlers, mirror, sweeper)
    return handlers


def _feed(handlers: kopf.OperatorRegistry, mirror: Mirror, sweeper: Sweeper) -> None:
    resource = mirror.resource

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=handlers, id=f"feed-{resource}")
    async def feed(type: str | None, event: Mapping[str, Any], **_: Any) -> None:  # noqa: A002 kopf's name
        # A coroutine: kopf runs plain functions in threads, and the queues belong to the event loop.
        mirror.feed(type, event["object"])
        sweeper.dropped(footprint(event["object"]))
        # kopf keeps the event for a while, and needs no more than its metadata.
        for name in LONG_FIELDS:
            event["object"].pop(name, None)


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings: it writes neither annotations nor Events, and requests no other resource."""
    chosen = kopf.OperatorSettings()
    # Namespaces are configured and the CRDs exist: no rights to list them are needed.
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    # A whole list of long specs would be held at once, and each object as long as its worker waits for a next event.
    chosen.watching.chunk_size = CHUNK
    chosen.queueing.idle_timeout = IDLE_S
    # Wait without limit for an API server that does not answer or refuses requests.
    chosen.networking.error_backoffs = Backoffs()
    # `app` handles signals and decides the order of shutdown.
    return chosen


async def run(
    connection: Connection,
    mirrors: Sequence[Mirror],
    *,
    identity: str,
    namespaces: Sequence[str],
    stop: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    """Run kopf until `stop` is set or a signal asks the process to end.

    Parameters
    ----------
    identity
        Name of this process; by default kopf uses a user name, and a container has none.
    namespaces
        Namespaces to watch; none means all.
    ready
        Set once kopf watches.

    Raises
    ------
    Exception
        What kopf cannot handle: a watch that ends with an error other than 410, for example. The process is expected
        to exit and to be restarted.
    """
    # kopf discovers kinds only once.
    await until_shown(connection, [mirror.resource for mirror in mirrors])
    await kopf.operator(
        registry=registry(connection, mirrors),
        settings=settings(),
        standalone=True,
        identity=cast("Any", identity),
        stop_flag=stop,
        ready_flag=ready,
        **({"namespaces": list(namespaces)} if namespaces else {"clusterwide": True}),
    )
