"""Faults of processes in pods: they are killed or frozen.

All is done from the machine, by signals, so that a fault begins and ends whatever else is broken.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hack.localkube.cluster import Cluster
from tests.campaign.faults.kind import Doing, Ending, Fault, MetNothing, Place, soon

SLURMCTLD_KILLED: Final = "slurmctld killed"
SLURMCTLD_ENDED: Final = "slurmctld ended"
SLURMDBD_KILLED: Final = "slurmdbd killed"
SLURMDBD_FROZEN: Final = "slurmdbd frozen"
MARIADB_KILLED: Final = "MariaDB killed"
MARIADB_FROZEN: Final = "MariaDB frozen"
OPERATOR: Final = "slurm-operator"
AGENT: Final = "slinky_operator.agent"
JOB_LOGS: Final = "slinky_operator.joblogs serve"
"""The server for output of jobs, beside slurmd."""

THERE: Final = 120.0
"""Seconds in which a process must be there that is to be killed or frozen.

It may just begin again: a pod that the API server, while frozen, could not replace is away for most of a minute on a
busy machine. The round has to wait for it anyway before all is at rest.
"""

OBEYED: Final = 30.0
"""Seconds after which a signal must have had its effect: a daemon that is asked to end saves its state first."""


def processes(cluster: Cluster, command: str, *, is_name: bool = True, below: str = "") -> list[int]:
    """Processes of pods of this local Kubernetes, oldest first; no API server is asked.

    Parameters
    ----------
    command
        Name of the program, or words in its command line; empty for any.
    is_name
        Which of both.
    below
        Only those of this Node.
    """
    group = f"{cluster.paths.cgroup}/{below}/" if below else cluster.paths.cgroup
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            ours = group in (entry / "cgroup").read_text()
            argv = [os.fsdecode(word) for word in (entry / "cmdline").read_bytes().split(b"\0")]
            name = (entry / "comm").read_text().strip()
            if ours and (not command or is_meant(command, name, argv, is_name=is_name)):
                found.append(int(entry.name))
    return sorted(found)


def is_meant(command: str, name: str, argv: Sequence[str], *, is_name: bool) -> bool:
    """Whether a process is one of a program.

    Daemons of Slurm start themselves again when they are reconfigured, by a file of another name: after that only their
    command line has theirs.
    """
    return command in {name, Path(argv[0]).name} if is_name else command in " ".join(argv)


def state(pid: int) -> str:
    """Letter of the state of a process, as the kernel has it; empty if it has ended."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
    return "" if letter in {"Z", "X"} else letter


def _send(command: str, number: signal.Signals, *, is_name: bool = True, all_of_them: bool = False) -> Doing:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        found = soon(lambda: processes(place.cluster, command, is_name=is_name), THERE)
        if not found:
            raise MetNothing(f"no process of {command} is there")
        if not all_of_them:
            found = [found[values["which"] % len(found)]]
        hit(found, number)
        return f"{number.name} to {command} {found}"

    return begin


def hit(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes, and wait until each is stopped or has ended.

    Raises
    ------
    MetNothing
        One goes on.
    """
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    over = {"T", "t", ""} if number is signal.SIGSTOP else {""}
    if not soon(lambda: all(state(pid) in over for pid in pids), OBEYED):
        raise MetNothing(f"{number.name} changed nothing: {', '.join(f'{pid} is {state(pid)}' for pid in pids)}")


def _thaw(command: str, *, is_name: bool = True) -> Ending:
    def end(place: Place, values: Mapping[str, Any]) -> None:
        for pid in processes(place.cluster, command, is_name=is_name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return end


def _killed(command: str, weight: int = 2, *, is_name: bool = True, all_of_them: bool = False) -> Fault:
    return Fault(_send(command, signal.SIGKILL, is_name=is_name, all_of_them=all_of_them), weight=weight)


def _frozen(command: str, lasts: tuple[float, float], weight: int = 2, *, is_name: bool = True) -> Fault:
    begin = _send(command, signal.SIGSTOP, is_name=is_name, all_of_them=True)
    return Fault(begin, _thaw(command, is_name=is_name), lasts, weight)


PROCESSES: Final[Mapping[str, Fault]] = {
    "operator killed": _killed(OPERATOR, weight=4),
    "operators killed": _killed(OPERATOR, all_of_them=True),
    # Longer than its Lease lasts, now and then.
    "operator frozen": Fault(_send(OPERATOR, signal.SIGSTOP), _thaw(OPERATOR), (3, 25), weight=3),
    "slurmrestd killed": _killed("slurmrestd"),
    "slurmrestd frozen": _frozen("slurmrestd", (3, 20)),
    SLURMCTLD_KILLED: _killed("slurmctld", weight=1),
    "slurmctld frozen": _frozen("slurmctld", (3, 15)),
    SLURMCTLD_ENDED: Fault(_send("slurmctld", signal.SIGTERM)),
    SLURMDBD_KILLED: _killed("slurmdbd"),
    SLURMDBD_FROZEN: _frozen("slurmdbd", (3, 20)),
    MARIADB_KILLED: _killed("mariadbd", weight=1),
    MARIADB_FROZEN: _frozen("mariadbd", (3, 20), weight=1),
    "agent killed": _killed(AGENT, is_name=False),
    "agent frozen": _frozen(AGENT, (3, 20), is_name=False),
    "job log server killed": _killed(JOB_LOGS, weight=1, is_name=False),
}


def mend(place: Place) -> None:
    """Let every process run that a fault may have left frozen."""
    for command in (OPERATOR, "slurmrestd", "slurmctld", "slurmdbd", "mariadbd"):
        _thaw(command)(place, {})
    _thaw(AGENT, is_name=False)(place, {})
