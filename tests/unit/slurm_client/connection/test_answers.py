from __future__ import annotations

import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_client import errors
from slurm_client.connection import answers, error_numbers
from slurm_client.connection.answers import ListOf
from slurm_client.connection.body import parsing, pieces
from slurm_client.connection.body.pieces import Pieces
from tests.unit.slurm_client.strategies import values

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = errors.Request("GET", "/slurm/v0.0.45/nodes/")
AS_IT_IS = ListOf("nodes", dict)


async def read(body: bytes, status: int = 200, wanted: ListOf | None = AS_IT_IS) -> answers.Answer:
    return await answers.read(body, status, REQUEST, wanted)


bodies = st.fixed_dictionaries(
    {"nodes": st.lists(st.dictionaries(st.text(max_size=5), values, max_size=3), max_size=4)},
    optional={"errors": values, "warnings": values, "meta": values, "last_update": values},
)


@given(bodies, st.sampled_from([None, 1, 2]), st.sampled_from(["", " ", "\n\t "]))
async def test_what_is_read_in_slices_is_what_json_says(body: dict[str, Any], indent: int | None, blank: str) -> None:
    text = blank + json.dumps(body, indent=indent) + blank
    answer = await read(text.encode())
    expected = json.loads(text)
    assert json.dumps(answer.items) == json.dumps(expected.pop("nodes"))
    assert json.dumps(answer.fields) == json.dumps(expected)
    assert answer.last_update is None or isinstance(answer.last_update, int)
    assert isinstance(answer.release, str)


RECURRING = ListOf("nodes", dict, recurs=True)
NAMED = ListOf("nodes", dict, recurs=True, identity=json.dumps)


@given(st.lists(bodies, min_size=2, max_size=4), st.sampled_from([None, 1]), st.sampled_from([RECURRING, NAMED]))
async def test_with_an_earlier_answer_at_hand_the_same_is_read(
    given_bodies: list[dict[str, Any]], indent: int | None, wanted: ListOf
) -> None:
    known = None
    pool = [entry for body in given_bodies for entry in body["nodes"]]
    for number, body in enumerate(given_bodies):
        # Entries come and go, change and change places.
        listed = {**body, "nodes": [*pool[number:], *body["nodes"], *pool[: -1 - number : -1]]}
        answer = await answers.read(json.dumps(listed, indent=indent).encode(), 200, REQUEST, wanted, known)
        assert json.dumps(answer.items) == json.dumps(json.loads(json.dumps(listed))["nodes"])
        known = answer.recurring


async def test_an_entry_that_is_written_as_it_was_is_not_read_again() -> None:
    before = [{"name": f"n{number}", "state": "IDLE"} for number in range(40)]
    first = await answers.read(json.dumps({"nodes": before}).encode(), 200, REQUEST, RECURRING)
    known = first.recurring
    now = [dict(one) for one in before]
    now[7]["state"] = now[8]["state"] = "MIXED"
    del now[20:22]
    now.insert(30, {"name": "new"})

    second = await answers.read(json.dumps({"nodes": now}).encode(), 200, REQUEST, RECURRING, known)

    assert second.items == now
    same = {id(one) for one in first.items or ()}
    reread = [one["name"] for one in second.items or () if id(one) not in same]
    assert reread == ["n7", "n8", "new"]
    assert first.items == before


async def test_what_is_left_of_a_long_list_is_not_read_again() -> None:
    wanted = ListOf("jobs", dict, recurs=True, identity=lambda job: job["id"])
    before = [{"id": number} for number in range(1000)]
    first = await answers.read(json.dumps({"jobs": before}).encode(), 200, REQUEST, wanted)
    known = first.recurring

    second = await answers.read(json.dumps({"jobs": before[700:]}).encode(), 200, REQUEST, wanted, known)

    same = {id(one) for one in first.items or ()}
    assert [one["id"] for one in second.items or () if id(one) not in same] == [700]
    assert second.items == before[700:]


async def test_of_a_list_that_is_there_twice_the_last_one_is_kept() -> None:
    answer = await answers.read(
        b'{"nodes": [{"name": "a"}, {"name": "b"}], "nodes": [{"name": "c"}]}', 200, REQUEST, RECURRING
    )
    assert answer.items == [{"name": "c"}]
    assert answer.recurring is not None
    assert answer.recurring.texts == ['{"name": "c"}']
    assert len(answer.recurring.weights) == 1


