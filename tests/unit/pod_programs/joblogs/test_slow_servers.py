"""What answers in the place of the job log server may be any program: an answer has a length and an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs.copies import porter
from slinky_operator.pod_programs.joblogs.copies.events import Limits, Stopped
from slinky_operator.pod_programs.joblogs.copies.orders import Copy
from slinky_operator.pod_programs.joblogs.copies.orders import Place as CopyPlace
from slinky_operator.pod_programs.joblogs.follower import sources
from slinky_operator.pod_programs.joblogs.follower.job_file import Place
from slinky_operator.pod_programs.joblogs.follower.sources import ReadResult
from slinky_operator.pod_programs.joblogs.timed_socket import TimedSocket

pytestmark = pytest.mark.timeout(120)

FRAME = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"


@contextmanager
def server(first: bytes, then: bytes = b"") -> Iterator[str]:
    """Send something to each caller, and then a piece every few milliseconds until the caller has gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    # The test is over.
                    return
                threading.Thread(target=attend, args=(connection,), daemon=True).start()

        def attend(connection: socket.socket) -> None:
            pause = threading.Event()
            with connection:
                try:
                    connection.recv(65536)
                    connection.sendall(first)
                    while then:
                        connection.sendall(then)
                        pause.wait(0.01)
                    connection.recv(1)
                except OSError:
                    # The caller has gone.
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def read(url: str) -> tuple[ReadResult, str]:
    place = Place(url=url, token="t")
    source = sources.source_of(place)
    found = source.read(place, 0, 0.0, lambda _: None)
    source.close()
    return found.outcome, found.why


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4000\r\n\r\n", b"x"),
    ],
    ids=["status", "header", "headers", "reason"],
)
def test_an_answer_that_comes_byte_by_byte_is_given_up(
    monkeypatch: pytest.MonkeyPatch, first: bytes, then: bytes
) -> None:
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 0.3)
    with server(first, then) as url:
        outcome, why = read(url)
    assert outcome is ReadResult.FAILED
    assert why


def test_output_that_comes_byte_by_byte_is_given_up_and_what_came_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 3.0)
    with server(FRAME + b"Content-Length: 4000\r\n\r\n", b"x") as url:
        place = Place(url=url, token="t")
        source = sources.source_of(place)
        printed = bytearray()
        found = source.read(place, 0, 0.0, printed.extend)
        source.close()
    assert 0 < len(printed) == found.copied < 4000
    assert "taken too long" in found.why


@pytest.mark.parametrize(
    "length",
    [b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"\r\nhello", b"Content-Length: 99999999999\r\n\r\n"],
)
def test_an_answer_without_a_length_or_longer_than_one_may_be_is_refused(length: bytes) -> None:
    with server(FRAME + length, b"5\r\nhello\r\n") as url:
        outcome, why = read(url)
    assert outcome is ReadResult.FAILED
    assert "an answer of " in why


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n"])
def test_a_copy_whose_server_answers_byte_by_byte_stops(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: bytes
) -> None:
    monkeypatch.setattr(porter, "STALLED_SECONDS", 0.3)
    with server(first, b"x") as url:
        source = CopyPlace(url=url, token="t", proof_key="k")
        copy = Copy("a", source, CopyPlace(folder=str(tmp_path), path="a"), "mark", Limits(2**20, 10))
        with pytest.raises(Stopped, match="taken too long"):
            porter.once(copy)


def test_each_exchange_has_an_end_and_each_read_a_pause() -> None:
    now = 0.0
    with server(b"one", b"x") as url:
        port = int(url.rsplit(":", 1)[1])
        with TimedSocket.connect_to("127.0.0.1", port, connecting=60.0, idle=30.0, clock=lambda: now) as connection:
            connection.sendall(b"?")
            assert connection.gettimeout() == 30.0
            connection.end_within(10.0)
            assert connection.recv_into(bytearray(3)) > 0
            assert connection.gettimeout() == 10.0
            now = 10.0
            with pytest.raises(TimeoutError, match="taken too long"):
                connection.recv_into(bytearray(3))
