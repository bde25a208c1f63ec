"""Of thorough unit tests, `make test` runs some cases of each: all of them take minutes."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run one in N cases of each thorough test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    one_in, seen, left = config.getoption("--one-in"), Counter[str](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("thorough"):
            test = item.nodeid.partition("[")[0]
            if seen[test] % one_in:
                left.append(item)
            seen[test] += 1
    if left:
        skipped = set(left)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in skipped]
