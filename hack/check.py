"""Run the checks by name, one after the other, and say how long each took.

``python -m hack.check lint unit integration e2e`` is ``make test``. All checks are run, whichever of them fails: a
failure of one must not hide what the others would find. All test suites are counted together, so that the last line is
one for all: ``N passed, N failed``. A check that fails without a failed test, such as lint, or a suite for which
something could not be built, counts as one failure there.

Three sizes of the same: ``make check`` takes the quick suites, for each save; ``make test`` all that protects a
promise; ``make test-full`` whatever there is.

Tests of real daemons meet faults of those daemons too, and all tests what a busy machine does to them. Where few tests
of a suite fail, their files are run a second time, with nothing beside them. The closing lines name each test that
failed, with the reason, and whether it was passed then: such a test is looked into like one that failed twice, but does
not hide what all the others have shown.

What a suite needs built (programs, images) is there before it starts: minutes on a fresh machine, which no test's time
limit allows for. It is built beside the checks that come first (`hack.testing.preparing`).

With ``--profile`` each check is followed by the CPU time of each program on the machine, and the slowest files and
tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hack.images.errors import ImagesError
from hack.localkube.errors import LocalKubeError, NoSpace
from hack.localkube.paths import state_root
from hack.machine import neutral_start
from hack.machine.progress import say
from hack.testing import profile, report
from hack.testing.preparing import Preparation, image_sets, programs
from hack.testing.report import Failure, Results
from hack.testing.suites import SUITES, Call

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / ".test-reports"
PYTHON = sys.executable
NEEDS_MIB = 2000
"""Room for temporary files: databases and state of daemons, the last ones kept to look at."""

FEW, FEW_FILES = 40, 6
"""Failed tests of one call that are run again, and their files. A daemon that hangs fails all tests that share it; more
files than that have a reason that a second time does not change."""

TESTS_FAILED = 1
"""Exit status of pytest if it ran to its end and tests failed."""

PREPARED = ("unit", "integration", "e2e")
"""The suites of `hack.testing.preparing` in the order in which they may run."""


SECOND_TIME = "passed the second time"

PROFILE = "--profile"
"""Option: say where the time of each check goes."""


@dataclass
class Tally:
    """What was run so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0
    failures: list[tuple[Failure, str]] = field(default_factory=list)
    """Tests that failed, and what is known of a second time."""

    @property
    def mended(self) -> int:
        """Number of tests that passed the second time only."""
        return sum(known == SECOND_TIME for _, known in self.failures)


def lint_commands() -> list[list[str]]:
    """Return the commands of ``lint``; each ends with a non-zero status if it finds something."""
    return [
        [PYTHON, "-m", "ruff", "check", "."],
        [PYTHON, "-m", "ruff", "format", "--check", "."],
        [PYTHON, "-m", "mypy"],
        [PYTHON, "-c", "from importlinter.cli import lint_imports_command as main; main()"],
        [PYTHON, "-m", "slinky_api.crd", "check"],
        [PYTHON, "-m", "hack.packaging", "check"],
        [PYTHON, "-m", "hack.dashboards", "check"],
    ]


def run_linters() -> list[int]:
    """Run linters, two at a time, and show each with what it says; returns their statuses."""
    commands, statuses = lint_commands(), list[int]()
    # mypy takes as long as the others together.
    with ThreadPoolExecutor(2) as pool:
        for command, done in zip(commands, pool.map(run_linter, commands), strict=True):
            print(f"$ {' '.join(command[1:])}\n{done.stdout}", end="", flush=True)
            statuses.append(done.returncode)
    return statuses


