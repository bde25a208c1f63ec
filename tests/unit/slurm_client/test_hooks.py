"""Hooks: each request with its end, and nothing by which a call could fail or a token be read."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest
from typing_extensions import override

from slurm_client import Attempt, Hook, Outcome, errors
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import client

SECRET = "very-secret-token"


class Log(Hook):
    """Keeps what it is called with."""

    def __init__(self) -> None:
        self.begun: list[Attempt] = []
        self.ended: list[tuple[Attempt, Outcome]] = []

    @override
    def before(self, attempt: Attempt) -> int:
        self.begun.append(attempt)
        return len(self.begun)

    @override
    def after(self, attempt: Attempt, outcome: Outcome, begun: int) -> None:
        assert self.begun[begun - 1] is attempt
        self.ended.append((attempt, outcome))

    def results(self, operation: str) -> list[tuple[int, str, int | None]]:
        return [(a.number, o.result, o.status) for a, o in self.ended if a.operation == operation]


async def test_each_request_is_told_with_its_path_template_status_and_bytes(fake: FakeSlurmrestd) -> None:
    log = Log()
    async with client(fake, hook=log) as slurm:
        await slurm.node("w-0")
        attempt, outcome = log.ended[-1]
        assert attempt == Attempt(
            fake.url, "GET", "get_node", "/slurm/v0.0.45/node/{node_name}", "/slurm/v0.0.45/node/w-0",
            writes=False, number=1,
        )  # fmt: skip
        assert (outcome.result, outcome.status, outcome.error) == ("ok", 200, None)
        assert outcome.bytes_received > 100
        assert outcome.seconds > 0
        assert [each.operation for each in log.begun] == ["get_ping", "get_node"]
        assert sum(each.bytes_received for _, each in log.ended) == slurm.bytes_received
        assert len(log.begun) == len(log.ended) == slurm.calls


async def test_repetitions_are_numbered_and_each_ends_with_its_own_error(fake: FakeSlurmrestd) -> None:
    log = Log()
    async with client(fake, hook=log) as slurm:
        await slurm.connect()
        fake.faults.add("/nodes/", disconnect=True)
        fake.faults.add("/nodes/", truncate=0.5)
        await slurm.nodes()
        assert log.results("get_nodes") == [(1, "Unreachable", None), (2, "Unreachable", 200), (3, "ok", 200)]
        fake.faults.add("/node/", status=500, body={"errors": [{"error_number": 2018, "description": "no"}]})
        with pytest.raises(errors.NotFound) as raised:
            await slurm.delete_node("w-0")
        ended = log.ended[-1][1]
        assert ended.result == "NotFound"
        assert str(ended.error) == str(raised.value)


async def test_parsers_that_a_server_lacks_are_told_as_not_supported() -> None:
    log = Log()
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake, hook=log, token="t") as slurm:
        await slurm.connect()
    assert log.results("get_ping") == [(1, "NotSupported", 404)] * 3 + [(1, "ok", 200)]


async def sent_to(fake: FakeSlurmrestd, operation: str) -> None:
    """Wait until a request has reached the server."""
    while not fake.calls(operation):  # noqa: ASYNC110 - the fake tells nobody
        await asyncio.sleep(0)


async def test_a_call_that_is_late_or_cancelled_or_closed_is_told_as_such(fake: FakeSlurmrestd) -> None:
    log = Log()
    async with client(fake, hook=log) as slurm:
        await slurm.connect()
        fake.faults.hang()
        with pytest.raises(errors.Timeout):
            await slurm.diag(timeout=0.05)
        assert log.results("get_diag") == [(1, "Timeout", None)]

        sent: asyncio.Task[Any] = asyncio.create_task(slurm.nodes())
        await sent_to(fake, "get_nodes")
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
        assert log.results("get_nodes") == [(1, "CancelledError", None)]

        sent = asyncio.create_task(slurm.partitions())
        await sent_to(fake, "get_partitions")
    with pytest.raises(errors.ClientClosed):
        await sent
    assert log.results("get_partitions") == [(1, "ClientClosed", None)]


async def test_a_request_that_is_not_sent_is_not_told(fake: FakeSlurmrestd) -> None:
    log = Log()
    async with client(fake, hook=log) as slurm:
        with pytest.raises(errors.InvalidArgument):
            await slurm.node("a/b")
    assert log.begun == []


async def test_paths_that_are_not_known_have_no_template(fake: FakeSlurmrestd) -> None:
    log = Log()
    async with client(fake, hook=log) as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.request("GET", "/whatever/w-0")
        attempt = log.begun[-1]
        assert (attempt.operation, attempt.template, attempt.path) == ("", "", "/whatever/w-0")
        assert attempt.writes


@pytest.mark.parametrize("raised", [ValueError("mine"), asyncio.CancelledError(), errors.NotFound("mine")])
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_hook_that_raises_breaks_no_call(
    fake: FakeSlurmrestd, raised: BaseException, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Hook):
        pass

    def fail(*_: Any) -> None:
        raise raised

    setattr(Broken, where, fail)
    with caplog.at_level(logging.ERROR, "slurm_client"):
        async with client(fake, hook=Broken()) as slurm:
            assert len(await slurm.nodes()) == 3
            with pytest.raises(errors.NotFound, match="no node"):
                await slurm.node("nosuch")
    assert "a hook failed" in caplog.text


async def test_no_token_reaches_a_hook() -> None:
    reached: list[str] = []

    def look(thing: Any, depth: int = 0) -> None:
        """Write down everything that can be reached from what a hook is given."""
        reached.append(repr(thing))
        if isinstance(thing, BaseException):
            reached.extend(traceback.format_exception(thing))
            for each in (thing.__cause__, thing.__context__):
                if each is not None:
                    look(vars(each), depth + 1)
            assert thing.__traceback__ is None
        for name in dir(thing):
            if not name.startswith("__") and depth < 3:
                look(getattr(thing, name), depth + 1)

    class Curious(Hook):
        @override
        def before(self, attempt: Attempt) -> None:
            look(attempt)

        @override
        def after(self, attempt: Attempt, outcome: Outcome, begun: None) -> None:
            look(outcome)
            look(outcome.error)

    async with FakeSlurmrestd() as fake:
        for options in ({"bearer": False}, {"bearer": True}):
            async with client(fake, token=SECRET, hook=Curious(), **options) as slurm:
                await slurm.nodes()
                with pytest.raises(errors.NotFound):
                    await slurm.request("POST", "/slurm/{version}/node/nosuch", body={"comment": "x"})
                await fake.stop()
                with pytest.raises(errors.Unreachable):
                    await slurm.nodes()
                await fake.start()
    assert len(reached) > 100
    assert not [each for each in reached if SECRET in each]


async def test_a_hook_that_overrides_nothing_does_nothing(fake: FakeSlurmrestd) -> None:
    async with client(fake, hook=Hook()) as slurm:
        assert len(await slurm.nodes()) == 3
