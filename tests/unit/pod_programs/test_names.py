"""Names under which pods start their programs stay: a pod is replaced when its command line changes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "slinky_operator"
NAMES = {
    "slinky_operator.agent",
    "slinky_operator.agent.sack",
    "slinky_operator.joblogs",
}
"""A name that is missing here is new; one that is here is in command lines of pods that run."""


def test_pods_start_their_programs_by_names_that_stay() -> None:
    used = {name for path in ROOT.rglob("*.py") for name in re.findall(r'"-m", "([\w.]+)"', path.read_text())}
    assert used == NAMES


@pytest.mark.parametrize("name", sorted(NAMES - {"slinky_operator.agent"}))
def test_each_name_has_its_program(name: str) -> None:
    assert callable(importlib.import_module(name).main)
