"""Nobody holds a whole collection: whoever may create objects in a namespace decides how much that is.

`each` gives objects one by one, and caches have a budget. `list`, which holds all, is for programs around the operator.
"""

from __future__ import annotations

import ast

from hack.localkube.paths import PROJECT


def lists(text: str) -> list[int]:
    """Lines that call a method `list` of something."""
    calls = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call))
    return [one.lineno for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "list"]


def test_a_call_is_found() -> None:
    assert lists("found = (await context.kube.list(PODS)).items") == [1]


def test_no_module_of_the_operator_lists_a_collection() -> None:
    modules = list((PROJECT / "slinky_operator").rglob("*.py"))
    assert modules
    assert [f"{path}:{line}" for path in modules for line in lists(path.read_text())] == []
