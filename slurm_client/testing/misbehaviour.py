"""How a server misbehaves that has a fault: late, silent, gone, with half an answer or with another one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from slurm_client.testing.faults import Fault

__all__ = ["answer", "before_answering"]


async def before_answering(fault: Fault, request: web.Request) -> None:
    """Be slow, silent or gone, if the fault says so."""
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.hang:
        await asyncio.Event().wait()
    if fault.disconnect and request.transport is not None:
        request.transport.abort()
        raise asyncio.CancelledError


async def answer(
    fault: Fault, request: web.Request, status: int, content: bytes, content_type: str
) -> web.StreamResponse:
    """Send what the fault makes of an answer."""
    if fault.body is not None:
        content_type = fault.content_type
        if isinstance(fault.body, bytes):
            content = fault.body
        elif isinstance(fault.body, str):
            content = fault.body.encode()
        else:
            content = json.dumps(fault.body).encode()
    status = fault.status or status
    if fault.cut is not None:
        content = content[: int(len(content) * fault.cut)]
    if fault.truncate is not None:
        response = web.StreamResponse(status=status, headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[: int(len(content) * fault.truncate)])
        if request.transport is not None:
            request.transport.close()
        return response
    return web.Response(status=status, body=content, content_type=content_type)
