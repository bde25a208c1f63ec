"""
The HTTP side of the fake: paths, tokens, statuses, and the faults that are asked for.

What is true in the pretended cluster is left to :mod:`slurm_client.testing.world`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from slurm_client import error_numbers, hostlist, wire
from slurm_client.testing import encode
from slurm_client.testing.faults import Faults
from slurm_client.testing.world import INVALID_JOB, Refusal, World

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from slurm_client.testing.faults import Fault

    Handler = Callable[["Call"], Awaitable["Reply"]]

_SIGNALS = frozenset({"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CONT", "STOP", "TSTP"})

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
        "delete_reservation",
    }
)
"""Operations not every user may do."""

_FILTERS = (("user_name", "user"), ("partition", "partition"), ("account", "account"), ("job_name", "name"))
"""Keys by which many jobs are chosen, and the fields they are compared with."""

_SINCE = {"post_nodes": "24.11", "delete_reservation": "25.05"}
"""Releases that brought an operation to data parsers that existed before."""

_PARSERS_OF_RELEASE = {
    "24.05": ("v0.0.40", "v0.0.41"),
    "24.11": ("v0.0.40", "v0.0.41", "v0.0.42"),
    "25.05": ("v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"),
    "25.11": ("v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"),
    "26.05": ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it came in: what was asked, with what, and when (monotonic seconds)."""

    method: str
    path: str
    operation: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]
    at: float


@dataclass(slots=True)
class Call:
    """A request on its way through the server."""

    version: str
    operation: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    user: str


@dataclass(slots=True)
class Reply:
    """What is to be answered."""

    payload: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    errors: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    raw: bytes | None = None