async def test_nothing_is_kept_of_what_does_not_recur() -> None:
    assert (await read(b'{"nodes": [{"name": "n1"}]}')).recurring is None


@given(bodies, st.floats(0, 1, exclude_max=True))
async def test_a_cut_answer_is_never_taken_for_a_whole_one(body: dict[str, Any], share: float) -> None:
    text = json.dumps(body).encode()
    with pytest.raises(errors.DecodeError):
        await read(text[: int(len(text) * share)])


@given(st.binary(max_size=60))
async def test_garbage_gives_our_error_or_an_answer(body: bytes) -> None:
    with contextlib.suppress(errors.DecodeError):
        await read(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "too early"),
        (b"[]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"Authentication failure", "no JSON object"),
        (b'{"nodes": [3]}', "entry 0"),
        (b'{"nodes": [null]}', "entry 0"),
        (b'{"nodes": "many"}', "not a list"),
        (b'{"nodes": [{}] "x": 1}', "comma"),
        (b'{"nodes": [{} {}]}', "comma"),
        (b"{nodes: []}", "key"),
        (b'{"nodes" []}', "colon"),
        (b'{"a": ' + b"[" * 100_000 + b"}", "deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
async def test_what_cannot_be_read_says_why(body: bytes, why: str) -> None:
    with pytest.raises(errors.DecodeError, match=why):
        await read(body)


async def test_null_is_an_empty_list_and_a_missing_list_is_none() -> None:
    assert (await read(b'{"nodes": null}')).items == []
    assert (await read(b"{}")).items is None
    assert (await read(b'{"nodes": {"name": "only"}}')).items == [{"name": "only"}]


async def test_a_body_that_ends_too_early_is_told_apart() -> None:
    with pytest.raises(errors.Truncated):
        await read(b'{"nodes": [{"name": "w-0"}, {"na')


def error_of(status: int, *reports: dict[str, Any]) -> errors.SlurmError | None:
    return answers.error_in(answers.Answer(status, {"errors": list(reports)}), REQUEST)


@pytest.mark.parametrize(
    ("status", "number", "kind"),
    [
        (500, 2018, errors.NotFound),
        (422, 2018, errors.NotFound),
        (404, 2017, errors.NotFound),
        (500, 2016, errors.Conflict),
        (422, 2016, errors.Conflict),
        (500, 2028, errors.InvalidTransition),
        (422, 2180, errors.InvalidTransition),
        (500, 9207, errors.InvalidRequest),
        (511, 1007, errors.Unauthorized),
        (401, 0, errors.Unauthorized),
        (502, 1800, errors.ControllerDown),
        (500, 104, errors.ControllerDown),
        (502, 0, errors.ControllerDown),
        (504, 0, errors.ControllerDown),
        (500, 2010, errors.PermissionDenied),
        (500, 2037, errors.NotSupported),
        (500, -1, errors.ServerError),
        (500, 0, errors.ServerError),
        (200, 0, errors.ServerError),
        (400, 0, errors.InvalidRequest),
        (404, 0, errors.NotFound),
        (418, 0, errors.InvalidRequest),
        (302, 0, errors.ServerError),
    ],
)
def test_each_answer_has_its_class(status: int, number: int, kind: type[errors.SlurmError]) -> None:
    error = error_of(status, {"error_number": number, "description": "why", "source": "f()"})
    assert type(error) is kind
    assert error is not None
    assert error.status == status
    assert "why" in str(error)
    assert REQUEST.path in str(error)


def test_an_error_carries_all_that_slurm_said() -> None:
    error = error_of(
        500,
        {"error_number": 0, "description": "first", "error": "No error", "source": "a"},
        {"error_number": 2016, "description": "second", "error": "Requested nodes are busy", "source": "b"},
    )
    assert error is not None
    assert (error.number, error.name, error.description, error.source) == (2016, "ESLURM_NODES_BUSY", "second", "b")
    assert len(error.reports) == 2


@given(values, st.integers(100, 599))
def test_errors_of_any_shape_become_one_of_ours(entries: Any, status: int) -> None:
    found = answers.error_in(answers.Answer(status, {"errors": entries}), REQUEST)
    assert found is None or isinstance(found, errors.SlurmError)
    if found is not None:
        str(found)


@given(st.text(max_size=80), st.integers(100, 599), st.text(max_size=20))
def test_plain_texts_become_one_of_ours(body: str, status: int, kind: str) -> None:
    assert isinstance(answers.error_from_text(body, status, kind, REQUEST), errors.SlurmError)


def test_names_of_numbers_are_those_of_slurm() -> None:
    known = {
        1007: "SLURM_PROTOCOL_AUTHENTICATION_ERROR",
        1800: "SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR",
        1900: "SLURM_NO_CHANGE_IN_DATA",
        2016: "ESLURM_NODES_BUSY",
        2028: "ESLURM_INVALID_NODE_STATE",
        2053: "ESLURM_RESERVATION_INVALID",
        2084: "ESLURM_JOB_FINISHED",
        2168: "ESLURM_NODE_ALREADY_EXISTS",
        2180: "ESLURM_INVALID_NODE_STATE_TRANSITION",
        9207: "ESLURM_DATA_FLAGS_INVALID",
    }
    assert {number: error_numbers.name_of(number) for number in known} == known
    assert error_numbers.name_of(424242) == ""
    assert error_numbers.name_of(None) == ""


# a text in pieces


def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short texts have the borders of long ones: windows are little longer than a number may be."""
    monkeypatch.setattr(pieces, "PIECE", 7)
    monkeypatch.setattr(parsing, "_WINDOW", 32)
    monkeypatch.setattr(parsing, "_LONGEST_WINDOW", 64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(bodies, min_size=2, max_size=3),
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.sampled_from([None, 1]),
    st.sampled_from([AS_IT_IS, NAMED]),
)
async def test_where_pieces_end_is_of_no_matter(
    monkeypatch: pytest.MonkeyPatch,
    given_bodies: list[dict[str, Any]],
    lengths: list[int],
    indent: int | None,
    wanted: ListOf,
) -> None:
    short_windows(monkeypatch)
    known = None
    for body in given_bodies:
        text = json.dumps(body, indent=indent)
        cut = Pieces(_cut(text, lengths))
        assert cut.beginning == text[:500]
        answer = await answers.read(cut, 200, REQUEST, wanted, known, keep_raw=True)
        expected = json.loads(text)
        assert json.dumps(answer.items) == json.dumps(expected.pop("nodes"))
        assert json.dumps(answer.fields) == json.dumps(expected)
        assert not cut
        known = answer.recurring
        if known is not None:
            assert list(map(json.loads, known.texts)) == answer.items
            assert all(entry in text for entry in known.texts)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies, st.floats(0, 1, exclude_max=True), st.lists(st.integers(1, 40), min_size=1, max_size=8))
async def test_a_text_in_pieces_that_is_cut_is_never_taken_for_a_whole_one(
    monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], share: float, lengths: list[int]
) -> None:
    short_windows(monkeypatch)
    text = json.dumps(body)
    with pytest.raises(errors.DecodeError):
        await answers.read(Pieces(_cut(text[: int(len(text) * share)], lengths)), 200, REQUEST, AS_IT_IS)


def _cut(text: str, lengths: list[int]) -> Iterator[str]:
    """Cut a text into pieces of these lengths, over and over."""
    begin = 0
    for length in itertools.cycle(lengths):
        if begin >= len(text):
            return
        yield text[begin : begin + length]
        begin += length


async def test_an_entry_longer_than_all_windows_is_known_again() -> None:
    before = [{"id": 1, "x": "a" * 300_000}, {"id": 2, "x": ["b" * 100] * 3000}, {"id": 3}]
    wanted = ListOf("jobs", dict, recurs=True, identity=lambda job: job["id"])
    first = await answers.read(json.dumps({"jobs": before}), 200, REQUEST, wanted)
    assert first.items == before

    now = [before[0], {"id": 2, "x": ["b" * 100] * 2999 + ["c"]}, before[2]]
    second = await answers.read(json.dumps({"jobs": now}), 200, REQUEST, wanted, first.recurring)
    assert second.items == now
    same = {id(one) for one in first.items or ()}
    assert [one["id"] for one in second.items or () if id(one) not in same] == [2]


async def test_what_is_known_is_given_back_all_of_it() -> None:
    known = answers.Known()
    for number in range(1000):
        known.add(number, str(number), number, None)
    await known.clear()
    assert (known.texts, known.items, known.weights) == ([], [], [])
