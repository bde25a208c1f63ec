"""Where the time of a check goes: the CPU time of each program on the machine, and the slowest tests and files.

For ``python -m hack.check --profile``: a thread looks at all processes every two seconds, which costs some 0.5 % of a
processor, so it is an option. It counts what the whole machine does, as pods and daemons are no children of pytest; run
nothing beside it. Leaves what is run to `hack.check`, and failures to `testing.report`.
"""

from __future__ import annotations

import os
import threading
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SECONDS_BETWEEN_LOOKS: Final = 2.0
SHOWN: Final = 25
"""Programs, files and tests that are listed."""

LEAST: Final = 0.05
"""Seconds of which one decimal shows nothing."""

SHORT_LIVED: Final = "(processes of less than two seconds)"
PYTHON: Final = ("python", "pytest")
TICKS: Final = os.sysconf("SC_CLK_TCK")
_UTIME, _START = 11, 19
"""Fields of ``/proc/PID/stat`` after the name of the program; system time is the one after user time."""


@dataclass
class CpuProfile:
    """CPU seconds of programs while a check runs.

    Attributes
    ----------
    proc
        Where the kernel shows processes.
    seconds
        By program.
    busy, idle
        Of all processors together, programs that ended between two looks included.
    """

    proc: Path = Path("/proc")
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: float = 0.0
    idle: float = 0.0
    _seen: dict[tuple[str, int], float] = field(default_factory=dict)
    _machine: tuple[float, float] = (0.0, 0.0)

    def begin(self) -> None:
        """Take what processes have used so far as the beginning."""
        self.look()
        self.seconds.clear()
        self.busy = self.idle = 0.0

    def look(self) -> None:
        """Add what has been used since the last look."""
        busy, idle = machine_seconds(self.proc)
        self.busy += busy - self._machine[0]
        self.idle += idle - self._machine[1]
        self._machine = busy, idle
        now: dict[tuple[str, int], float] = {}
        for entry in self.proc.iterdir():
            if entry.name.isdigit() and (found := process_seconds(entry)):
                start, used, name = found
                # A number may be that of another process meanwhile.
                key = entry.name, start
                now[key] = used
                self.seconds[name] += used - self._seen.get(key, 0.0)
        self._seen = now

    def lines(self) -> Iterator[str]:
        """Yield the table, the program with most CPU time first."""
        whole = self.busy + self.idle
        yield f"CPU: {self.busy:.0f} s, processors busy for {100 * self.busy / max(whole, 1.0):.0f} % of the time"
        unseen = self.busy - sum(self.seconds.values())
        yield from longest({**self.seconds, SHORT_LIVED: unseen})


def machine_seconds(proc: Path) -> tuple[float, float]:
    """Return for how long all processors have been busy and idle since the machine started."""
    words = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, idle, wait, irq, softirq = (int(word) / TICKS for word in words[:7])
    return user + nice + system + irq + softirq, idle + wait


def process_seconds(folder: Path) -> tuple[int, float, str] | None:
    """Return start, CPU seconds and program of a process; None if it has ended."""
    try:
        head, _, tail = (folder / "stat").read_text().rpartition(") ")
        argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = tail.split()
    used = (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / TICKS
    return int(fields[_START]), used, program(head.partition(" (")[2], argv)


def program(name: str, argv: list[str]) -> str:
    """Return what a process is called in the table: of Python the module or the script, which its name does not say."""
    words = [word for word in argv if word]
    if not name.startswith(PYTHON) or len(words) == 1:
        return name
    if "-m" in words[:-1]:
        return f"python -m {words[words.index('-m') + 1]}"
    if any("sys.stdin.readline" in word for word in words):
        return "pytest worker"
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if "-c" in words[:2] or "\n" in script:
        return "python -c"
    return f"python {Path(script).name}"


def longest(seconds: Mapping[str, float]) -> Iterator[str]:
    """Yield lines of the names with most seconds, and of none that rounds to nothing."""
    shown = sorted(((used, name) for name, used in seconds.items() if used >= LEAST), reverse=True)
    yield from (f"{used:9.1f} s  {name}" for used, name in shown[:SHOWN])


@contextmanager
def profiled() -> Iterator[CpuProfile]:
    """Profile the machine during a block."""
    profile, end = CpuProfile(), threading.Event()
    profile.begin()

    def watch() -> None:
        while not end.wait(SECONDS_BETWEEN_LOOKS):
            profile.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield profile
    finally:
        end.set()
        thread.join()
        profile.look()


def slowest(reports: Iterable[Path]) -> Iterator[str]:
    """Yield the slowest files, which are what a process gets at a time, and the slowest tests of some reports."""
    files, tests = defaultdict[str, float](float), defaultdict[str, float](float)
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 our own file
            seconds, module = float(case.get("time", "0")), case.get("classname", "")
            files[f"{report.stem}: {module}"] += seconds
            tests[f"{report.stem}: {module}::{case.get('name')}"] += seconds
    for title, found in (("files", files), ("tests", tests)):
        yield f"slowest {title}, with what they set up"
        yield from longest(found)
