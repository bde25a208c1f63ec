"""What the kubelet API answers: the output of containers, 501 with a sentence for what Slurm's jobs do not have.

A path names namespace and pod; the pod's Node decides who may ask. Nothing else of a kubelet is served: no metrics, no
list of pods. Only the leader answers: its cache is the one that counts, and only it may ask the API server to review.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from aiohttp import web

from slinky_operator.runtime.one_a_turn import OneATurn
from slinky_operator.slurm.connection.job_output import JobOutput, Piece
from slinky_operator.virtual_nodes import arrival
from slinky_operator.virtual_nodes.kubelet import log_request
from slinky_operator.virtual_nodes.kubelet.callers import Callers
from slinky_operator.virtual_nodes.kubelet.log_stream import NOTE, Cut, LogStream, Look, Sink
from slinky_operator.virtual_nodes.kubelet.output import Sources
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod, ServedPods
from slinky_operator.virtual_nodes.kubelet.shares import NoPlace, Shares

logger = logging.getLogger(__name__)

EACH: Final = 32
"""Outputs that pods of one namespace show at a time."""

TOTAL: Final = 128
"""The same of all; each takes some 400 KiB: a piece, and the buffers of TLS."""

TAKING_S: Final = 30.0
"""Seconds within which a caller must take a piece."""

_LOGS: Final = "containerLogs"
_NOT_THERE: Final = {
    "exec": "kubectl exec and kubectl cp",
    "attach": "kubectl attach",
    "portForward": "kubectl port-forward",
    "run": "running commands",
}
"""First parts of paths that name a pod next, and what does not work because of them."""

_WITHOUT_WORDS: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
"""In place of an answer with such a status, kubectl logs shows a sentence of its own; that of a 500 it shows."""

_NAME: Final = re.compile("[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", re.ASCII)
_NO_NODE: Final = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What callers may use."""

    each: int = EACH
    total: int = TOTAL
    taking: float = TAKING_S


