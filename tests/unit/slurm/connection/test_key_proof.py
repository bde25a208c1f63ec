"""What is asked of daemons about keys, and what counts as an answer; real daemons are asked in integration."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import time
from pathlib import Path

import jwt
import pytest

from slinky_operator.pod_programs.agent import sack
from slinky_operator.slurm.connection.key_proof import (
    LONGEST_ANSWER,
    Answer,
    Daemon,
    Verdict,
    ask,
    request,
    understood,
)
from slinky_operator.slurm.connection.signed_messages import NotUnderstood, SharedKey
from tests.support.listener import Serve, listening

KEY = SharedKey("a", b"k" * 32)


def framed(flags: int, kind: int, rest: bytes, family: int = 0) -> bytes:
    message = struct.pack("!HHHIHHH", 42 << 8, flags, kind, 4, 0, 0, family) + rest
    return struct.pack("!I", len(message)) + message


def signed(head: object) -> bytes:
    token = base64.urlsafe_b64encode(json.dumps(head).encode()).rstrip(b"=") + b".e30.x"
    return framed(0, 1016, struct.pack("!II", 103, len(token) + 1) + token + b"\0")


def told(status: int, body: object) -> bytes:
    return f"HTTP/1.1 {status} Words\r\nContent-Length: 9\r\n\r\n{json.dumps(body)}".encode()


@pytest.mark.parametrize(
    ("daemon", "kind", "uid"),
    [(Daemon.SLURMCTLD, 1008, 65534), (Daemon.SLURMD, 1008, 64030), (Daemon.SLURMDBD, 6500, 65534)],
)
def test_a_question_is_bound_to_its_kind_and_gives_no_right(daemon: Daemon, kind: int, uid: int) -> None:
    message = request(daemon, KEY, 1000.0)
    assert struct.unpack_from("!I", message) == (len(message) - 4,)
    start = message.index(b"ey")
    token = message[start : message.index(b"\0", start)].decode()
    assert jwt.get_unverified_header(token)["kid"] == "a"
    claims = jwt.decode(token, KEY.value, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert claims["uid"] == uid
    assert base64.b64decode(claims["payload"]) == b"\x01" + struct.pack("!H", kind)


@pytest.mark.parametrize(
    ("daemon", "answer", "expected"),
    [
        (Daemon.SLURMD, b"", Answer(Verdict.SILENT)),
        (Daemon.SLURMD, signed({"alg": "HS256", "kid": "b"}), Answer(Verdict.ACCEPTED, "b")),
        (Daemon.SLURMD, framed(0x44, 8001, struct.pack("!I", 2010)), Answer(Verdict.ACCEPTED)),
        (Daemon.SLURMD, framed(0x44, 8001, bytes(6) + struct.pack("!I", 1007), 2), Answer(Verdict.REFUSED)),
        (Daemon.SLURMCTLD, framed(0x44, 8001, struct.pack("!I", 1007)), Answer(Verdict.REFUSED)),
        (Daemon.SLURMCTLD, framed(0x44, 8001, bytes(4)), Answer(Verdict.ACCEPTED)),
        (Daemon.SLURMDBD, bytes(4) + struct.pack("!HIHIH", 1433, 0, 0, 0, 0), Answer(Verdict.ACCEPTED)),
        (Daemon.SLURMDBD, bytes(4) + struct.pack("!HI3sHIH", 1433, 3, b"no\0", 0, 1, 0), Answer(Verdict.REFUSED)),
        (Daemon.SACKD, told(200, {"accepted": True, "signsWith": "b"}), Answer(Verdict.ACCEPTED, "b")),
        (Daemon.SACKD, told(200, {"accepted": False, "signsWith": "a"}), Answer(Verdict.REFUSED)),
        (Daemon.SACKD, told(503, {"error": "sackd is away"}), Answer(Verdict.UNKNOWN, why="sackd is away")),
    ],
)
def test_an_answer_is_understood(daemon: Daemon, answer: bytes, expected: Answer) -> None:
    assert understood(daemon, answer) == expected


@pytest.mark.parametrize("daemon", Daemon)
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        told(200, {"accepted": 1, "signsWith": "a"}),
        told(200, {"accepted": True}),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 3000,
        b"\0\0\0\x02",
        framed(0, 1016, struct.pack("!II", 103, 2**32 - 1)),
        framed(0, 1016, struct.pack("!II", 101, 9) + b"x" * 9),
        framed(0, 1016, struct.pack("!II", 103, 900) + b"short"),
        framed(0, 1016, b"", family=99),
        framed(0, 1016, struct.pack("!II", 103, 2002) + base64.urlsafe_b64encode(b"[" * 1500) + b".\0"),
    ],
)
def test_what_no_daemon_answers_is_no_proof(daemon: Daemon, answer: bytes) -> None:
    with pytest.raises(NotUnderstood):
        understood(daemon, answer)


def test_the_question_to_sackd_is_one_that_the_program_beside_it_takes() -> None:
    assert sack.answer(request(Daemon.SACKD, KEY, 1000.0), Path("/nowhere")).startswith(b"HTTP/1.1 503 ")


async def asked(serve: Serve, patience: float = 0.2) -> Answer:
    async with listening(serve) as port:
        return await ask(Daemon.SLURMD, "127.0.0.1", port, KEY, time.time(), patience)


async def test_one_that_trickles_or_never_ends_costs_neither_time_nor_memory() -> None:
    sent = 0

    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"\xff")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while not writer.is_closing():
            writer.write(b"\xff" * 65_536)
            await writer.drain()
            sent += 65_536

    assert (await asked(trickle)).why == "no answer within 0.2 s"
    assert (await asked(flood, 5.0)).verdict is Verdict.UNKNOWN
    assert sent > LONGEST_ANSWER


async def test_one_that_is_not_there_has_proven_nothing() -> None:
    async def unheard(*_: object) -> None:
        raise AssertionError("it is not there")

    async with listening(unheard) as port:
        pass
    answer = await ask(Daemon.SLURMD, "127.0.0.1", port, KEY, time.time())
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.why
