"""Run the checks by name, one after the other, and say how long each took.

``python -m hack.check lint unit integration e2e`` is ``make test``. The first check that fails ends the run, except
that all test suites are counted together, so that the last line is one for all: ``N passed, N failed``.

What a suite needs built (programs, images) is there before it starts: minutes on a fresh machine, which no test's time
limit allows for. It is built beside the checks that come first (`hack.preparing`).
"""

from __future__ import annotations

import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.images.errors import ImagesError
from hack.localkube.errors import LocalKubeError
from hack.preparing import Preparation, image_sets, programs
from hack.progress import say

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / ".test-reports"
PYTHON = sys.executable
IN_TWO = ("--numprocesses=2",)
FILES_IN_TWO = (*IN_TWO, "--dist=loadfile")
"""Two processes, each with what it starts for itself: two control planes or two clusters, neither of which knows the
other."""

SUITES: dict[str, tuple[tuple[str, ...], ...]] = {
    "unit": (("tests/unit", *IN_TWO, "--dist=worksteal"),),
    "integration": (("tests/integration", *FILES_IN_TWO),),
    # What looks for traces on the whole machine must be alone on it.
    "e2e": (("tests/e2e/ground",), ("tests/e2e/operator", *FILES_IN_TWO)),
}
"""For each suite what pytest is called with, one call after the other."""


@dataclass
class Tally:
    """What was run so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0


def lint_commands() -> list[list[str]]:
    """Return the commands of ``lint``; each ends with a non-zero status if it finds something."""
    return [
        [PYTHON, "-m", "ruff", "check", "."],
        [PYTHON, "-m", "ruff", "format", "--check", "."],
        [PYTHON, "-m", "mypy"],
        [PYTHON, "-c", "from importlinter.cli import lint_imports_command as main; main()"],
        [PYTHON, "-m", "slinky_api.crd", "check"],
        [PYTHON, "-m", "hack.packaging", "check"],
    ]


def run_suite(name: str, tally: Tally) -> int:
    """Run one test suite, all of it even if a part fails; returns the first status that is not zero."""
    found = [run_tests(arguments, tally) for arguments in SUITES[name]]
    return next((status for status in found if status), 0)


def run_tests(arguments: Sequence[str], tally: Tally) -> int:
    """Call pytest once, streaming its output; count its results from its report."""
    REPORTS.mkdir(exist_ok=True)
    report = REPORTS / f"{arguments[0].removeprefix('tests/').replace('/', '-')}.xml"
    report.unlink(missing_ok=True)
    status = subprocess.run(
        [PYTHON, "-m", "pytest", *arguments, f"--junitxml={report}", "--durations=10"], cwd=ROOT, check=False
    ).returncode
    if report.exists():
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 our own file
            bad = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
            tally.failed += bad
            tally.passed += int(suite.get("tests", "0")) - bad - int(suite.get("skipped", "0"))
    return status


def run_check(name: str, tally: Tally, preparation: Preparation) -> int:
    """Run one check by its name and return its exit status."""
    if name == "lint":
        for command in lint_commands():
            print(f"$ {' '.join(command[1:])}", flush=True)
            status = subprocess.run(command, cwd=ROOT, check=False).returncode
            if status != 0:
                return status
        return 0
    try:
        preparation.wait_for(name)
    except (LocalKubeError, ImagesError, OSError) as error:
        say(f"check: {error}")
        return 1
    return run_suite(name, tally)


def main(names: Sequence[str]) -> int:
    """Run the named checks."""
    tally = Tally()
    suites = [name for name in names if name in SUITES]
    with Preparation([programs(suites), image_sets(suites)], list(SUITES)) as preparation:
        status = run_checks(names, tally, preparation)
    print("\n=== time")
    for name, seconds in tally.seconds.items():
        print(f"{name:12} {seconds:7.1f} s")
    if status != 0:
        print(f"{list(tally.seconds)[-1]} failed (status {status})")
    if tally.passed or tally.failed:
        print(f"{tally.passed} passed, {tally.failed} failed", flush=True)
    return status


def run_checks(names: Sequence[str], tally: Tally, preparation: Preparation) -> int:
    """Run the checks one after the other until one fails; returns its status."""
    for name in names:
        print(f"\n=== {name}", flush=True)
        start = time.monotonic()
        status = run_check(name, tally, preparation)
        tally.seconds[name] = time.monotonic() - start
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["lint", *SUITES]))
