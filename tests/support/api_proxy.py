"""A proxy to the API server of a local Kubernetes, for the operator alone, that can be slow, refuse, or drop watches.

It listens in the network of the control plane, at the address that the certificate of the API server names, so that
pods reach it there. What it does to a request is a rule without I/O (`treat`); requests keep their tokens.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import SystemRandom
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override

from hack.localkube.cluster import CONTROL_PLANE, Cluster

PORT: Final = 7443
"""In the network of the control plane."""

SLICE: Final = 10.0
"""Seconds whose requests are counted together."""

_NEW_NETWORK: Final = 0x40000000
_HOP: Final = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length", "host"})
_CHUNK: Final = 65_536
_RANDOM: Final = SystemRandom()

REASONS: Final = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
"""Of refusals, by their code."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with the API server.

    Attributes
    ----------
    code
        With which a request is refused; 0 for none.
    delay
        Seconds that a request is kept back.
    unanswered
        Whether writes are carried out, and the connection is closed in the place of an answer.
    drops
        Whether watches end, those that are there and new ones.
    share
        Share of the requests for which that holds.
    """

    code: int = 0
    delay: float = 0.0
    unanswered: bool = False
    drops: bool = False
    share: float = 1.0


NONE: Final = Trouble()


class Treatment(Enum):
    """What becomes of one request."""

    PASS = "passed on"
    LATE = "passed on late"
    REFUSE = "refused"
    CARRY_OUT = "carried out without an answer"
    DROP = "closed"


def treat(trouble: Trouble, method: str, *, watch: bool, chance: float) -> Treatment:
    """Decide about one request.

    An API server that says Conflict means an update of an object that has changed: 409 is no answer to other requests.

    Parameters
    ----------
    chance
        From 0 to 1; a request is treated so if it is below the share.
    """
    if chance >= trouble.share:
        return Treatment.PASS
    if trouble.code == 409:
        return Treatment.REFUSE if method in {"PUT", "PATCH"} else Treatment.PASS
    if trouble.code:
        return Treatment.REFUSE
    if trouble.unanswered:
        return Treatment.PASS if method == "GET" else Treatment.CARRY_OUT
    if trouble.drops:
        return Treatment.DROP if watch else Treatment.PASS
    return Treatment.LATE if trouble.delay else Treatment.PASS


class ApiProxy(ThreadingHTTPServer):
    """The proxy; `trouble` may be changed at any time.

    Parameters
    ----------
    listening
        Socket at which it is reached.
    server
        Host and port of the API server.
    pki
        Folder with the certificates of the control plane.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, server: tuple[str, int], pki: Path) -> None:
        super().__init__(listening.getsockname(), _Request, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server = server
        self.pki = pki
        self.trusted = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.trouble = NONE
        self.counts: dict[str, int] = {}
        """Requests by what became of them, since the last `begin`."""
        self.asked: dict[int, Counter[str]] = {}
        """Requests by method and path, by number of the slice of time; see `take_asked`."""
        self._shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._shown.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self._watches: set[socket.socket] = set()
        self._lock = threading.Lock()

    def begin(self, trouble: Trouble) -> None:
        """Let this be wrong from now on; `NONE` ends it."""
        with self._lock:
            self.counts = {}
        self.trouble = trouble
        if trouble.drops and (dropped := self.drop_watches()):
            with self._lock:
                self.counts[Treatment.DROP.value] = self.counts.get(Treatment.DROP.value, 0) + dropped

    def drop_watches(self) -> int:
        """End every watch that is there; how many."""
        with self._lock:
            found = [*self._watches]
        for one in found:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(found)

    def count(self, treatment: Treatment) -> None:
        with self._lock:
            self.counts[treatment.value] = self.counts.get(treatment.value, 0) + 1

    def note(self, method: str, path: str, *, watch: bool) -> None:
        """Note that something was asked for."""
        what = f"{'WATCH' if watch else method} {urlsplit(path).path}"
        with self._lock:
            self.asked.setdefault(int(time.monotonic() // SLICE), Counter())[what] += 1

    def take_asked(self) -> list[Counter[str]]:
        """What was asked for since the last call, by slices of time."""
        with self._lock:
            found, self.asked = [*self.asked.values()], {}
        return found

    @contextmanager
    def watched(self, connection: socket.socket) -> Iterator[None]:
        """Know a connection as that of a watch."""
        with self._lock:
            self._watches.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._watches.discard(connection)

    @override
    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        # The handshake is the thread's: nobody waits for a client that begins none.
        return self._shown.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that end are what is wanted here."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiProxy
    _upstream: http.client.HTTPSConnection | None = None

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    @override
    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        with suppress(OSError):
            super().finish()

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        watch = parse_qs(urlsplit(self.path).query).get("watch", [""])[0] in {"1", "true"}
        self.server.note(self.command, self.path, watch=watch)
        trouble = self.server.trouble
        treatment = treat(trouble, self.command, watch=watch, chance=_RANDOM.random())
        self.server.count(treatment)
        if treatment is Treatment.REFUSE:
            self._refuse(trouble.code)
            return
        if treatment is Treatment.DROP:
            self.close_connection = True
            return
        if treatment is Treatment.LATE:
            time.sleep(trouble.delay)
        try:
            self._pass_on(body, watch=watch, answer=treatment is not Treatment.CARRY_OUT)
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    @override
    def handle_one_request(self) -> None:
        """Take a request of any method by one way."""
        self.raw_requestline = self.rfile.readline(_CHUNK)
        if not self.raw_requestline:
            self.close_connection = True
        elif self.parse_request():
            self._any()
            self.wfile.flush()

    def _refuse(self, code: int) -> None:
        status = {
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": REASONS[code],
            "message": "the campaign says so",
        }  # fmt: skip
        body = json.dumps(status).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, body: bytes, *, watch: bool, answer: bool) -> None:
        response = self._asked(body)
        if not answer:
            response.read()
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        length = response.getheader("Content-Length")
        bodiless = self.command == "HEAD" or response.status in {204, 304}
        if length is not None or bodiless:
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(response.read())
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        assert self._upstream is not None
        if watch:
            with self.server.watched(self._upstream.sock):
                self._stream(response)
        else:
            self._stream(response)

    def _stream(self, response: http.client.HTTPResponse) -> None:
        while piece := response.read1(_CHUNK):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        if not response.isclosed():
            # It was cut: a client must not take it for whole.
            raise http.client.IncompleteRead(b"")
        self.wfile.write(b"0\r\n\r\n")

    def _asked(self, body: bytes) -> http.client.HTTPResponse:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        if self._upstream is None:
            host, port = self.server.server
            self._upstream = http.client.HTTPSConnection(host, port, context=self.server.trusted, timeout=None)
        sent = body if body or self.command in {"POST", "PUT", "PATCH"} else None
        self._upstream.request(self.command, self.path, body=sent, headers=headers)
        return self._upstream.getresponse()


@contextmanager
def before(cluster: Cluster) -> Iterator[ApiProxy]:
    """Run one for a local Kubernetes that is up."""
    server = _server(cluster)
    proxy = ApiProxy(_listen(cluster.machine(CONTROL_PLANE).pid, server[0]), server, cluster.paths.pki)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def environment(cluster: Cluster) -> list[dict[str, str]]:
    """Variables by which a pod takes the proxy for the API server."""
    return [
        {"name": "KUBERNETES_SERVICE_HOST", "value": _server(cluster)[0]},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(PORT)},
    ]


def _server(cluster: Cluster) -> tuple[str, int]:
    (one,) = json.loads(cluster.paths.kubeconfig.read_text())["clusters"]
    address = urlsplit(one["cluster"]["server"])
    return str(address.hostname), int(address.port or 443)


def _listen(process: int, host: str) -> socket.socket:
    """A socket in the network of a process at which the proxy is reached."""

    def there() -> socket.socket:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, PORT))
        listening.listen(128)
        return listening

    return in_network(process, there)


def in_network(process: int, make: Callable[[], socket.socket]) -> socket.socket:
    """Make a socket in the network of a process: a thread of its own goes there, and ends.

    Raises
    ------
    OSError
        There is no such process, or the socket cannot be made there.
    """
    made: list[socket.socket | OSError] = []

    def there() -> None:
        try:
            network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(network, _NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(network)
            made.append(make())
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    (found,) = made
    if isinstance(found, OSError):
        raise found
    return found
