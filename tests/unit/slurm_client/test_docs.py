"""The examples of docs/slurm-client.md do what they say."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from slurm_client.testing import FakeSlurmrestd
from tests.support.documents import Action, Block, blocks

PAGE = "docs/slurm-client.md"
EXAMPLES = [block for block in blocks(PAGE) if block.language == "python" and block.action is Action.RUN]
KEY = b"k" * 32


def test_the_page_says_where_its_names_come_from() -> None:
    (first,) = [block for block in blocks(PAGE) if block.language == "python" and block.action is Action.NOT_RUN]
    assert re.findall(r"^(\w+) = ", first.text, flags=re.MULTILINE) == ["url", "key"]


def test_there_are_examples() -> None:
    assert {block.heading for block in EXAMPLES} >= {"Connect", "Nodes", "Jobs", "Watch", "Test with it"}


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: f"{block.heading}, line {block.line}")
async def test_an_example_runs(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeSlurmrestd(key=KEY) as fake:
        for number in range(3):
            fake.add_node(f"any-{number}")
        # The two names that the page defines, and no other: what it does not say, a reader does not have.
        names: dict[str, Any] = {"url": fake.url, "key": KEY}
        compiled = compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, names)  # noqa: S307 - our own page
        if inspect.isawaitable(result):
            await result
    assert capsys.readouterr().out
