"""No Slurm write leaves a process whose leadership may have ended.

The same rule as for Kubernetes writes (`kube.leadership.fence`), at the same place: right before the bytes are
handed to the socket, so that requests that were waiting for a connection are held back too.

What a write is follows from what the operation does, which `slurm_client` marks on the request, and not from its
method: slurmrestd requeues jobs and reconfigures by GET. A request without the mark is a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from typing_extensions import override

from slinky_operator.kube.errors import Fenced, Target
from slinky_operator.kube.leadership.fence import Fence
from slurm_client.wire import CHANGES_NOTHING


def writes(request: httpx.Request) -> bool:
    """Whether a request may change anything."""
    return request.extensions.get(CHANGES_NOTHING) is not True


class FencedTransport(httpx.AsyncBaseTransport):
    """An httpx transport that asks the fence before each write.

    Parameters
    ----------
    inner
        What sends the requests; closed along with this one.
    fence
        Asked when a write comes in, and again when its first byte is about to leave.
    about
        Namespace and name of the Cluster, for the error.

    Raises
    ------
    Fenced
        From within the caller's write; nothing has been sent.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, fence: Fence, about: tuple[str, str]) -> None:
        self._inner = inner
        self._fence = fence
        self._about = about

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if writes(request):
            self._check(request)
            traced = request.extensions.get("trace")

            async def trace(event: str, details: Mapping[str, Any]) -> None:
                # Names of httpcore's own events; both protocols it speaks send their headers first.
                if event.endswith("send_request_headers.started"):
                    self._check(request)
                if traced is not None:
                    await traced(event, details)

            request.extensions = {**request.extensions, "trace": trace}
        return await self._inner.handle_async_request(request)

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()

    def _check(self, request: httpx.Request) -> None:
        why = self._fence.closed_because()
        if why is not None:
            namespace, name = self._about
            raise Fenced(Target(f"{request.method} {request.url.path} on", "slurmrestd", namespace, name), why)
