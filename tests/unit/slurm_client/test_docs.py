"""The examples of docs/slurm-client.md do what they say."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from slurm_client.testing import FakeSlurmrestd

PAGE = Path(__file__).parents[3] / "docs" / "slurm-client.md"
EXAMPLES = re.findall(r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
KEY = b"k" * 32


def test_there_are_examples() -> None:
    assert {title for title, _ in EXAMPLES} >= {"Connect", "Nodes", "Jobs", "Watch", "Test with it"}


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
async def test_an_example_runs(title: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeSlurmrestd(key=KEY) as fake:
        for number in range(2):
            fake.add_node(f"w-{number}")
        names: dict[str, Any] = {"url": fake.url, "key": KEY, "fake": fake}
        compiled = compile(code, f"{PAGE.name}: {title}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, names)  # noqa: S307 - our own page
        if inspect.isawaitable(result):
            await result
    assert capsys.readouterr().out
