"""What is read from a slurmd's answer, and that nothing is concluded from any other."""

from __future__ import annotations

import asyncio
import struct
from datetime import UTC, datetime

import pytest

from slinky_operator.slurm.connection import signed_messages, slurmd_status
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.connection.slurmd_status import NoStatus, SlurmdStatus, understood
from tests.support.listener import listening

KEY = SharedKey("", b"k" * 32)
START = 1_790_000_000


def text(value: str) -> bytes:
    data = value.encode() + b"\0" if value else b""
    return struct.pack("!I", len(data)) + data


def answer(steps: str = "NONE", *, key: SharedKey = KEY, kind: int = 5025, heard: int = 0) -> bytes:
    fixed = struct.pack("!qqHHHHHHQII", START, heard, 3, 2, 1, 1, 2, 1, 24105, 0, 77)
    body = fixed + text("a-0") + text("/dev/stderr") + text(steps) + text("26.05.5")
    return signed_messages.message(kind, key, 0, START, body=body)


@pytest.mark.parametrize(
    ("steps", "jobs"),
    [("NONE", set()), ("7", {7}), ("7, 7.extern, 7.0, 9.interactive", {7, 9}), ("7+1.batch, 12+0.3", {7, 12})],
)
def test_jobs_with_steps_are_read(steps: str, jobs: set[int]) -> None:
    found = understood(answer(steps, heard=START + 5), KEY)
    heard = datetime.fromtimestamp(START + 5, UTC)
    assert found == SlurmdStatus("a-0", datetime.fromtimestamp(START, UTC), heard, frozenset(jobs))


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\0\0\0\x10HTTP/1.1 400 bad",
        answer(key=SharedKey("", b"x" * 32)),
        answer(kind=8001),
        answer("7, something"),
        answer("")[:-20],
        struct.pack("!I", 20) + b"\xff" * 20,
    ],
    ids=["silence", "another service", "another key", "a refusal", "another list", "cut", "noise"],
)
def test_nothing_else_shows_an_idle_node(bad: bytes) -> None:
    with pytest.raises(NoStatus):
        understood(bad, KEY)


def test_an_answer_that_is_too_long_shows_nothing() -> None:
    with pytest.raises(NoStatus, match="not complete"):
        understood(answer(", ".join(map(str, range(1, 20000)))), KEY)


async def test_a_slurmd_that_is_silent_or_away_shows_nothing() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(serve) as port:
        with pytest.raises(NoStatus, match="no answer within"):
            await slurmd_status.ask("127.0.0.1", port, KEY, START, 0.2)
    with pytest.raises(NoStatus):
        await slurmd_status.ask("127.0.0.1", port, KEY, START)
