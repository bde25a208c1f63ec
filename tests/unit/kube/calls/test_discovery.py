"""kopf looks once which kinds there are: it must not look before the API server lists all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.calls.discovery import until_shown
from slinky_operator.kube.resources import CLUSTERS, NODESETS

NO_GROUP: dict[str, Any] = {"groups": []}
GROUP = {"groups": [{"name": "slinky.slurm.net", "versions": [{"groupVersion": "slinky.slurm.net/v1alpha1"}]}]}
ONE_KIND = {"resources": [{"name": "clusters"}, {"name": "clusters/status"}]}
BOTH_KINDS = {"resources": [{"name": "clusters"}, {"name": "nodesets"}]}


class Answer:
    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def raise_for_status(self) -> None:
        pass

    async def json(self) -> dict[str, Any]:
        return self.body


class ApiServer:
    """Gives these answers one after the other; errors are raised."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    @asynccontextmanager
    async def request(self, method: str, path: str, *, timeout: aiohttp.ClientTimeout) -> AsyncIterator[Answer]:  # noqa: ASYNC109 - as the real one
        self.asked.append(f"{method} {path}")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield Answer(answer)


async def wait(server: ApiServer) -> None:
    await until_shown(cast("Connection", server), [CLUSTERS, NODESETS], pause=0.0)


async def test_all_is_there() -> None:
    server = ApiServer(GROUP, BOTH_KINDS)
    await wait(server)
    assert server.asked == ["GET /apis", "GET /apis/slinky.slurm.net/v1alpha1"]


async def test_lists_that_make_no_sense_are_asked_for_again() -> None:
    server = ApiServer(ValueError("no JSON"), {"groups": [{}]}, {"groups": 1}, GROUP, BOTH_KINDS)
    await wait(server)
    assert server.answers == []


async def test_a_server_that_has_just_been_started_is_asked_until_it_tells_of_all() -> None:
    server = ApiServer(aiohttp.ClientError("refused"), TimeoutError(), NO_GROUP, GROUP, ONE_KIND, GROUP, BOTH_KINDS)
    await wait(server)
    assert server.answers == []
