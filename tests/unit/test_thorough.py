"""How many cases of thorough tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hack.check import ROOT

TESTS = """
import pytest

@pytest.mark.thorough
@pytest.mark.parametrize("case", range(9))
def test_thorough(case): pass

@pytest.mark.thorough
def test_one_case(): pass

@pytest.mark.parametrize("case", range(3))
def test_other(case): pass
"""


@pytest.mark.parametrize(
    ("options", "thorough"), [((), [*range(9)]), (("--one-in=4",), [0, 4, 8])], ids=["all", "one in four"]
)
def test_each_test_has_its_share_and_others_are_whole(
    tmp_path: Path, options: tuple[str, ...], thorough: list[int]
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "-p",
        "tests.unit.conftest",
        "-p",
        "no:cacheprovider",
    ]
    settings = ["--rootdir", str(tmp_path), "-c", str(ROOT / "pyproject.toml"), *options]
    done = subprocess.run([*command, *settings, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, text=True)
    collected = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert collected == [
        *(f"test_thorough[{case}]" for case in thorough),
        "test_one_case",
        *(f"test_other[{case}]" for case in range(3)),
    ]
