"""What is made and kept of an agent's answers, whatever program gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from slinky_operator.cluster.rollout import agent_questions
from slinky_operator.cluster.rollout.agent_questions import LONGEST_NAMES, Agent, Names, ask_files, ask_names
from slinky_operator.pod_programs.agent.files import expected
from slinky_operator.slurm.connection.pod_reader import PodReader
from slurm_client.connection.intake import Intake

AGENT = Agent("http://10.0.0.1:6820", "uid", "team", "cluster")
NONE: frozenset[str] = frozenset()


def reader(answer: Mapping[str, Any] | bytes, intake: Intake | None = None) -> PodReader:
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return PodReader(intake or Intake(), transport=httpx.MockTransport(lambda _: httpx.Response(200, content=content)))


async def test_names_of_the_cluster_are_kept_and_no_others() -> None:
    intake = Intake()
    said = {"names": {"found": ["a", "b", *(f"x{number}" for number in range(1000)), 7], "missing": ["c", {"d": 1}]}}
    async with reader(said, intake) as http:
        found = await ask_names(http, AGENT, frozenset({"a", "c", "e"}), None, lambda: 7.0)
    assert found == Names("uid", 7.0, frozenset({"a"}), frozenset({"c"}))
    assert 0 < sum(intake._kept.values()) < 1000
    agent_questions.forget(http, "team", "cluster")
    assert not intake._kept


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"names": null}',
        b'{"names": {"found": "abc", "missing": []}}',
        b'{"names": {"found": []}}',
        b'{"names": ' + b"[" * 100_000,
        b'{"names": {"found": ["' + b"a" * LONGEST_NAMES + b'"], "missing": []}}',
    ],
)
async def test_nonsense_leaves_the_names_that_are_known(answer: bytes) -> None:
    before = Names("uid", 1.0, frozenset({"a"}))
    async with reader(answer) as http:
        found = await ask_names(http, AGENT, frozenset({"a"}), before, lambda: 7.0)
    assert (found.found, found.asked_at) == (before.found, 7.0)
    assert found.why.startswith("the agent beside slurmctld cannot be asked for addresses: ")
    assert len(found.why) < 300


async def test_files() -> None:
    files = expected({"slurm.conf": "x"})
    async with reader({"files": files}) as http:
        assert (await ask_files(http, AGENT, lambda: 7.0)).files == files


@pytest.mark.parametrize(
    "files",
    [None, [], {"a": 1}, {"a": "b" * 65}, {"a" * 254: "b"}, {"a": ["b"]}, {str(one): "" for one in range(9**6)}],
)
async def test_files_have_names_and_digests_or_there_is_no_answer(files: Any) -> None:
    intake = Intake()
    async with reader({"files": files}, intake) as http:
        found = await ask_files(http, AGENT, lambda: 7.0)
    assert found.files is None
    assert found.why
    assert not intake._kept


async def test_a_namespace_that_keeps_too_much_gets_no_answer() -> None:
    intake = Intake(2**20, kept=1000)
    intake.keep("team", "jobs", 950)
    async with reader({"files": expected({"slurm.conf": "x"})}, intake) as http:
        found = await ask_files(http, AGENT, lambda: 7.0)
    assert found.files is None
    assert "takes more than 1000 bytes" in found.why