class FakeSlurmrestd:
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
    ssl_context
        Speak TLS on the port.
    clock
        Seconds since 1970.

    Attributes
    ----------
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
        Users who may change nodes, partitions and reservations.
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
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.world = World(clock=clock, release=release)
        self.world.add_partition("all", flags=frozenset({"DEFAULT"}))
        self.versions = tuple(versions or _PARSERS_OF_RELEASE[release[:5]])
        self.key = key
        self.faults = Faults()
        self.requests: list[RecordedRequest] = []
        self.controller_up = True
        self.conf: dict[str, Any] = {}
        self.operators = {"root", "slurm"}
        self.bytes_sent = 0
        self._pretty = pretty
        self._unix_socket = unix_socket
        self._ssl_context = ssl_context
        self._clock = clock
        self._port = port
        self._runner: web.AppRunner | None = None
        self._written: dict[tuple[str, str], tuple[object, str]] = {}
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
    def partitions(self) -> dict[str, Any]:
        """Partitions of the pretended cluster by name."""
        return self.world.partitions

    async def start(self) -> None:
        """Listen; on the same port as before if it was stopped."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, reuse_address=True, ssl_context=self._ssl_context)
        await site.start()
        if self._unix_socket is not None:
            await web.UnixSite(runner, str(self._unix_socket)).start()
        if self._port == 0:
            self._port = int(runner.addresses[0][1])
        self._runner = runner

    async def stop(self) -> None:
        """Stop listening and break all connections; what is known stays known."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def upgrade(self, release: str) -> None:
        """Become another release, with its data parsers."""
        self.world.release = release
        self.versions = _PARSERS_OF_RELEASE[release[:5]]

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
                dict(request.query),
                body,
                dict(request.headers),
                time.monotonic(),
            )
        )
        fault = self.faults.take(request.method, request.path)
        if fault is not None and not fault.late:
            await self._misbehave_before(fault, request)
        call = Call(version, operation, parameters, dict(request.query), body, "")
        status, content, content_type = await self._answer(call, request)
        if fault is not None:
            if fault.late:
                await self._misbehave_before(fault, request)
            return await self._misbehave(fault, request, status, content, content_type)
        self.bytes_sent += len(content)
        return web.Response(status=status, body=content, content_type=content_type)

    async def _misbehave_before(self, fault: Fault, request: web.Request) -> None:
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.hang:
            await asyncio.Event().wait()
        if fault.disconnect and request.transport is not None:
            request.transport.abort()
            raise asyncio.CancelledError

    async def _misbehave(
        self, fault: Fault, request: web.Request, status: int, content: bytes, content_type: str
    ) -> web.StreamResponse:
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

    def _route(self, method: str, path: str) -> tuple[str, str, Mapping[str, str]]:
        """Return data parser, operation and parameters of the path; an empty operation for an unknown URL."""
        match = re.fullmatch(r"/slurm/(v0\.0\.\d+)(/.*)", path)
        if match is None or match.group(1) not in self.versions:
            return "", "", {}
        version, below = match.groups()
        # A literal path goes before one with a parameter that would take it as well.
        for endpoint in sorted(wire.endpoints(version), key=lambda each: "{" in each.path):
            if self.world.release < _SINCE.get(endpoint.operation, ""):
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
        if token is None:
            return 401, b"Authentication failure", "text/plain"
        if not call.operation:
            sentence = (
                "Unable to find requested URL endpoint."
                if self.world.clears_reasons
                else ("Unable find requested URL. Please view /openapi/v3 for API reference.")
            )
            return 404, sentence.encode(), "text/plain"
        user = self._user_of(token)
        if user is None and call.operation == "get_ping":
            return self._written_reply(call, Reply({"pings": [encode.ping("fake", False, call.version)]}))  # noqa: FBT003
        if user is None:
            reply = Reply(
                status=511,
                errors=[_error(1007, f"{call.operation} refused", "Protocol authentication error")],
            )
            return self._written_reply(call, reply)
        call.user = request.headers.get("X-SLURM-USER-NAME") or user or ""
        handler: Handler | None = getattr(self, f"_{call.operation}", None)
        if handler is None:
            reply = Reply(status=500, errors=[_error(2036, f"the fake has no {call.operation}")])
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
        found = [_error(refusal.number, refusal.description)]
        if refusal.before is not None:
            found.insert(0, _error(*refusal.before))
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

    def _written_reply(self, call: Call, reply: Reply) -> tuple[int, bytes, str]:
        if reply.raw is not None:
            return reply.status, reply.raw, "application/json"
        if reply.status == 304:
            return 304, b"", "application/json"
        major, minor, micro = (*self.world.release.split("."), "0", "0")[:3]
        payload = {
            **reply.payload,
            "meta": {
                "plugin": {
                    "type": "openapi/slurmctld",
                    "name": "Slurm OpenAPI slurmctld",
                    "data_parser": f"data_parser/{call.version}",
                    "accounting_storage": "",
                },
                "client": {"source": "127.0.0.1", "user": "root", "group": "root"},
                "command": [],
                "slurm": {
                    "version": {"major": major, "micro": micro, "minor": minor},
                    "release": self.world.release,
                    "cluster": "fake",
                },
            },
            "errors": reply.errors,
            "warnings": reply.warnings,
        }
        return reply.status, self._dump(payload).encode(), "application/json"

    def _dump(self, value: Any) -> str:
        return json.dumps(value, indent=2) if self._pretty else json.dumps(value, separators=(",", ":"))

    def _dump_list(self, call: Call, key: str, objects: Sequence[Any], write: Callable[[Any, str], Any]) -> bytes:
        """Write a long list, object by object, keeping what has been written before."""
        parts = []
        for value in objects:
            name = (call.version, f"{key} {getattr(value, 'name', '') if key != 'jobs' else value.id}")
            known = self._written.get(name)
            if known is None or known[0] is not value:
                known = self._written[name] = (value, self._dump(write(value, call.version)))
            parts.append(known[1])
        times = {"last_update": encode.moment(self.world.now)}
        if key == "jobs":
            times["last_backfill"] = encode.moment(None)
        rest = self._written_reply(call, Reply(dict(times)))[1].decode()
        return f'{{"{key}":[{",".join(parts)}],{rest.lstrip()[1:]}'.encode()

    def _unchanged_since(self, call: Call, changed: float) -> bool:
        """Whether ``update_time`` is given and nothing has changed since; Slurm counts in whole seconds."""
        given = call.query.get("update_time")
        return given is not None and int(changed) < int(given)

    # operations, by their names in the specification

    async def _get_ping(self, call: Call) -> Reply:
        return Reply({"pings": [encode.ping("fake", self.controller_up, call.version)]})

    async def _get_diag(self, call: Call) -> Reply:
        jobs = self.world.jobs.values()
        counts = {
            "jobs_pending": sum(job.is_pending for job in jobs),
            "jobs_running": sum(job.is_running for job in jobs),
        }
        return Reply({"statistics": encode.statistics(self.world.now, counts, call.version)})

    async def _get_reconfigure(self, _: Call) -> Reply:
        self.world.reconfigure()
        return Reply()

    async def _get_nodes(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.nodes_changed):
            return Reply(status=304)
        if not self.world.clears_reasons and self._unchanged_since(call, self.world.partitions_changed):
            return Reply(status=500, errors=[_error(-1, "Unable to query partitions", "Unspecified error")])
        return Reply(raw=self._dump_list(call, "nodes", list(self.world.nodes.values()), encode.node))

    def _refused_update_time(self, call: Call) -> Reply | None:
        """Refuse ``update_time`` as v0.0.40 and v0.0.41 do."""
        if "update_time" not in call.query or call.version >= "v0.0.42":
            return None
        return Reply(
            status=500,
            errors=[
                _error(9202, f"Parsing of {call.query['update_time']} for timestamp failed"),
                _error(9000, "Rejecting request. Failure parsing query."),
            ],
        )

    async def _get_node(self, call: Call) -> Reply:
        name = call.parameters["node_name"]
        node = self.world.nodes.get(name)
        if node is None:
            return Reply(errors=[_error(0, f"Failure to query node {name}", "No error", "_dump_nodes")])
        return Reply(raw=self._dump_list(call, "nodes", [node], encode.node))

    async def _post_node(self, call: Call) -> Reply:
        self.world.apply_update([call.parameters["node_name"]], call.body or {}, call.user)
        return Reply()

    async def _post_nodes(self, call: Call) -> Reply:
        given = (call.body or {}).get("name") or []
        text = given if isinstance(given, str) else ",".join(given)
        self.world.apply_update(hostlist.expand(text), call.body, call.user)
        return Reply()

    async def _delete_node(self, call: Call) -> Reply:
        named = call.parameters["node_name"]
        refused: Refusal | None = None
        for name in named.split(","):
            try:
                self.world.delete_node(name)
            except Refusal as error:
                refused = error
        if refused is not None:
            raise Refusal(refused.number, f"Failure to delete node {named}")
        return Reply()

    async def _get_jobs(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.jobs_changed):
            warning = {"description": f"No job changes since update_time[{call.query['update_time']}]", "source": ""}
            return Reply({"jobs": [], "last_update": encode.moment(self.world.now)}, warnings=[warning])
        return Reply(raw=self._dump_list(call, "jobs", list(self.world.jobs.values()), encode.job))

    def _job_of(self, call: Call, doing: str) -> int:
        text = call.parameters["job_id"]
        if not text.isdecimal() or int(text) not in self.world.jobs:
            raise Refusal(INVALID_JOB, f"Unable to {doing} JobId={text}")
        return int(text)

    async def _get_job(self, call: Call) -> Reply:
        job = self.world.jobs[self._job_of(call, "query")]
        return Reply(raw=self._dump_list(call, "jobs", [job], encode.job))

    async def _delete_job(self, call: Call) -> Reply:
        text, signal = call.parameters["job_id"], call.query.get("signal")
        if not text.isdecimal():
            return Reply(status=422, errors=[_error(9000, "Rejecting request. Failure parsing parameters")])
        if signal is not None and signal.upper().removeprefix("SIG") not in _SIGNALS and not signal.isdecimal():
            sentence, source = "Unknown signal (null)", "#/signal/"
            if call.version < "v0.0.42":
                return Reply(status=500, errors=[_error(22, sentence, "Invalid argument", source)])
            return Reply({"status": []}, errors=[_error(0, sentence, "No error", source)])
        status = self._kill(int(text), signal)
        return Reply({"status": status}) if call.version >= "v0.0.42" else Reply()

    def _kill(self, job_id: int, signal: str | None) -> list[dict[str, Any]]:
        """Cancel or signal a job and return what is said of it: nothing if it went well."""
        try:
            self.world.cancel_job(job_id, signal)
        except Refusal as refusal:
            sentence = "Invalid job id specified" if refusal.number == INVALID_JOB else "Job already completed"
            return [
                {
                    "error": {"string": sentence, "code": refusal.number, "message": sentence},
                    "step_id": str(job_id),
                    "job_id": encode.number(job_id if refusal.number != INVALID_JOB else None),
                    "federation": {"sibling": ""},
                }
            ]
        return []

    async def _delete_jobs(self, call: Call) -> Reply:
        body = call.body or {}
        ids = [int(job_id) for job_id in body.get("jobs") or ()]
        if not ids:
            ids = [
                job.id
                for job in self.world.jobs.values()
                if not job.is_finished
                and all(key not in body or body[key] == getattr(job, field) for key, field in _FILTERS)
                and ("nodes" not in body or set(body["nodes"]) & set(job.nodes))
                and ("job_state" not in body or job.state.base in body["job_state"])
            ]
        status = [entry for job_id in ids for entry in self._kill(job_id, body.get("signal"))]
        return Reply({"status": status})

    async def _post_job_submit(self, call: Call) -> Reply:
        body = call.body or {}
        wishes = body.get("job") or {}
        if not (body.get("script") or wishes.get("script")):
            return Reply(status=422, errors=[_error(9000, 'Populated "script" field is required for job submission')])
        job = self.world.submit(wishes, call.user)
        return Reply({"job_id": job.id, "step_id": "batch", "job_submit_user_msg": ""})

    async def _post_job(self, call: Call) -> Reply:
        self.world.change_job(self._job_of(call, "update"), call.body or {})
        return Reply({"results": []})

    async def _get_job_requeue(self, call: Call) -> Reply:
        self.world.requeue_job(self._job_of(call, "requeue"))
        return Reply({"status": []})

    async def _get_resources(self, call: Call) -> Reply:
        job = self.world.jobs[self._job_of(call, "query")]
        return Reply({"nodes": [encode.layout(self.world.nodes[name]) for name in job.nodes if name in self.nodes]})

    async def _get_reservations(self, _: Call) -> Reply:
        found = [encode.reservation(each) for each in self.world.reservations.values()]
        return Reply({"reservations": found, "last_update": encode.moment(self.world.now)})

    async def _get_reservation(self, call: Call) -> Reply:
        found = self.world.reservations.get(call.parameters["reservation_name"])
        if found is None:
            source = "slurm_load_reservations()"
            return Reply(errors=[_error(0, "Unable to query reservations", "No error", source)])
        return Reply({"reservations": [encode.reservation(found)], "last_update": encode.moment(self.world.now)})

    async def _post_reservation(self, call: Call) -> Reply:
        made = self.world.reserve(call.body or {})
        return Reply({"reservations": [{"name": made.name}]})

    async def _delete_reservation(self, call: Call) -> Reply:
        self.world.unreserve(call.parameters["reservation_name"])
        return Reply()

    async def _get_licenses(self, call: Call) -> Reply:
        found = [encode.license_(each, call.version) for each in self.world.licenses.values()]
        return Reply({"licenses": found, "last_update": encode.moment(self.world.now)})

    async def _get_shares(self, _: Call) -> Reply:
        warning = {"description": "Shares list is empty because slurm accounting storage is disabled.", "source": ""}
        return Reply({"shares": {"shares": [], "total_shares": 0}}, warnings=[warning])

    async def _get_conf(self, _: Call) -> Reply:
        return Reply({"slurm_conf": {"ClusterName": "fake", "MaxNodeCount": 64, **self.conf}, "slurm_conf_meta": {}})

    async def _post_new_node(self, call: Call) -> Reply:
        self.world.create_node((call.body or {}).get("node_conf") or "")
        return Reply()

    async def _post_partitions(self, call: Call) -> Reply:
        for wishes in (call.body or {}).get("partitions") or ():
            self.world.change_partition(wishes)
        return Reply()

    async def _delete_partition(self, call: Call) -> Reply:
        self.world.delete_partition(call.parameters["partition_name"])
        return Reply()

    async def _get_jobs_state(self, _: Call) -> Reply:
        return Reply(
            {"jobs": [{"job_id": str(job.id), "state": encode.words(job.state)} for job in self.world.jobs.values()]}
        )

    async def _get_partitions(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.partitions_changed):
            return Reply(status=304)
        nodes = list(self.world.nodes.values())
        found = [encode.partition(each, nodes, call.version) for each in self.world.partitions.values()]
        return Reply({"partitions": found, "last_update": encode.moment(self.world.now)})

    async def _get_partition(self, call: Call) -> Reply:
        name = call.parameters["partition_name"]
        partition = self.world.partitions.get(name)
        if partition is None:
            sentence = f"Unable to find partition {name}"
            if self.world.clears_reasons:
                return Reply(warnings=[{"description": sentence, "source": "_partition_get"}])
            return Reply(status=422, errors=[_error(9000, sentence)])
        nodes = list(self.world.nodes.values())
        return Reply(
            {
                "partitions": [encode.partition(partition, nodes, call.version)],
                "last_update": encode.moment(self.world.now),
            }
        )


def _error(number: int, description: str, sentence: str = "", source: str = "") -> dict[str, Any]:
    sentence = sentence or error_numbers.name_of(number).lower().replace("_", " ") or "error"
    return {"description": description, "error_number": number, "error": sentence, "source": source}
