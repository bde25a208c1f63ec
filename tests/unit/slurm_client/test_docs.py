"""The examples in the pages about the client do what they say."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from slurm_client.testing import FakeSlurmrestd
from tests.support.documents import Action, Block, blocks

PAGE = "slurm_client/docs/guide.md"
PAGES = (PAGE, "slurm_client/README.md", "slurm_client/docs/cookbook.md")
BLOCKS = [(page, block) for page in PAGES for block in blocks(page) if block.language == "python"]
EXAMPLES = [(page, block) for page, block in BLOCKS if block.action is Action.RUN]
KEY = b"k" * 32


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_where_its_names_come_from(page: str) -> None:
    first, *_ = (block for there, block in BLOCKS if there == page and block.action is Action.NOT_RUN)
    assert re.findall(r"^(\w+) = ", first.text, flags=re.MULTILINE) == ["url", "key"]


def test_there_are_examples() -> None:
    assert {block.heading for page, block in EXAMPLES if page == PAGE} >= {
        "Connect",
        "Nodes",
        "Jobs",
        "Watch",
        "Test with it",
    }
    assert {page for page, _ in EXAMPLES} == set(PAGES)


@pytest.mark.parametrize(
    "block",
    [block for _, block in EXAMPLES],
    ids=[f"{page}, {block.heading}, line {block.line}" for page, block in EXAMPLES],
)
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
