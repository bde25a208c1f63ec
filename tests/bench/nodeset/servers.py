"""How much CPU the API server and etcd have used, so that load on the machine does not decide what a call costs."""

from __future__ import annotations

import os
from pathlib import Path

from hack.localkube import machine

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(below: Path) -> float:
    """CPU that all services of the machines below a folder have used."""
    supervisors = {pid for pids in machine.find(below).values() for pid in pids}
    return sum(ticks for parent, ticks in _processes() if parent in supervisors) / _TICK


def _processes() -> list[tuple[int, int]]:
    """Parent and used ticks of each process."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended, so it is no server of ours
        # The name, in parentheses, may hold anything.
        fields = stat.rpartition(")")[2].split()
        found.append((int(fields[1]), int(fields[11]) + int(fields[12])))
    return found