def run_linter(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a linter; its errors are part of its output."""
    return subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def first_bad(statuses: Iterable[int]) -> int:
    """Return the first status that is not zero."""
    return next((status for status in statuses if status), 0)


def run_suite(name: str, tally: Tally) -> int:
    """Run one test suite, all of it even if a part fails; returns the first status that is not zero."""
    return first_bad([status for step in SUITES[name].steps for status in run_step(step, tally)])


def check_room() -> None:
    """Check that tests find room for their temporary files: each would fail in another way without.

    Raises
    ------
    NoSpace
        The file system of temporary files is too full.
    """
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free // 2**20
    if free < NEEDS_MIB:
        raise NoSpace(folder, free, NEEDS_MIB)


@contextmanager
def alone(suite: str) -> Iterator[None]:
    """Hold what one run of a suite has to itself: the end-to-end tests of a user have one local Kubernetes.

    The first thing they do is to end what an earlier run has left of it; that of a run beside must not be taken for it.
    """
    if suite != "e2e":
        yield
        return
    path = state_root() / "e2e.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"check: another run of the end-to-end tests holds {path}: waiting for its end")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def run_step(calls: Sequence[Call], tally: Tally) -> Iterator[int]:
    """Run calls of pytest side by side and count their results; yields their statuses."""
    REPORTS.mkdir(exist_ok=True)
    with ThreadPoolExecutor(len(calls)) as pool:
        statuses = list(pool.map(lambda call: run_tests(call, is_alone=len(calls) == 1), calls))
    yield from [settle(call, status, tally) for call, status in zip(calls, statuses, strict=True)]


def settle(call: Call, status: int, tally: Tally) -> int:
    """Count the results of a call, after a second time for a few failures; returns the status that is left."""
    results = report.read(REPORTS / f"{call.report}.xml")
    again = second_time(call, status, results)
    if again is None:
        count(results, results.failures, "", tally)
        return status
    say(f"check: {len(results.failures)} failed, running again {' '.join(results.files(ROOT))}")
    status = run_tests(again, is_alone=True)
    still = report.read(REPORTS / f"{again.report}.xml").failures
    count(results, still, SECOND_TIME if status == 0 else "not all passed the second time", tally)
    return status


def second_time(call: Call, status: int, results: Results) -> Call | None:
    """Return the call that runs the files of failed tests again; None if these are many, or not to be run again."""
    files = results.files(ROOT)
    if not call.has_second_time or status != TESTS_FAILED:
        return None
    return call.again(files) if 0 < len(files) <= FEW_FILES and len(results.failures) <= FEW else None


def run_tests(call: Call, *, is_alone: bool) -> int:
    """Call pytest once, streaming its output, each line with the name of its report if others stream beside it."""
    report = REPORTS / f"{call.report}.xml"
    report.unlink(missing_ok=True)
    command = [PYTHON, "-m", "pytest", *call.arguments, f"--junitxml={report}", "--durations=10"]
    # Into a pipe it would write much at a time, and late.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **call.environment}
    if is_alone:
        return subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(f"{call.report}: {line}", end="", flush=True)
    return process.returncode


def count(results: Results, still: Sequence[Failure], known: str, tally: Tally) -> None:
    """Add results to the tally, with the failures that are left of them."""
    tally.failed += len(still)
    tally.passed += results.passed + max(0, len(results.failures) - len(still))
    tally.failures += [(failure, known) for failure in results.failures]


def run_check(name: str, tally: Tally, preparation: Preparation) -> int:
    """Run one check by its name and return its exit status."""
    if name == "lint":
        return first_bad(run_linters())
    try:
        check_room()
        preparation.wait_for(SUITES[name].needs)
    except (LocalKubeError, ImagesError, OSError) as error:
        say(f"check: {error}")
        return 1
    with alone(SUITES[name].needs):
        return run_suite(name, tally)


Check = Callable[[str, Tally, Preparation], int]
"""Runs a check by its name, and returns its exit status."""


def main(names: Sequence[str]) -> int:
    """Run the named checks."""
    tally, run = Tally(), run_profiled if PROFILE in names else run_check
    names = [name for name in names if name != PROFILE]
    needs = [SUITES[name].needs for name in names if name in SUITES]
    with Preparation([programs(needs), image_sets(needs)], PREPARED) as preparation:
        run_checks(names, tally, preparation, run)
    print_failures(tally)
    print("\n=== time")
    for name, seconds in tally.seconds.items():
        print(f"{name:12} {seconds:7.1f} s")
    for name, status in tally.statuses.items():
        if status != 0:
            print(f"{name} failed (status {status})")
    if tally.passed or tally.failed:
        mended = f", {tally.mended} {SECOND_TIME} only" if tally.mended else ""
        print(f"{tally.passed} passed, {tally.failed} failed{mended}", flush=True)
    return first_bad(tally.statuses.values())


def print_failures(tally: Tally) -> None:
    """Name all tests that failed; what is left of them comes last, where the end of a long output still shows it."""
    passed = [failure for failure, known in tally.failures if known == SECOND_TIME]
    if passed:
        print(f"\n=== {SECOND_TIME}", *passed, sep="\n")
    left = [(failure, known) for failure, known in tally.failures if known != SECOND_TIME]
    if left:
        print("\n=== failed")
    for failure, known in left:
        print(f"{failure}{f' ({known})' if known else ''}")


def run_profiled(name: str, tally: Tally, preparation: Preparation) -> int:
    """Run one check, and print where its time went."""
    with profile.profiled() as found:
        status = run_check(name, tally, preparation)
    print(f"\n=== profile of {name}", *found.lines(), sep="\n")
    reports = [REPORTS / f"{call.report}.xml" for step in SUITES[name].steps for call in step] if name in SUITES else []
    print(*profile.slowest(one for one in reports if one.exists()), sep="\n", flush=True)
    return status


def run_checks(names: Sequence[str], tally: Tally, preparation: Preparation, run: Check = run_check) -> None:
    """Run the checks one after the other, whichever of them fail."""
    for name in names:
        print(f"\n=== {name}", flush=True)
        start, failed = time.monotonic(), tally.failed
        status = run(name, tally, preparation)
        tally.seconds[name], tally.statuses[name] = time.monotonic() - start, status
        if status != 0 and tally.failed == failed:
            tally.failed += 1


if __name__ == "__main__":
    neutral_start.begin()
    wanted = sys.argv[1:]
    sys.exit(main(wanted if set(wanted) - {PROFILE} else [*wanted, "lint", *PREPARED]))
