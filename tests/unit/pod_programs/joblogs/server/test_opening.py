"""What the process that opens files does before it starts another one, and when one fails."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.copies.serving import Copies
from slinky_operator.pod_programs.joblogs.copies.shares import Shares
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server import opening
from slinky_operator.pod_programs.joblogs.tokens import Grant

KEY = bytes(range(64))


class Side:
    """The process that opens, with a caller of it."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "key"
        self.key.write_bytes(KEY)
        self.channel, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.reply, self.caller = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = opening.Settings(self.key, (str(folder),))
        self.opening = opening._Opening(
            self.channel, settings, Log(), Copies(settings.folders, opening.become, Shares(Log()))
        )

    def said(self) -> bytes:
        self.reply.close()
        return self.caller.recv(4096)

    def close(self) -> None:
        for one in (self.channel, self.far, self.reply, self.caller):
            one.close()


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    made = Side(tmp_path)
    yield made
    made.close()


def token(key: bytes = KEY, lasts: int = 60) -> bytes:
    return tokens.sign(Grant("7", 20001, (20001,), "/none/a.out", int(time.time()) + lasts), key).encode()


def no_process() -> int:
    raise AssertionError("a process for what has no token")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"nonsense", b"403 the token is not valid here"),
        (b"\xff\xfe", b"403 the token is not valid here"),
        (b"", b"403 the token is not valid here"),
        (token(b"x" * 64), b"403 the token is not valid here"),
        (token(lasts=-1), b"403 the token has expired"),
    ],
)
def test_without_a_token_there_is_no_process(
    side: Side, given: bytes, why: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", no_process)
    side.opening.open(side.reply, given)
    assert side.said() == why


def test_nor_without_a_key(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", no_process)
    side.key.unlink()
    side.opening.open(side.reply, token())
    assert side.said().startswith(b"503 the server has no key: ")


def test_it_goes_on_when_it_can_start_no_process(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    side.opening.open(side.reply, token())
    assert side.said() == b"503 the server cannot start a process: Resource temporarily unavailable"


def test_it_goes_on_when_nobody_waits_for_its_answer(side: Side, capfd: pytest.CaptureFixture[str]) -> None:
    side.caller.close()
    side.opening.open(side.reply, b"nonsense")
    assert "nobody waits for an answer any more" in capfd.readouterr().err


def test_a_process_that_fails_says_why(side: Side, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error", "/var/spool/job-output")

    _, status = os.waitpid(side.opening._in_child(fail), 0)
    assert os.waitstatus_to_exitcode(status) == 1
    said = capfd.readouterr().err
    assert "Traceback" in said
    assert "OSError: [Errno 5] Input/output error: '/var/spool/job-output'" in said