class Answers:
    """Answers requests.

    Parameters
    ----------
    pods
        Finds pods on virtual Nodes.
    callers
        Decides who may ask.
    sources, output
        Where output is, and what reads it.
    leads
        Whether this replica leads.
    mark
        Mark of this process, which anybody may read who arrives here.
    limits
        What callers may use.
    now
        The wall clock.
    """

    def __init__(
        self,
        pods: ServedPods,
        callers: Callers,
        sources: Sources,
        output: JobOutput,
        leads: Callable[[], bool],
        *,
        mark: str = "",
        limits: Limits = Limits(),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._pods = pods
        self._callers = callers
        self._sources = sources
        self._output = output
        self._leads = leads
        self._mark = mark
        self._limits = limits
        self._now = now
        # A look and the request that follows it take 1 ms, and followers that were served together look together.
        self._looks = OneATurn()
        self.streams = Shares(limits.each, limits.total)
        """Outputs that are being sent, by namespace."""

    async def answer(self, request: web.BaseRequest, known: Callable[[], None]) -> web.StreamResponse:
        """Answer a request.

        Parameters
        ----------
        request
            The request.
        known
            Called once the caller may ask.
        """
        try:
            return await self._answer(request, known)
        except NotServed as error:
            return _refused(error, request)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            logger.exception("kubelet API: %s failed", request.method)
            failed = NotServed(HTTPStatus.INTERNAL_SERVER_ERROR, "the operator failed: its log says why")
            return _refused(failed, request)

    async def _answer(self, request: web.BaseRequest, known: Callable[[], None]) -> web.StreamResponse:
        if (request.method, request.path) == ("GET", arrival.PATH):
            return web.json_response({arrival.FIELD: self._mark}, headers={"Connection": "close"})
        if not self._leads():
            why = "this replica of the operator does not lead, or has just begun; Nodes have the leader's address"
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, why)
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        caller = await self._callers.identify(certificate, request.headers.get("Authorization", ""))
        first, namespace, name, container = _parts(request.path)
        served = self._pods.find(namespace, name) if namespace else None
        await self._callers.permit(caller, request.method, served.node if served is not None else _NO_NODE)
        known()
        if first in _NOT_THERE:
            why = f"{_NOT_THERE[first]} cannot reach a pod on a virtual Node: it is a job of Slurm on another machine"
            raise NotServed(HTTPStatus.NOT_IMPLEMENTED, why)
        if first != _LOGS:
            raise NotServed(
                HTTPStatus.NOT_IMPLEMENTED, "a virtual Node serves the output of containers, and nothing else"
            )
        if served is None:
            raise NotServed(HTTPStatus.NOT_FOUND, f'pod "{name}" in namespace "{namespace}" is on no virtual Node')
        if not served.has(container):
            raise NotServed(HTTPStatus.NOT_FOUND, f'pod "{name}" has no container "{container}"')
        if request.method != "GET":
            raise NotServed(HTTPStatus.METHOD_NOT_ALLOWED, "the output of a container is read with GET")
        return await self._logs(request, served, namespace, name, container)

    async def _logs(
        self, request: web.BaseRequest, served: ServedPod, namespace: str, name: str, container: str
    ) -> web.StreamResponse:
        asked = log_request.parse(request.query, container, name, self._now())
        uid = served.pod["metadata"].get("uid")

        async def look() -> Look:
            await self._looks.turn()
            found = self._pods.find(namespace, name)
            if found is None or found.pod["metadata"].get("uid") != uid:
                raise NotServed(HTTPStatus.NOT_FOUND, f'pod "{name}" is gone')
            # First whether it has ended, then where it is: what is read after that is all there will be.
            ended = found.has_ended
            return Look(await self._sources.of(found, container), ended)

        transport = request.transport
        abort = transport.abort if transport is not None else _nothing
        try:
            place = self.streams.take(namespace, abort)
        except NoPlace as error:
            why = f"too many outputs of pods in namespace {namespace} are being shown: {error}"
            raise NotServed(HTTPStatus.TOO_MANY_REQUESTS, why) from None
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "Connection": "close"})

        async def send(content: bytes) -> None:
            async with asyncio.timeout(self._limits.taking):
                await response.write(content)

        try:
            if log_request.leaves_out_all(asked.since, served.started, served.ended):
                _ = await response.prepare(request)
                return response
            stream = LogStream(asked, look, self._output.read)
            first = await stream.first()
            _ = await response.prepare(request)
            await self._sent(stream, first, send)
        except TimeoutError:
            abort()
            raise ConnectionResetError("the caller takes nothing") from None
        finally:
            self.streams.leave(place)
        return response

    async def _sent(self, stream: LogStream, first: Piece, send: Sink) -> None:
        try:
            await stream.send(first, send)
        except Cut as error:
            await send(f"{NOTE}{error}\n".encode())
            # The connection ends without the last chunk: nobody is to take this for the whole output.
            raise ConnectionResetError(str(error)) from None


def _nothing() -> None:
    """The connection is gone already."""


def _parts(path: str) -> tuple[str, str, str, str]:
    """First part, namespace, pod and container of a path; empty where there is none."""
    parts = path.split("/")[1:]
    first, *rest = parts or [""]
    if first not in {_LOGS, *_NOT_THERE}:
        return first, "", "", ""
    # An older form has the uid of the pod before its container.
    namespace, name, *more = [*rest, "", "", ""][: max(3, len(rest))]
    container = more[-1] if more else ""
    if (
        not _NAME.fullmatch(namespace)
        or not _NAME.fullmatch(name)
        or len(rest) > len(("ns", "pod", "uid", "container"))
    ):
        return "", "", "", ""
    return first, namespace, name, container


def _refused(error: NotServed, request: web.BaseRequest) -> web.Response:
    """A refusal in the form of which the API server hands on the sentence."""
    headers = {"Connection": "close"}
    if error.status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if "Upgrade" in request.headers:
        # It tries to read the answer as a Status, and takes a sentence with a colon for an empty one.
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": error.status}
        return web.json_response({**body, "message": error.why}, status=error.status, headers=headers)
    status = HTTPStatus.INTERNAL_SERVER_ERROR if error.status in _WITHOUT_WORDS else error.status
    return web.Response(status=status, text=f"{error.why}\n", headers=headers)
