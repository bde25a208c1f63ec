"""Commands in containers without kubectl: what is understood, and what a stream of messages says."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from typing import cast

import pytest

from hack.localkube import execs
from hack.localkube.api_server import ApiServer
from hack.localkube.commands import LeftToKubectl
from hack.localkube.execs import Exec

SUCCESS = {"status": "Success"}
EXIT_3 = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("exec", "p", "--", "ls", "-l"), Exec("default", "p", "", ("ls", "-l"))),
        (("--namespace", "a", "exec", "p", "--container=c", "--", "x"), Exec("a", "p", "c", ("x",))),
        (("exec", "-n", "a", "p", "-c", "c", "--", "sh", "--", "-n"), Exec("a", "p", "c", ("sh", "--", "-n"))),
    ],
)
def test_a_command_in_a_container_is_understood(arguments: Sequence[str], wanted: Exec) -> None:
    assert execs.read(arguments) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        ("exec", "p", "ls"),
        ("exec", "deploy/p", "--", "ls"),
        ("exec", "--stdin", "p", "--", "sh"),
        ("exec", "-it", "p", "--", "sh"),
        ("exec", "p", "q", "--", "ls"),
        ("logs", "p", "--", "exec"),
    ],
)
def test_what_says_more_is_left_to_kubectl(arguments: Sequence[str]) -> None:
    assert execs.read(arguments) is None


def frame(content: bytes, first: int = 0x82) -> bytes:
    if len(content) < 126:
        return bytes([first, len(content)]) + content
    if len(content) < 65536:
        return bytes([first, 126]) + struct.pack("!H", len(content)) + content
    return bytes([first, 127]) + struct.pack("!Q", len(content)) + content


def ended(status: object) -> bytes:
    return frame(b"\x03" + json.dumps(status).encode())


class Server:
    """Answers one request with the same bytes, whatever is asked."""

    def __init__(self, answer: bytes, *, stays: bool = False) -> None:
        self._listening, self._answer, self._stays = socket.create_server(("127.0.0.1", 0)), answer, stays
        self.read = b""
        self.end = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with closing(self._listening), closing(self._listening.accept()[0]) as stream:
            while b"\r\n\r\n" not in self.read:
                self.read += stream.recv(65536)
            stream.sendall(self._answer)
            if self._stays:
                self.end.wait(60)
            stream.shutdown(socket.SHUT_WR)
            while piece := stream.recv(65536):
                self.read += piece

    def connection(self, timeout: float) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self._listening.getsockname()[1], timeout=timeout)

    def join(self) -> None:
        self.end.set()
        self._thread.join()


def run(*messages: bytes, head: bytes = b"HTTP/1.1 101 Switching Protocols\r\nA: b\r\n\r\n") -> tuple[str, bytes]:
    server = Server(head + b"".join(messages))
    try:
        printed = execs.run(cast("ApiServer", server), Exec("a", "p", "c", ("echo", "a b&c")), 60)
    finally:
        server.join()
    return printed, server.read


@pytest.fixture
def silent() -> Iterator[Server]:
    server = Server(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + frame(b"\x01some"), stays=True)
    yield server
    server.join()


@pytest.mark.parametrize("length", [0, 1, 124, 125, 126, 65534, 65535, 65536, 300_000])
def test_all_that_is_printed_arrives(length: int) -> None:
    text = b"x" * length
    printed, asked = run(frame(b"\x01" + text), frame(b"\x02not this"), frame(b"\x01!"), ended(SUCCESS))
    assert printed == f"{text.decode()}!"
    assert b"GET /api/v1/namespaces/a/pods/p/exec?container=c&stdout=true&stderr=true&command=echo&" in asked
    assert b"command=a+b%26c " in asked


def test_a_message_in_pieces_is_one_and_a_ping_is_answered() -> None:
    pieces = (frame(b"\x01a", first=0x02), frame(b"yes?", first=0x89), frame(b"b", first=0x80))
    printed, asked = run(*pieces, ended(SUCCESS))
    assert printed == "ab"
    head, _, pong = asked.partition(b"\r\n\r\n")
    assert (pong[0], pong[1]) == (0x8A, 0x84), head
    assert bytes(byte ^ mask for byte, mask in zip(pong[6:10], pong[2:6], strict=True)) == b"yes?"


def test_a_command_that_fails_is_told_in_the_words_of_kubectl() -> None:
    with pytest.raises(execs.Failed, match="no such file\ncommand terminated with exit code 3"):
        run(frame(b"\x02no such file\n"), ended(EXIT_3))


def test_a_connection_that_ends_early_is_no_success() -> None:
    with pytest.raises(execs.Failed, match="the connection has ended"):
        run(frame(b"\x01half"))


def test_what_is_refused_is_left_to_kubectl() -> None:
    with pytest.raises(LeftToKubectl):
        run(head=b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def test_a_command_that_does_not_end_is_given_up(silent: Server) -> None:
    with pytest.raises(TimeoutError):
        execs.run(cast("ApiServer", silent), Exec("a", "p", "c", ("sleep", "9")), 0.1)
