"""Lists of long objects come in short pages."""

from __future__ import annotations

import asyncio
import gc

import pytest

from slinky_operator.kube.calls import reading
from slinky_operator.kube.resources import PODS
from tests.unit.kube.fake_api import client_of, running


async def test_an_answer_that_is_too_long_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 10_000)
    async with running() as fake, client_of(fake) as client:
        for number in range(40):
            await fake.put(f"p-{number:02}", long="x" * (2_000 if number < 20 else 10))
        await fake.put("p-99", long="x" * 50_000)
        pages = [page async for page in client.pages(PODS)]
        assert [one["metadata"]["name"] for page in pages for one in page.items] == sorted(fake.objects)
        # One object is read whatever its size.
        long = [page for page in pages if sum(len(one["metadata"]["labels"]["long"]) for one in page.items) > 10_000]
        assert [len(page.items) for page in long] == [1]
        limits = [int(query["limit"]) for kind, _, query in fake.requests if kind == "list"]
        assert limits[0] == reading.PAGE_SIZE
        # A few short answers, and the size grows again: 41 objects are not 41 requests.
        assert len(limits) < 30
        assert len(pages) < 20


async def test_short_objects_come_in_one_page() -> None:
    async with running() as fake, client_of(fake) as client:
        for number in range(40):
            await fake.put(f"p-{number}")
        assert len([page async for page in client.pages(PODS)]) == 1
        assert fake.count("list") == 1


def decoded() -> int:
    """Objects that were read and are still held by somebody."""
    return sum(type(one) is dict and one.get("kind") == "Pod" for one in gc.get_objects())


async def test_of_objects_that_are_read_one_by_one_a_page_is_held_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 10_000)
    async with running() as fake, client_of(fake) as client:
        for number in range(40):
            await fake.put(f"p-{number:02}", long="x" * 2_000)
        before, names, most = decoded(), list[str](), 0
        async for one in client.each(PODS):
            names.append(one["metadata"]["name"])
            most = max(most, decoded() - before)
        assert names == sorted(fake.objects)
        assert 0 < most <= 10
        assert decoded() - before <= 1
        held = (await client.list(PODS)).items
        assert decoded() - before >= len(held) == 40


async def test_who_has_found_what_is_looked_for_asks_for_no_further_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 10_000)
    async with running() as fake, client_of(fake) as client:
        for number in range(40):
            await fake.put(f"p-{number:02}", long="x" * 2_000)
        async for one in client.each(PODS):
            assert one["metadata"]["name"] == "p-00"
            break
        asked = fake.count("list")
        _ = [one async for one in client.each(PODS)]
        assert fake.count("list") - asked > asked


async def test_others_have_their_turn_while_the_objects_of_a_page_are_gone_through() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running() as fake, client_of(fake) as client:
        for number in range(3 * reading.SLICE):
            await fake.put(f"p-{number:02}")
        others = asyncio.create_task(turn())
        seen = [turns async for _ in client.each(PODS)]
        others.cancel()
        assert fake.count("list") == 1
        assert seen[-1] - seen[0] >= 2
