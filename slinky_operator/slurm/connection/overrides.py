"""Where slurmrestd is asked by an operator on a developer's machine, which reaches no Service.

A port-forward has one end on that machine. Whatever of a Cluster's slurmrestds a request is for, it goes there; which
Clusters have one is said by the settings (`slurmrestd_override`).
"""

from __future__ import annotations

import httpx
from typing_extensions import override


class OverrideTransport(httpx.AsyncBaseTransport):
    """An httpx transport that sends every request to one server.

    Parameters
    ----------
    inner
        What sends the requests; closed along with this one.
    url
        Base URL of the server, without a path.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, url: str) -> None:
        self._inner = inner
        self._url = httpx.URL(url)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        to = self._url
        request.url = request.url.copy_with(scheme=to.scheme, host=to.host, port=to.port)
        request.headers["Host"] = to.netloc.decode("ascii")
        return await self._inner.handle_async_request(request)

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()
