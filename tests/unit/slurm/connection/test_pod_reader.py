"""Answers of pods, whatever program answers there, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator

import httpx
import pytest

from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader
from slurm_client.connection.intake import Intake
from tests.support.hostile import SECRET, WAYS, HostileServer

LIMIT = 256 * 1024


@pytest.fixture
async def hostile() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.mark.parametrize("way", [*WAYS, "ssh"])
async def test_a_hostile_pod_gives_no_answer_and_keeps_nothing(hostile: HostileServer, way: str) -> None:
    intake = Intake()
    seconds = 0.3 if way == "drip" else 60.0
    async with PodReader(intake, seconds=seconds) as reader:
        # What is made once.
        with pytest.raises(NoAnswer):
            await reader.read(hostile.url("page"), owner="team", limit=LIMIT)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        with pytest.raises(NoAnswer) as failed:
            await reader.read(hostile.url(way), owner="team", limit=LIMIT)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert SECRET not in str(failed.value)
        assert len(str(failed.value)) < 300
        assert peak - before < 8 * LIMIT
        assert not list(reader._http.cookies.jar)
    assert intake.taken == 0
    assert not intake._kept


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("bomb", "compressed, which was not asked for"),
        ("two-gigabytes", f"it has more than {LIMIT} bytes"),
        ("endless-list", f"it has more than {LIMIT} bytes"),
        ("tiny-chunks", "pieces of less than"),
        ("drip", r"its answer was not complete after 0.3 s"),
        ("ssh", "what was received is no HTTP"),
        ("redirect", "it answered 302"),
        ("page", "it answered 403"),
    ],
)
async def test_the_reason_says_what_came_instead(hostile: HostileServer, way: str, words: str) -> None:
    async with PodReader(Intake(), seconds=0.3 if way == "drip" else 60.0) as reader:
        with pytest.raises(NoAnswer, match=words):
            await reader.read(hostile.url(way), owner="team", limit=LIMIT)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [2_000, 20_000])
async def test_nested_json_is_no_answer(opening: str, depth: int) -> None:
    body = '{"names": ' + opening * depth
    async with PodReader(Intake(), transport=httpx.MockTransport(lambda _: httpx.Response(200, text=body))) as reader:
        with pytest.raises(NoAnswer, match=r"nested|ends too early|depth"):
            await reader.read("http://10.0.0.1/names", owner="team", limit=2**20)


async def test_nobody_there_is_no_answer() -> None:
    async with PodReader(Intake()) as reader:
        with pytest.raises(NoAnswer):
            await reader.read("http://127.0.0.1:1/files", owner="team", limit=LIMIT)
        with pytest.raises(NoAnswer):
            await reader.read("http://[::1", owner="team", limit=LIMIT)


async def test_a_slow_pod_gives_way_to_another_namespace(hostile: HostileServer) -> None:
    intake = Intake(2**20, at_once=2**20)
    async with PodReader(intake, seconds=3600.0) as reader:
        stalled = asyncio.create_task(reader.read(hostile.url("drip"), owner="greedy", limit=2**20))
        while not intake.taken:  # noqa: ASYNC110 - that something was received is seen here
            await asyncio.sleep(0.001)
        (theirs,) = intake._holds
        theirs.grow(2**20 - intake.taken - 1024)
        with intake.open("modest", lambda: None) as ours:
            ours.grow(4096)
            with pytest.raises(NoAnswer, match="gave way"):
                await stalled


async def test_what_is_kept_is_counted_with_what_is_kept_of_slurm() -> None:
    intake = Intake(100, kept=100)
    async with PodReader(intake) as reader:
        intake.keep("team", "jobs", 60)
        with pytest.raises(NoAnswer, match="takes more than 100 bytes"):
            reader.keep("team", "names", 50)
        reader.keep("other", "names", 50)
        reader.forget("other", "names")
        assert list(intake._kept) == [("team", "jobs")]


async def test_a_good_answer_is_read() -> None:
    body = {"names": {"found": ["a"], "missing": []}}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=json.dumps(body).encode()))
    async with PodReader(Intake(), transport=transport) as reader:
        assert await reader.read("http://10.0.0.1/names", owner="team", limit=LIMIT) == body
