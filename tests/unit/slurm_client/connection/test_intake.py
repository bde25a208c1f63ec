"""The memory limits for answers."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from slurm_client import SlurmClient, errors
from slurm_client.connection import answers
from slurm_client.connection.answers import ListOf
from slurm_client.connection.body.parsing import Parser
from slurm_client.connection.body.pieces import Pieces
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.intake import Excess, Hold, Intake, receive
from slurm_client.connection.session import RetryPolicy
from slurm_client.decode import nodes
from slurm_client.notation import hostlist
from slurm_client.testing import FakeSlurmrestd
from tests.support.hostile import SECRET, WAYS, HostileServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LIMIT = 256 * 1024
ONE_PIECE = 2 * 64 * 1024
"""What may have been received when the limit is noticed."""

REQUEST = errors.Request("GET", "/slurm/v0.0.45/nodes/")

COMMENT = "Überraschung 🎉 \\ 🎉"


@pytest.fixture
async def hostile() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.mark.parametrize("way", [*WAYS, "ssh"])
async def test_a_hostile_answer_is_an_error_of_bounded_size_that_quotes_nothing(
    hostile: HostileServer, way: str
) -> None:
    intake = Intake(LIMIT)
    client = SlurmClient(
        hostile.url(way),
        "token",
        intake=intake,
        timeout=3.0 if way == "drip" else 60.0,
        retry=RetryPolicy(attempts=1),
        circuit=Circuit(threshold=0),
    )
    async with client:
        with pytest.raises(errors.SlurmError) as failed:
            await client.nodes()
    assert SECRET not in str(failed.value)
    assert not list(client._session._transport._http.cookies.jar)
    assert client.calls == hostile.asked[way] == 1
    assert client.bytes_received <= LIMIT + ONE_PIECE
    assert intake.taken == 0
    if way in {"endless-list", "endless-blanks", "empty-lists", "two-gigabytes", "tiny-chunks"}:
        assert isinstance(failed.value, errors.TooLarge)
    assert str(failed.value).count(hostile.url(way)) == 1


async def test_what_says_itself_that_it_is_too_long_is_refused_unread(hostile: HostileServer) -> None:
    async with SlurmClient(hostile.url("two-gigabytes"), "token", retry=RetryPolicy(attempts=1)) as client:
        with pytest.raises(errors.TooLarge, match="more than"):
            await client.nodes()
        assert client.bytes_received == 0


async def test_thousands_of_short_pieces_take_little_room_and_are_refused(hostile: HostileServer) -> None:
    intake = Intake(LIMIT)
    tracemalloc.start()
    async with SlurmClient(hostile.url("tiny-chunks"), "t", intake=intake, retry=RetryPolicy(attempts=1)) as client:
        await asyncio.gather(client.connect(), return_exceptions=True)  # imports, and what is made once
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with pytest.raises(errors.TooLarge, match="more than 4096 pieces of less than 64 bytes"):
            await client.nodes()
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A text of two characters takes 59 bytes in a list.
    assert peak - before < 3 * LIMIT


class Chunks(httpx.AsyncByteStream):
    """Thousands of chunks that are there at once, as in a buffer of the connection."""

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(100_000):
            yield b" " * 64


async def test_the_loop_has_its_turn_while_thousands_of_pieces_are_taken() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    with Intake().open("me", lambda: None) as hold:
        await receive(httpx.Response(200, stream=Chunks()), REQUEST, hold, lambda _: None)
    running.cancel()
    assert turns > 1


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("page", "the server answered 403 with text/html, which is not how slurmrestd answers"),
        ("login", "the server answered 200 with text/html, which is not how slurmrestd answers"),
        ("redirect", "redirects are not followed"),
        ("bomb", "compressed, which was not asked for"),
        ("ssh", "what was received is no HTTP"),
        ("foreign-json", "unknown error"),
        ("deep", "larger|deep|room|bytes"),
    ],
)
async def test_the_error_says_what_came_instead(hostile: HostileServer, way: str, words: str) -> None:
    async with SlurmClient(hostile.url(way), "token", retry=RetryPolicy(attempts=1)) as client:
        with pytest.raises(errors.SlurmError, match=words):
            await client.nodes()


@pytest.mark.parametrize("url", ["http://x/latest?", "http://x/?a=", "http://x/#", "http://x/#a", "http://u:p@x/"])
def test_a_url_that_would_swallow_the_path_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        SlurmClient(url, "token")


async def test_what_is_in_an_answer_is_weighed_and_not_only_its_length() -> None:
    small = {"name": "n", "features": ["aa"] * 1000}
    body = json.dumps({"nodes": [dict(small, name=f"n{number}") for number in range(100)]})
    wanted = ListOf("nodes", nodes.node)
    found = await answers.read(body, 200, REQUEST, wanted)
    assert found.weight > 100 * 1000 * 64
    with pytest.raises(errors.TooLarge):
        await answers.read(body, 200, REQUEST, wanted, room=found.weight - 1)


@pytest.mark.parametrize(
    "body",
    [
        '{"x": [' + "[]," * 200_000 + "[]]}",
        '{"x": {"y": [' + '"ab",' * 200_000 + '"ab"]}}',
        '{"x": {' + ",".join(f'"{number}":0' for number in range(200_000)) + "}}",
        '{"nodes": [' + '{"name":"a"},' * 50_000 + '{"name":"a"}]}',
        "{" + ",".join(f'"{number}":[[],[],[]]' for number in range(100_000)) + "}",
        '{"x": "' + "a" * 2_000_000 + '"}',
    ],
    ids=["lists", "texts", "keys", "entries", "fields", "text"],
)
async def test_nothing_in_an_answer_takes_more_room_than_there_is(body: str) -> None:
    with pytest.raises(errors.TooLarge if "aaaa" not in body else errors.DecodeError):
        await answers.read(body, 200, REQUEST, ListOf("nodes", dict), room=4_000_000)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"x": ' + "[" * 300_000 + "]" * 300_000 + "}", "nested"),
        ('{"x": ' + '{"a":' * 300_000 + "0" + "}" * 300_000 + "}", "nested"),
        ('{"x":' + " " * 300_000 + "1}", "blanks"),
        ('{"x": [1, ' + "2, " * 100_000 + "nothing]}", "no value"),
    ],
)
async def test_what_cannot_be_read_says_why_in_long_answers_too(body: str, why: str) -> None:
    with pytest.raises(errors.DecodeError, match=why):
        await answers.read(body, 200, REQUEST)


large = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8), st.just("long " * 20_000)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4), st.just([0] * 40_000)
    ),
    max_leaves=12,
)


@settings(max_examples=30)
@given(large, st.sampled_from([None, 1]))
async def test_a_value_that_is_read_member_by_member_is_what_json_says(value: Any, indent: int | None) -> None:
    text = json.dumps({"before": 1, "x": value, "after": [1, 2]}, indent=indent)
    answer = await answers.read(text, 200, REQUEST)
    assert json.dumps(answer.fields) == json.dumps(json.loads(text))


async def test_a_number_that_a_window_cuts_is_read_to_its_end() -> None:
    text = "[" + "1234567," * 30_000 + "7654321]"
    parser = Parser(Pieces([text]), 2**30)
    assert await parser.value() == json.loads(text)
    assert parser.position == len(text)


async def test_characters_beyond_the_first_plane_come_through() -> None:
    async with FakeSlurmrestd() as fake:
        raw = json.dumps({"nodes": [{"name": "w-0", "comment": COMMENT}]}, ensure_ascii=False)
        fake.faults.add("/nodes/", body=raw, times=None)
        async with SlurmClient(fake.url, "t") as client:
            listing = await client.nodes()
        assert listing is not None
        assert [node.comment for node in listing] == [COMMENT]


# rooms


def hold(intake: Intake, owner: str, size: int, gave_up: list[str]) -> Hold:
    one = intake.open(owner, lambda: gave_up.append(owner))
    one.grow(size)
    return one


def test_the_largest_answer_of_the_largest_owner_gives_way() -> None:
    intake = Intake(100, at_once=150)
    gave_up: list[str] = []
    hold(intake, "greedy", 60, gave_up)
    second = hold(intake, "greedy", 70, gave_up)
    small = hold(intake, "modest", 15, gave_up)
    small.grow(10)
    assert gave_up == ["greedy"]
    assert second.ended
    assert intake.taken == 85
    with pytest.raises(Excess, match="100 bytes"):
        small.grow(90)


def test_who_takes_most_is_refused() -> None:
    intake = Intake(100, at_once=120)
    gave_up: list[str] = []
    hold(intake, "modest", 30, gave_up)
    greedy = hold(intake, "greedy", 80, gave_up)
    with pytest.raises(Excess, match="this one most"):
        greedy.grow(15)
    assert not gave_up


def test_an_answer_may_have_a_limit_of_its_own() -> None:
    intake = Intake(100)
    with intake.open("one", lambda: None, 10) as one, pytest.raises(Excess, match="10 bytes"):
        one.grow(11)
    with intake.open("one", lambda: None, 1000) as one, pytest.raises(Excess, match="100 bytes"):
        one.grow(101)


def test_an_answer_that_is_over_takes_no_room() -> None:
    intake = Intake(100)
    with intake.open("one", lambda: None) as one:
        one.grow(90)
    assert intake.taken == 0


def test_what_is_kept_is_bounded_for_each_owner() -> None:
    intake = Intake(100, kept=100)
    intake.keep("one", "nodes", 60)
    intake.keep("two", "nodes", 90)
    intake.keep("one", "nodes", 80)
    with pytest.raises(Excess):
        intake.keep("one", "jobs", 30)
    intake.forget("one", "nodes")
    intake.keep("one", "jobs", 30)


async def test_a_stalled_answer_gives_way_to_another_owner(hostile: HostileServer) -> None:
    intake = Intake(2**20, at_once=2**20)
    async with FakeSlurmrestd() as fake:
        for number in range(400):
            fake.add_node(f"w-{number}")
        greedy = SlurmClient(hostile.url("drip"), "token", intake=intake, owner="greedy", timeout=3600.0)
        async with greedy, SlurmClient(fake.url, "token", intake=intake, owner="modest") as modest:
            await modest.connect()
            stalled = asyncio.create_task(greedy.nodes())
            while not intake.taken:  # noqa: ASYNC110 - that something was received is seen here
                await asyncio.sleep(0.001)
            (theirs,) = intake._holds
            theirs.grow(2**20 - intake.taken - 1024)
            assert len(await modest.nodes() or ()) == 400
            with pytest.raises(errors.TooLarge, match="gave way"):
                await stalled


async def test_a_client_that_is_closed_keeps_nothing() -> None:
    intake = Intake()
    async with FakeSlurmrestd() as fake:
        fake.add_node("w-0")
        async with SlurmClient(fake.url, "token", intake=intake, owner="me") as client:
            await client.nodes()
            assert sum(intake._kept.values()) > 0
    assert not intake._kept


# what outlives an answer


def test_hosts_of_one_list_are_bounded_altogether() -> None:
    for text in (f"a[0-{hostlist.LIMIT}]", "a[0-50000,0-50000]", "a[0-50000],b[0-50000]"):
        assert hostlist.expand(text) == (text,)


def test_an_unconditional_not_modified_is_no_answer() -> None:
    async def ask() -> None:
        async with FakeSlurmrestd() as fake, SlurmClient(fake.url, "t", retry=RetryPolicy(attempts=1)) as client:
            await client.connect()
            fake.faults.add("/(nodes|jobs)/", status=304, body="", times=None)
            for call in (client.nodes(), client.jobs()):
                with pytest.raises(errors.DecodeError):
                    await call

    asyncio.run(ask())


def test_a_foreign_release_is_not_shown() -> None:
    for release in ("<script>", "x" * 99, {"a": 1}, ["a", "b"]):
        fields = {"meta": {"slurm": {"release": release}}}
        assert answers.Answer(200, fields).release == ""
    assert answers.Answer(200, {"meta": {"slurm": {"release": "26.05.0-rc1"}}}).release == "26.05.0-rc1"


def test_what_slurm_says_is_told_in_bounded_lines() -> None:
    reports = [{"error_number": 1, "description": "a\x00b\n" + "c" * 5000, "source": "d" * 5000}] * 1000
    error = answers.error_in(answers.Answer(500, {"errors": reports}), REQUEST)
    assert error is not None
    assert len(str(error)) < 2000
    assert "\n" not in str(error)
    assert "\x00" not in str(error)


async def test_a_warning_needs_no_number() -> None:
    found = {"description": "Unable to find partition x", "source": "dump()"}
    raw = {"warnings": [found], "errors": [{"description": "foreign"}]}
    answer = await answers.read(json.dumps(raw), 200, REQUEST)
    assert [one.description for one in answer.warnings] == ["Unable to find partition x"]
    error = answers.error_in(answer, REQUEST)
    assert error is not None
    assert error.message == "unknown error"
