"""
The HTTP side of the fake: paths, tokens, statuses, and the faults that are asked for.

What an operation does is left to :mod:`slurm_client.testing.handlers.cluster`, what is true in the pretended cluster to
:mod:`slurm_client.testing.world`.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import socket
import struct
import time
import weakref
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from slurm_client import wire
from slurm_client.testing import misbehaviour
from slurm_client.testing.answers import encode
from slurm_client.testing.answers.calls import Call, RecordedRequest, Reply, error
from slurm_client.testing.database import Database
from slurm_client.testing.database.history import JobsOnRecord
from slurm_client.testing.database.operations import DatabaseOperations
from slurm_client.testing.faults import AWAY, Faults
from slurm_client.testing.handlers.bulk import BulkOperations
from slurm_client.testing.refusals import INVALID_JOB, Refusal
from slurm_client.testing.world import World

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    Handler = Callable[["Call"], Awaitable["Reply"]]

_FOR_OPERATORS = frozenset(
    {
        "post_node",
        "post_nodes",
        "delete_node",
        "post_new_node",
        "post_partitions",
        "delete_partition",
        "get_reconfigure",
        "post_reservation",
        "post_reservations",
        "delete_reservation",
    }
)
"""Operations not every user may do."""

_SINCE = {"post_nodes": "24.11", "delete_reservation": "25.05"}
"""Releases that brought an operation to data parsers that existed before."""

PARSERS_OF_RELEASE = {
    "24.05": ("v0.0.40", "v0.0.41"),
    "24.11": ("v0.0.40", "v0.0.41", "v0.0.42"),
    "25.05": ("v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"),
    "25.11": ("v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"),
    "26.05": ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
}
"""Data parsers of each release, oldest first; the conformance suite compares this with real servers."""


class FakeSlurmrestd(BulkOperations):
    """
    A slurmrestd on 127.0.0.1 with a pretended cluster behind it.

    Parameters
    ----------
    release
        Slurm release to pretend; decides the data parsers and the manners.
    versions
        Data parsers instead of those of the release.
    key
        Key of HS256 tokens; then only tokens signed with it and not expired are accepted. Any token will do without.
    port
        Port to listen on; a free one when 0.
    pretty
        Write JSON with line breaks and blanks as slurmrestd does; slower.
    unix_socket
        Path of a socket to listen on as well.
    local
        Play ``rest_auth/local`` beside ``rest_auth/jwt``: on the socket, who sends no token is the user of the process
        that asks.
    ssl_context
        Speak TLS on the port.
    clock
        Seconds since 1970.

    Attributes
    ----------
    clock
        Goes as the given one does, and is moved by ``clock.advance(seconds)``: then jobs end (``let_run`` arranges
        how), start, time out and are forgotten.
    world
        Nodes, jobs and partitions; its methods are reachable on the fake itself as well.
    faults
        What is to go wrong.
    requests
        Everything that was asked.
    controller_up
        What pings say.
    conf
        Keys of slurm.conf that are answered beside a few others.
    operators
        Users who may change nodes, partitions, reservations, and jobs of others; anybody may change jobs of their own.
    """

    def __init__(
        self,
        *,
        release: str = "26.05.5",
        versions: Sequence[str] | None = None,
        key: bytes | None = None,
        port: int = 0,
        pretty: bool = False,
        unix_socket: str | Path | None = None,
        local: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(World(clock=clock, release=release), pretty=pretty)
        self.world.jobs = on_record = JobsOnRecord()
        self._slurmdbd = DatabaseOperations(self.world, on_record)
        self.world.add_partition("all", flags=frozenset({"DEFAULT"}))
        self.versions = tuple(versions or PARSERS_OF_RELEASE[release[:5]])
        self.key = key
        self.faults = Faults()
        self.requests: list[RecordedRequest] = []
        self.operators = {"root", "slurm"}
        self.bytes_sent = 0
        self._unix_socket = unix_socket
        self._local = local
        self._ssl_context = ssl_context
        self._port = port
        self._runner: web.AppRunner | None = None
        # What is asked of the world most often by tests.
        self.add_node = self.world.add_node
        self.update_node = self.world.update_node
        self.set_flags = self.world.set_flags
        self.remove_node = self.world.remove_node
        self.add_partition = self.world.add_partition
        self.add_job = self.world.add_job
        self.set_job_state = self.world.set_job_state
        self.finish_job = self.world.finish_job
        self.forget_job = self.world.forget_job
        self.let_run = self.world.let_run
        self.clock = self.world.clock

    # life

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http{'s' if self._ssl_context else ''}://127.0.0.1:{self._port}"

    @property
    def nodes(self) -> dict[str, Any]:
        """Nodes of the pretended cluster by name."""
        return self.world.nodes

    @property
    def jobs(self) -> dict[int, Any]:
        """Jobs of the pretended cluster by id."""
        return self.world.jobs

    @property
    def database(self) -> Database:
        """Accounts, users, associations and QOS in the pretended slurmdbd."""
        return self._slurmdbd.database

    @property
    def partitions(self) -> dict[str, Any]:
        """Partitions of the pretended cluster by name."""
        return self.world.partitions

    async def start(self) -> None:
        """Listen; on the same port as before if it was stopped."""
        if self._port == 0:
            self._port = self._hold_free_port()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, reuse_address=True, ssl_context=self._ssl_context)
        await site.start()
        if self._unix_socket is not None:
            await web.UnixSite(runner, str(self._unix_socket)).start()
        self._runner = runner

    def _hold_free_port(self) -> int:
        """Find a free port, and keep it from others while this is stopped by a socket that never listens."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = int(holder.getsockname()[1])
        weakref.finalize(self, os.close, holder.detach())
        return port

    async def stop(self) -> None:
        """Stop listening and break all connections; what is known stays known."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def upgrade(self, release: str) -> None:
        """Become another release, with its data parsers."""
        self.world.release = release
        self.versions = PARSERS_OF_RELEASE[release[:5]]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def calls(self, operation: str) -> list[RecordedRequest]:
        """Return the recorded requests of one operation, e.g. ``get_nodes``."""
        return [request for request in self.requests if request.operation == operation]

    # one request

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        version, operation, parameters = self._route(request.method, request.path)
        try:
            body = json.loads(text) if text else None
        except ValueError:
            body = text
        self.requests.append(
            RecordedRequest(
                request.method,
                request.path,
                operation,
                _query(request),
                body,
                dict(request.headers),
                time.monotonic(),
            )
        )
        fault = self.faults.take(request.method, request.path)
        if fault is not None and not fault.late:
            await misbehaviour.before_answering(fault, request)
        call = Call(version, operation, parameters, _query(request), body, "")
        status, content, content_type = await self._answer(call, request)
        if fault is not None:
            if fault.late:
                await misbehaviour.before_answering(fault, request)
            return await misbehaviour.answer(fault, request, status, content, content_type)
        self.bytes_sent += len(content)
        return web.Response(status=status, body=content, content_type=content_type)

    def _route(self, method: str, path: str) -> tuple[str, str, Mapping[str, str]]:
        """Return data parser, operation and parameters of the path; an empty operation for an unknown URL."""
        match = re.fullmatch(r"/(slurm|slurmdb)/(v0\.0\.\d+)(/.*)", path)
        if match is None or match.group(2) not in self.versions:
            return "", "", {}
        service, version, below = match.groups()
        # A literal path goes before one with a parameter that would take it as well.
        for endpoint in sorted(wire.endpoints(version), key=lambda each: "{" in each.path):
            if endpoint.service != service or self.world.release < _SINCE.get(endpoint.operation, ""):
                continue
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(endpoint.path))
            found = re.fullmatch(pattern, below)
            if found is not None and endpoint.method == method:
                return version, endpoint.operation, found.groupdict()
        return "", "", {}

    async def _answer(self, call: Call, request: web.Request) -> tuple[int, bytes, str]:
        token = request.headers.get("X-SLURM-USER-TOKEN")
        if token is None and "Authorization" in request.headers:
            token = request.headers["Authorization"].removeprefix("Bearer ")
        local_user = _local_user(request) if self._local and token is None else None
        if token is None and local_user is None:
            return 401, b"Authentication failure", "text/plain"
        if not call.operation:
            sentence = (
                "Unable to find requested URL endpoint."
                if self.world.clears_reasons
                else ("Unable find requested URL. Please view /openapi/v3 for API reference.")
            )
            return 404, sentence.encode(), "text/plain"
        user = local_user if token is None else self._user_of(token)
        if user is None:
            return self._written_reply(call, _bad_token(call))
        call.user = request.headers.get("X-SLURM-USER-NAME") or user or ""
        if call.operation.startswith("db_"):
            return self._written_reply(call, self._slurmdbd.answer(call, self.operators))
        handler: Handler | None = getattr(self, f"_{call.operation}", None)
        if handler is None:
            reply = Reply(status=500, errors=[error(2036, f"the fake has no {call.operation}")])
            return self._written_reply(call, reply)
        try:
            self._check_user(call)
            reply = await handler(call)
        except Refusal as refusal:
            reply = self._refused(refusal)
        return self._written_reply(call, reply)

    def _check_user(self, call: Call) -> None:
        if call.operation in _FOR_OPERATORS and call.user not in self.operators:
            raise Refusal(2010, f"{call.operation} refused")

    def _refused(self, refusal: Refusal) -> Reply:
        """Answer a refusal of slurmctld with the status the release gives it."""
        status = 422 if self.world.clears_reasons else 500
        if refusal.number == INVALID_JOB:
            status = 404
        found = [error(refusal.number, refusal.description)]
        if refusal.before is not None:
            found.insert(0, error(*refusal.before))
        return Reply(status=status, errors=found)

    def _user_of(self, token: str) -> str | None:
        """Return the user a token speaks for; ``None`` if it is bad."""
        import jwt

        try:
            if not token:
                return None
            if self.key is not None:
                claims = jwt.decode(token, self.key, algorithms=["HS256"], options={"require": ["exp", "iat"]})
            else:
                claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.PyJWTError:
            return None if self.key is not None else "slurm"
        return str(claims.get("sun", "slurm"))


def _local_user(request: web.Request) -> str | None:
    """Return the user of the process at the other end of a unix socket; ``None`` for a connection over TCP."""
    connection = request.transport.get_extra_info("socket") if request.transport is not None else None
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _bad_token(call: Call) -> Reply:
    """Answer a token that slurmctld, or slurmdbd, does not take."""
    if call.operation == "get_ping":
        return Reply({"pings": [encode.ping("fake", False, call.version)]})  # noqa: FBT003
    if call.operation.startswith("db_"):
        return Reply(status=502, errors=[AWAY])
    return Reply(status=511, errors=[error(1007, f"{call.operation} refused", "Protocol authentication error")])


def _query(request: web.Request) -> dict[str, str]:
    """Return the parameters of a query; the values of one that is repeated are joined by commas."""
    return {name: ",".join(request.query.getall(name)) for name in request.query}
