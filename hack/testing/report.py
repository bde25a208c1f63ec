"""What a call of pytest has reported: how many tests passed, which failed and why, and in which files these are.

Leaves to others what is run, and what becomes of a failure (`hack.check`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

LONGEST_REASON = 300
"""Characters of the reason of a failure in the closing lines; the output above them has all of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed.

    Attributes
    ----------
    module
        Dotted name of its module.
    test
        Its name, with parameters.
    reason
        First line of what it failed with.
    """

    module: str
    test: str
    reason: str

    def file(self, root: Path) -> Path | None:
        """Return its file below a folder; None where it cannot be told, as for a worker that has crashed."""
        parts = self.module.split(".")
        # A test of a class has the class in the name.
        names = (Path(f"{'/'.join(parts[:count])}.py") for count in range(len(parts), 0, -1))
        return next((name for name in names if (root / name).is_file()), None)

    @override
    def __str__(self) -> str:
        return f"{self.module}::{self.test} - {self.reason}"


@dataclass(frozen=True, slots=True)
class Results:
    """What was reported.

    Attributes
    ----------
    passed
        Number of tests.
    failures
        A test that fails twice, for instance in its teardown too, is there twice.
    """

    passed: int = 0
    failures: tuple[Failure, ...] = ()

    def files(self, root: Path) -> tuple[str, ...]:
        """Return the files of all failures, each once; empty if there is a failure whose file is unknown."""
        found = [failure.file(root) for failure in self.failures]
        return tuple(dict.fromkeys(str(file) for file in found if file)) if all(found) else ()


def read(report: Path) -> Results:
    """Read a report in the format of JUnit; a run that was ended has left none."""
    if not report.exists():
        return Results()
    passed, failures = 0, list[Failure]()
    for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 our own file
        failures += failures_of(suite)
        bad = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        passed += int(suite.get("tests", "0")) - bad - int(suite.get("skipped", "0"))
    return Results(passed, tuple(failures))


def failures_of(suite: ET.Element) -> Iterator[Failure]:
    """Yield the failures of a suite, in its order."""
    for case in suite.iter("testcase"):
        for bad in (*case.findall("failure"), *case.findall("error")):
            lines = bad.get("message", "").splitlines() or ["no reason was reported"]
            yield Failure(case.get("classname", ""), case.get("name", ""), lines[0][:LONGEST_REASON])
