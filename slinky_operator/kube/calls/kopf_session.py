"""The session with which kopf reads custom resources: one object that is nested too deeply stops no list and no watch.

kopf decodes with the standard library, which raises RecursionError for some thousand levels; kopf ends with it, and so
would each successor of the process. So its answers are cut before it reads them (`depth`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import kopf
from typing_extensions import override

from slinky_operator.kube.calls.depth import decoded, readable


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
