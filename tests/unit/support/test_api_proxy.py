"""What a proxy to an API server does to requests is a rule, and is what clients meet."""

from __future__ import annotations

import datetime
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from hack.localkube.servers.pki import Authority
from tests.support.api_proxy import NONE, ApiProxy, Treatment, Trouble, treat

LATE, REFUSE, PASS = Treatment.LATE, Treatment.REFUSE, Treatment.PASS


@pytest.mark.parametrize(
    ("trouble", "method", "watch", "expected"),
    [
        (NONE, "GET", False, PASS),
        (Trouble(delay=1), "GET", True, LATE),
        (Trouble(code=500), "GET", True, REFUSE),
        (Trouble(code=429), "POST", False, REFUSE),
        (Trouble(code=409), "PATCH", False, REFUSE),
        (Trouble(code=409), "PUT", False, REFUSE),
        # It would say that an object is there which is not.
        (Trouble(code=409), "POST", False, PASS),
        (Trouble(code=409), "GET", False, PASS),
        (Trouble(unanswered=True), "GET", False, PASS),
        (Trouble(unanswered=True), "POST", False, Treatment.CARRY_OUT),
        (Trouble(unanswered=True), "DELETE", False, Treatment.CARRY_OUT),
        (Trouble(drops=True), "GET", True, Treatment.DROP),
        (Trouble(drops=True), "GET", False, PASS),
    ],
)
def test_a_trouble_is_that_of_some_requests(trouble: Trouble, method: str, watch: bool, expected: Treatment) -> None:
    assert treat(trouble, method, watch=watch, chance=0.0) is expected


def test_only_a_share_of_them_meets_it() -> None:
    half = Trouble(code=500, share=0.5)
    assert treat(half, "GET", watch=False, chance=0.49) is REFUSE
    assert treat(half, "GET", watch=False, chance=0.5) is PASS


class _Server(BaseHTTPRequestHandler):
    """Answers with what it was asked; a watch has one line, and the next one never comes."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012 of all connections
    go_on = threading.Event()

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self.asked.append(f"GET {self.path} {self.headers.get('Authorization')}")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"4\r\nline\r\n")
        if "watch" in self.path:
            self.go_on.wait(60)
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(f"POST {self.path} {body.decode()}")
        self.send_response(201)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    authority = Authority(folder, datetime.datetime.now(datetime.UTC))
    authority.issue("apiserver", "kube-apiserver", hosts=["127.0.0.1"])
    return folder


@pytest.fixture
def proxy(pki: Path) -> Iterator[ApiProxy]:
    _Server.asked.clear()
    _Server.go_on.clear()
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    server.daemon_threads, server.block_on_close = True, False
    server.socket = shown.wrap_socket(server.socket, server_side=True)
    found = ApiProxy(socket.create_server(("127.0.0.1", 0)), ("127.0.0.1", server.server_port), pki)
    with _serving(server), _serving(found):
        yield found
        _Server.go_on.set()


@pytest.fixture
def client(proxy: ApiProxy) -> Iterator[http.client.HTTPSConnection]:
    port = proxy.socket.getsockname()[1]
    trusted = ssl.create_default_context(cafile=str(proxy.pki / "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=60)
    yield connection
    connection.close()


def asked(client: http.client.HTTPSConnection, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    client.request(method, path, body=body, headers={"Authorization": "Bearer t"})
    answer = client.getresponse()
    return answer.status, answer.read()


def test_requests_are_passed_on_with_their_tokens_and_one_connection_is_kept(
    client: http.client.HTTPSConnection,
) -> None:
    assert asked(client, "GET", "/a") == (200, b"line")
    assert asked(client, "POST", "/b", "{}") == (201, b"{}")
    assert _Server.asked == ["GET /a Bearer t", "POST /b {}"]


def test_a_refusal_is_a_status_and_does_not_reach_the_server(
    proxy: ApiProxy, client: http.client.HTTPSConnection
) -> None:
    proxy.begin(Trouble(code=429))
    status, body = asked(client, "POST", "/b", "{}")
    assert (status, json.loads(body)["reason"], _Server.asked) == (429, "TooManyRequests", [])
    proxy.begin(NONE)
    assert asked(client, "POST", "/b", "{}") == (201, b"{}")


def test_a_write_without_an_answer_is_carried_out(proxy: ApiProxy, client: http.client.HTTPSConnection) -> None:
    proxy.begin(Trouble(unanswered=True))
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(client, "POST", "/b", "{}")
    assert _Server.asked == ["POST /b {}"]


def test_watches_that_are_there_end_as_if_they_were_cut(proxy: ApiProxy, client: http.client.HTTPSConnection) -> None:
    client.request("GET", "/a?watch=true")
    answer = client.getresponse()
    assert answer.read(4) == b"line"
    proxy.begin(Trouble(drops=True))
    with pytest.raises((http.client.HTTPException, OSError)):
        answer.read()
    client.close()
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(client, "GET", "/a?watch=true")
