"""Processes get whole files with one version of Slurm at a time, those that are long first."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from hack.machine.neutral_start import ROOT

HOOKS = "from tests.support.files_by_version import *\n"

TESTS = """
import os
from pathlib import Path
import pytest
{mark}
@pytest.mark.parametrize("what", ["24.11-a", "24.11-b", "26.05-a", "26.05-b"])
def test_versions(what):
    say("test_{name}", what[:5])

@pytest.mark.parametrize("number", range(3))
def test_others(number):
    say("test_{name}", "")

def say(*words):
    with Path("{said}").open("a") as file:
        file.write(" ".join((os.environ["PYTEST_XDIST_WORKER"], *words)) + "\\n")
"""


def test_a_file_is_run_by_one_process_for_each_version_and_long_ones_first(tmp_path: Path) -> None:
    said = tmp_path / "said"
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  long(seconds): first\n")
    long, longest = "pytestmark = pytest.mark.long", "pytestmark = pytest.mark.long(100)"
    for name, mark in (("a", ""), ("b", ""), ("y", long), ("z", longest)):
        (tmp_path / f"test_{name}.py").write_text(TESTS.format(name=name, mark=mark, said=said))
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses=2", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "28 passed" in done.stdout, done.stdout

    lines = [line.split() for line in said.read_text().splitlines()]
    processes = defaultdict(set)
    for process, *unit in lines:
        processes[tuple(unit)].add(process)
    assert {unit: len(found) for unit, found in processes.items()} == dict.fromkeys(
        [(f"test_{name}", *version) for name in "abyz" for version in (("24.11",), ("26.05",), ())], 1
    )
    first = {process: next(unit[0] for other, *unit in lines if other == process) for process, *_ in lines}
    assert set(first.values()) == {"test_z"}
