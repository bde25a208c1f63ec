"""What is made of an agent's answer about the directory, from any daemon's pod."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from slinky_operator.cluster.parts.identity.question import (
    LAST_SECOND,
    LONGEST_DIRECTORY,
    LONGEST_DOMAIN,
    MOST_DOMAINS,
    Directory,
    ask_directory,
)
from slinky_operator.cluster.rollout.agent_questions import Agent
from slinky_operator.slurm.connection.pod_reader import PodReader
from slurm_client.connection.intake import Intake

AGENT = Agent("http://10.0.0.1:6820", "uid", "team", "cluster")


async def told(status: int, body: bytes) -> Directory:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/directory"
        return httpx.Response(status, content=body)

    async with PodReader(Intake(), transport=httpx.MockTransport(answer)) as reader:
        return await ask_directory(reader, AGENT, lambda: 7.0)


async def test_domains_that_are_offline() -> None:
    found = await told(200, b'{"offline": {"site": 1767225600}}')
    assert found == Directory("uid", 7.0, {"site": 1_767_225_600})
    assert (await told(200, b'{"offline": {}}')).offline == {}


@pytest.mark.parametrize("status", [404, 503])
async def test_an_agent_or_an_image_that_does_not_say(status: int) -> None:
    found = await told(status, b'{"error": "x"}')
    assert found.offline is None
    assert found.why == "SSSD's container does not say whether it reaches the directory"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"offline": null}',
        b'{"offline": [1]}',
        b'{"offline": {"a": "b"}}',
        b'{"offline": {"a": 1e999}}',
    ],
)
async def test_nonsense_is_not_known(body: bytes) -> None:
    found = await told(200, body)
    assert found.offline is None
    assert found.why.startswith("the agent beside slurmctld cannot be asked for the directory: ")


async def test_an_answer_has_bounds() -> None:
    many: dict[str, Any] = {f"{number:04}" + "x" * 1000: 10**30 for number in range(100)}
    found = await told(200, json.dumps({"offline": many}).encode())
    assert found.offline is not None
    assert len(found.offline) == MOST_DOMAINS
    assert {len(name) for name in found.offline} == {LONGEST_DOMAIN}
    assert set(found.offline.values()) == {LAST_SECOND}
    assert (await told(200, b'{"offline": {"a": -5}}')).offline == {"a": 0}
    found = await told(200, json.dumps({"offline": {"a" * LONGEST_DIRECTORY: 1}}).encode())
    assert found.offline is None
    assert "its answer is too large" in found.why
