"""The program beside sackd passes a question on, and gives no token away; a real sackd is asked in integration."""

from __future__ import annotations

import base64
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slinky_operator.pod_programs.agent import sack

TOKEN = base64.urlsafe_b64encode(json.dumps({"kid": "a"}).encode()).decode().rstrip("=") + ".e30.x"
REQUEST = f"GET /verify/{TOKEN} HTTP/1.1\r\n\r\n".encode()


@contextmanager
def sackd(folder: Path, said: Callable[[int, bytes], bytes]) -> Iterator[Path]:
    """Answers messages by their kind and body."""
    path = folder / "sack.socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    version, length, kind = struct.unpack("!HII", connection.recv(10))
                    assert version
                    connection.sendall(said(kind, connection.recv(length)))

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join()


def body(answer: bytes) -> tuple[int, dict[str, object]]:
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(text)


def packed(token: str) -> bytes:
    return struct.pack("!I", len(token) + 1) + token.encode() + b"\0"


@pytest.mark.parametrize(("verified", "accepted"), [(bytes(4), True), (b"\0\0\0\x01", False), (b"", False)])
def test_it_says_whether_sackd_takes_a_token_and_only_the_id_of_its_key(
    tmp_path: Path, verified: bytes, accepted: bool
) -> None:
    asked: list[tuple[int, bytes]] = []

    def said(kind: int, text: bytes) -> bytes:
        asked.append((kind, text))
        return verified if kind == 64002 else packed(TOKEN)

    with sackd(tmp_path, said) as path:
        status, found = body(sack.answer(REQUEST, path))
    assert (status, found) == (200, {"accepted": accepted, "signsWith": "a"})
    assert asked[0] == (64002, packed(TOKEN))


@pytest.mark.parametrize("signed", [b"", b"\0\0\0\x02x\0", packed("W10.x.x"), packed("e30.x.x"), b"x" * 5000])
def test_a_sackd_that_signs_no_token_has_shown_nothing(tmp_path: Path, signed: bytes) -> None:
    with sackd(tmp_path, lambda kind, _: bytes(4) if kind == 64002 else signed) as path:
        status, found = body(sack.answer(REQUEST, path))
    assert status == 503
    assert str(found["error"]).startswith("what sackd signs ")


def test_without_sackd_it_says_so(tmp_path: Path) -> None:
    status, found = body(sack.answer(REQUEST, tmp_path / "sack.socket"))
    assert (status, found["error"]) == (503, "sackd does not answer: No such file or directory")


@pytest.mark.parametrize(
    "request_",
    [b"", b"GET /verify/a.b HTTP/1.1\r\n", b"POST /verify/a.b.c HTTP/1.1\r\n", b"GET /verify/a.b.c\0 HTTP/1.1\r\n"],
)
def test_nothing_else_reaches_sackd(request_: bytes) -> None:
    assert body(sack.answer(request_, Path("/nowhere")))[0] == 404
