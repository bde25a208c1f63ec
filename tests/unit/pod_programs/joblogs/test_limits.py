"""What callers may use: time, connections, and what becomes of one who takes nothing."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from typing_extensions import override

from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server.listener import Limits, Server
from slinky_operator.pod_programs.joblogs.server.opening import NotOpened, Opener

PATIENCE = 120.0
SHORT = 0.3


class OneFile(Opener):
    """Opens the same file for every token, or says why not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refusal: NotOpened | None = None

    @override
    def open(self, token: str, caller: str) -> int:
        if self.refusal is not None:
            raise self.refusal
        return os.open(self.path, os.O_RDONLY)


@contextmanager
def serving(opener: Opener, limits: Limits) -> Iterator[tuple[Server, int]]:
    server = Server(opener, limits)
    before = threading.stack_size()
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    try:
        yield server, listener.getsockname()[1]
    finally:
        threading.stack_size(before)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def ask(connection: socket.socket, more: str = "") -> None:
    connection.sendall(f"GET /output?offset=0{more} HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n".encode())


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_free(server: Server) -> bool:
    """Whether the server remembers no connection."""
    return not len(server._connections)


def test_a_caller_that_takes_nothing_is_given_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    big = tmp_path / "big"
    big.touch()
    os.truncate(big, 64 * 1024 * 1024)
    with serving(OneFile(big), Limits(stalled_seconds=SHORT)) as (server, port), connect(port) as connection:
        ask(connection)
        wait_for(lambda: not is_free(server))
        wait_for(lambda: is_free(server))
    assert "takes nothing, or too little" in capfd.readouterr().err


def test_a_request_without_an_end_is_given_up(tmp_path: Path) -> None:
    with serving(OneFile(tmp_path), Limits(head_seconds=SHORT)) as (server, port), connect(port) as connection:
        connection.sendall(b"GET /out")
        assert connection.recv(1) == b""
        wait_for(lambda: is_free(server))


def test_a_caller_that_has_gone_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_WAIT", 10 * PATIENCE)
    path = tmp_path / "empty"
    path.touch()
    with serving(OneFile(path), Limits()) as (server, port):
        with connect(port) as connection:
            ask(connection, f"&wait={10 * PATIENCE}")
            wait_for(lambda: not is_free(server))
        wait_for(lambda: is_free(server))


def test_all_together_have_so_many_connections(tmp_path: Path) -> None:
    with serving(OneFile(tmp_path), Limits(connections=2, per_peer=5)) as (server, port):
        with connect(port), connect(port):
            wait_for(lambda: len(server._connections) == 2)
            with connect(port) as third:
                assert third.recv(4096).startswith(b"HTTP/1.1 503 ")
        wait_for(lambda: is_free(server))


def test_a_missing_file_can_be_asked_for_again_on_the_same_connection(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"here")
    opener = OneFile(path)
    with serving(opener, Limits()) as (_, port), connect(port) as connection:
        opener.refusal = NotOpened(HTTPStatus.NOT_FOUND, "no file")
        ask(connection)
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")
        opener.refusal = None
        ask(connection)
        wait_for(lambda: b"here" in connection.recv(4096))
        opener.refusal = NotOpened(HTTPStatus.FORBIDDEN, "no")
        ask(connection)
        assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")
        assert connection.recv(1) == b""


def test_callers_do_not_fill_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    opener = OneFile(tmp_path)
    opener.refusal = NotOpened(HTTPStatus.FORBIDDEN, "the token is not valid here")
    with serving(opener, Limits()) as (server, port):
        server._log = Log(3, lambda: 0.0)
        for _ in range(10):
            with connect(port) as connection:
                ask(connection)
                assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")
        wait_for(lambda: is_free(server))
    said = capfd.readouterr().err.splitlines()
    assert said == ["job-log-server: 127.0.0.1: 403 the token is not valid here"] * 3


def test_a_file_that_is_cut_while_it_is_sent_ends_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 15 * 1024 * 1024)
    with serving(OneFile(path), Limits()) as (server, port), socket.socket() as connection:
        # Small, so that the file does not fit into buffers on the way.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", port))
        ask(connection)
        connection.recv(1)
        os.truncate(path, 10)
        received = 1
        while piece := connection.recv(1024 * 1024):
            received += len(piece)
        assert received < 15 * 1024 * 1024
        wait_for(lambda: is_free(server))
