"""CPU time used by the API server and etcd, so that load on the machine does not affect the cost of a call."""

from __future__ import annotations

import os
from pathlib import Path

from hack.localkube.host import machine

_TICK = os.sysconf("SC_CLK_TCK")


class Servers:
    """The services of all machines below a folder, looked up once: looking through all processes takes its time."""

    def __init__(self, below: Path) -> None:
        supervisors = {pid for pids in machine.find(below).values() for pid in pids}
        everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        self._pids = [pid for pid in everybody if _read(pid)[0] in supervisors]

    def cpu_seconds(self) -> float:
        """CPU that they have used."""
        return sum(_read(pid)[1] for pid in self._pids) / _TICK


def _read(pid: int) -> tuple[int, int]:
    """Parent and used ticks of a process; none of either for one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    # The name, in parentheses, may hold anything.
    fields = stat.rpartition(")")[2].split()
    return int(fields[1]), int(fields[11]) + int(fields[12])
