"""All benches of one run note their figures in one place; it is printed and written at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.figures import Figures

FIGURES = pytest.StashKey[Figures]()
OUT = Path(os.environ.get("BENCH_OUT", "build/bench.json"))


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Where a bench notes what it has measured."""
    return pytestconfig.stash.setdefault(FIGURES, Figures())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(FIGURES, None)
    if found is None or not found.rows:
        return
    found.write(OUT)
    terminalreporter.section("figures (ratio to the reference)")
    terminalreporter.write_line(found.table())
    terminalreporter.write_line(f"\n{len(found.rows)} figures, in {OUT}")
