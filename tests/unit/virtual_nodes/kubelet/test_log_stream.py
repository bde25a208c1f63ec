"""The output of a container, from a file that grows, ends, is cut or cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import pytest

from slinky_operator.slurm.connection.job_output import PIECE, Piece, PieceResult
from slinky_operator.virtual_nodes.kubelet.log_request import LogRequest
from slinky_operator.virtual_nodes.kubelet.log_stream import Cut, LogStream, Look
from slinky_operator.virtual_nodes.kubelet.output import Source
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

SOURCE = Source("http://node", "token", ("node", "/file", "0"))


ALL = LogRequest()


class File:
    """A file of a job, and what happens to it while somebody waits for more."""

    def __init__(self, content: bytes = b"", *events: Callable[[File], None]) -> None:
        self.content, self.tag = content, "1"
        self.exists, self.ended, self.away = True, False, ""
        self.source = SOURCE
        self.events = list(events)
        self.now = 0.0
        self.most = 0
        self.sent = bytearray()

    async def look(self) -> Look:
        return Look(self.source, self.ended)

    async def read(self, url: str, token: str, offset: int, most: int) -> Piece:
        assert (url, token) == ("http://node", "token")
        self.most = max(self.most, most)
        if self.away:
            return Piece(PieceResult.FAILED, why=self.away)
        if not self.exists:
            return Piece(PieceResult.MISSING, why="no such file")
        if offset > len(self.content):
            return Piece(PieceResult.TRUNCATED, size=len(self.content), why="shorter")
        found = self.content[offset : offset + most]
        return Piece(PieceResult.DATA if found else PieceResult.END, found, self.tag)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 3600, "it never ends"
        if self.events:
            self.events.pop(0)(self)

    async def take(self, content: bytes) -> None:
        self.sent += content

    async def show(self, request: LogRequest = ALL) -> bytes:
        """Everything that a caller gets."""
        stream = LogStream(request, self.look, self.read, clock=lambda: self.now, sleep=self.sleep)
        await stream.send(await stream.first(), self.take)
        return bytes(self.sent)


def ends(file: File) -> None:
    file.ended = True


def grows(content: bytes) -> Callable[[File], None]:
    def grow(file: File) -> None:
        file.content += content

    return grow


async def test_without_follow_what_is_there_is_sent() -> None:
    content = bytes(range(256)) * 2000
    file = File(content)
    assert await file.show() == content
    assert not file.now
    assert file.most <= PIECE


async def test_an_empty_file_and_one_that_is_not_there_yet_are_no_error() -> None:
    assert await File().show() == b""
    file = File()
    file.exists = False
    assert await file.show() == b""


async def test_a_follower_gets_all_until_the_job_has_ended() -> None:
    def last(file: File) -> None:
        file.content += b"three\n"
        file.ended = True

    file = File(b"one\n", lambda _: None, grows(b"two\n"), last)
    assert await file.show(LogRequest(follow=True)) == b"one\ntwo\nthree\n"


async def test_looks_at_a_quiet_file_become_rarer() -> None:
    file = File(b"", *[lambda _: None] * 20, ends)
    await file.show(LogRequest(follow=True))
    assert 60 < file.now < 110


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(0, b""), (1, b"c\n"), (2, b"b\nc\n"), (3, b"a\nb\nc\n"), (9, b"a\nb\nc\n")],
)
async def test_the_last_lines(lines: int, expected: bytes) -> None:
    assert await File(b"a\nb\nc\n").show(LogRequest(tail_lines=lines)) == expected


async def test_a_last_line_without_an_end_is_one() -> None:
    assert await File(b"a\nb").show(LogRequest(tail_lines=1)) == b"b"
    assert await File(b"").show(LogRequest(tail_lines=1)) == b""
    assert await File(b"\n\n").show(LogRequest(tail_lines=1)) == b"\n"


async def test_last_lines_that_are_long_are_found_a_piece_at_a_time() -> None:
    content = b"".join(b"%d" % number + b"x" * 1000 + b"\n" for number in range(1000))
    file = File(content)
    wanted = b"".join(content.splitlines(keepends=True)[-500:])
    assert await file.show(LogRequest(tail_lines=500)) == wanted
    assert file.most <= PIECE


async def test_last_lines_of_a_huge_file_are_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slinky_operator.virtual_nodes.kubelet.log_stream.MAX_TAIL", PIECE)
    with pytest.raises(NotServed, match="ask for fewer") as refused:
        await File(b"x" * PIECE * 4).show(LogRequest(tail_lines=1))
    assert refused.value.status is HTTPStatus.BAD_REQUEST


async def test_bytes_are_limited() -> None:
    assert await File(b"abcdef").show(LogRequest(limit_bytes=4)) == b"abcd"
    assert await File(b"abc", grows(b"def")).show(LogRequest(follow=True, limit_bytes=4)) == b"abcd"
    assert await File(b"a\nb\nc\n").show(LogRequest(tail_lines=2, limit_bytes=3)) == b"b\nc"


async def test_a_file_that_was_replaced_is_shown_from_its_beginning() -> None:
    def replaced(file: File) -> None:
        file.content, file.tag = b"other output\n", "2"

    assert (await File(b"one\n", replaced, ends).show(LogRequest(follow=True))).endswith(b"beginning\nother output\n")


async def test_another_run_of_the_job_ends_the_output() -> None:
    def again(file: File) -> None:
        file.source, file.content = Source("http://node", "token", ("node", "/file", "1")), b""

    shown = await File(b"one\n", again).show(LogRequest(follow=True))
    assert shown == b"one\njob-logs: Slurm has started the job again; ask again for its output\n"


async def test_what_cannot_be_read_from_the_beginning_is_said_before_an_answer_begins() -> None:
    file = File()
    file.away = "connection refused"
    with pytest.raises(NotServed, match="connection refused") as refused:
        await file.show()
    assert refused.value.status is HTTPStatus.SERVICE_UNAVAILABLE
    with pytest.raises(NotServed, match="connection refused"):
        await file.show(LogRequest(tail_lines=3))


async def test_a_server_that_is_away_for_a_moment_costs_nothing() -> None:
    def away(file: File) -> None:
        file.away = "connection refused"

    def back(file: File) -> None:
        file.away, file.content = "", file.content + b"two\n"

    assert await File(b"one\n", away, back, ends).show(LogRequest(follow=True)) == b"one\ntwo\n"


async def test_one_that_stays_away_ends_the_output_with_a_word() -> None:
    def away(file: File) -> None:
        file.away = "connection refused"

    file = File(b"one\n", away)
    with pytest.raises(Cut, match="after byte 4 cannot be read: connection refused"):
        await file.show(LogRequest(follow=True))
    assert 60 <= file.now < 80


async def test_a_pod_that_is_gone_ends_the_output() -> None:
    file = File(b"one\n")

    def gone(file: File) -> None:
        async def nowhere() -> Look:
            raise NotServed(HTTPStatus.NOT_FOUND, 'pod "p" is gone')

        stream._look = nowhere

    file.events = [gone]
    stream = LogStream(LogRequest(follow=True), file.look, file.read, clock=lambda: file.now, sleep=file.sleep)
    with pytest.raises(Cut, match="is gone"):
        await stream.send(await stream.first(), file.take)


async def test_no_output_at_all_after_the_end_is_no_error() -> None:
    file = File(b"", ends)
    file.exists = False
    assert await file.show(LogRequest(follow=True)) == b""
