"""Texts of errors: the server and the request that an error is about, each exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurm_client import JobSpec, MintedToken, ReservationSpec, SlurmClient, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY, SOON, client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Call = Callable[[SlurmClient], Awaitable[Any]]


def of(code: int) -> dict[str, Any]:
    return {"error_code": code, "error": "no"}


CALLS: dict[str, tuple[str, Any, Call]] = {
    "an error of Slurm": ("GET {url}/slurm/v0.0.45/nodes/", {"errors": [of(1)]}, lambda slurm: slurm.nodes()),
    "no list": ("GET {url}/slurm/v0.0.45/nodes/", {}, lambda slurm: slurm.nodes()),
    "no object": ("GET {url}/slurm/v0.0.45/node/w-9", {"nodes": []}, lambda slurm: slurm.node("w-9")),
    "no JSON": ("GET {url}/slurm/v0.0.45/jobs/", "<html>", lambda slurm: slurm.jobs()),
    "no statistics": ("GET {url}/slurm/v0.0.45/diag/", {}, lambda slurm: slurm.diag()),
    "no number": ("POST {url}/slurm/v0.0.45/job/submit", {}, lambda slurm: slurm.submit_job(JobSpec(script="x"))),
    "an entry": ("POST {url}/slurm/v0.0.45/job/7", {"results": [of(2017)]}, lambda slurm: slurm.hold_job(7)),
    "a task": ("GET {url}/slurm/v0.0.45/job/7", {"jobs": []}, lambda slurm: slurm.hold_job("7_1")),
    "many jobs": ("DELETE {url}/slurm/v0.0.45/jobs/", {"errors": [of(1)]}, lambda slurm: slurm.cancel_jobs([7])),
    "a path": ("GET {url}/any", "<html>", lambda slurm: slurm.request("GET", "/any")),
}


@pytest.mark.parametrize("what", CALLS)
async def test_an_error_in_an_answer_names_the_request_once(fake: FakeSlurmrestd, what: str) -> None:
    where, body, call = CALLS[what]
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.add("", body=body, status=200, times=None)
        with pytest.raises(errors.SlurmError) as raised:
            await call(slurm)
    once(str(raised.value), fake.url, where.format(url=fake.url))


def once(words: str, url: str, where: str) -> None:
    assert words.count(url) == 1, words
    assert words.count(where) == 1, words
    assert words.count("[") == 1, words


async def test_errors_without_an_answer_name_it_once(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.hang(times=1)
        with pytest.raises(errors.Timeout) as late:
            await slurm.nodes(timeout=0.05)
        await fake.stop()
        with pytest.raises(errors.Unreachable) as away:
            await slurm.nodes()
    for raised in (late, away):
        once(str(raised.value), fake.url, f"GET {fake.url}/slurm/v0.0.45/nodes/")


async def test_a_call_that_is_not_tried_quotes_the_last_error_without_its_request(fake: FakeSlurmrestd) -> None:
    await fake.stop()
    async with SlurmClient(fake.url, "t", retry=SOON, circuit=Circuit(threshold=1, first_pause=99)) as slurm:
        with pytest.raises(errors.Unreachable):
            await slurm.nodes()
        with pytest.raises(errors.CircuitOpen, match="the last: cannot connect") as raised:
            await slurm.nodes()
    once(str(raised.value), fake.url, f"GET {fake.url}/slurm/v0.0.45/ping/")


async def test_a_server_that_speaks_none_of_our_parsers_is_named(fake: FakeSlurmrestd) -> None:
    fake.versions = ("v0.0.99",)
    async with client(fake) as slurm:
        for call in (slurm.connect, slurm.nodes, lambda: slurm.submit_job(JobSpec(script="x"))):
            with pytest.raises(errors.NotSupported, match="none of the data parsers") as raised:
                await call()
            assert str(raised.value).count(fake.url) == 1


async def test_what_a_parser_lacks_names_the_call_and_the_server(fake: FakeSlurmrestd) -> None:
    async with client(fake, api_version="v0.0.42") as slurm:
        for call, about in (
            (slurm.conf, "get_conf"),
            (lambda: slurm.create_reservation(ReservationSpec(name="r")), "post_reservation"),
            (lambda: slurm.submit_job(JobSpec(script="x", other={"nosuch": 1})), "submit_job"),
        ):
            with pytest.raises(errors.NotSupported) as raised:
                await call()
            once(str(raised.value), fake.url, f"[{about} on {fake.url}]")


async def test_a_token_that_cannot_be_had_names_the_request(fake: FakeSlurmrestd) -> None:
    async with client(fake, token="") as slurm:
        with pytest.raises(errors.Unauthorized) as raised:
            await slurm.nodes()
    once(str(raised.value), fake.url, f"GET {fake.url}/slurm/v0.0.45/ping/")


async def test_what_was_refused_before_anything_was_sent_names_no_server(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.nodes()
        with pytest.raises(errors.InvalidArgument) as raised:
            await slurm.node("a/b")
    assert fake.url not in str(raised.value)


async def test_of_several_servers_the_one_that_was_asked_is_named(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(["http://127.0.0.1:1", fake.url], MintedToken(KEY), retry=SOON) as slurm:
        await slurm.connect()
        with pytest.raises(errors.NotFound) as raised:
            await slurm.node("nosuch")
    once(str(raised.value), fake.url, f"GET {fake.url}/slurm/v0.0.45/node/nosuch")
