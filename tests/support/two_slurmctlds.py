"""
Two slurmctlds with one state, on 127.0.0.1 and 127.0.0.2: the first in the list of hosts, and its backup.

Each has a host name and a log of its own, and runs as a daemon, as in a pod; all see one configuration. What is tried
with them is left to the caller.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from tests.support.daemons import short_host_name
from tests.support.slurm_host import SLURM_UID, SlurmHost

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

FIRST: Final = "ctl-0"
BACKUP: Final = "ctl-1"
_ADDRESSES: Final = {FIRST: "127.0.0.1", BACKUP: "127.0.0.2"}

TIMEOUT: Final = 10
"""``SlurmctldTimeout``, in seconds; Slurm's default is 120."""

IN_CONTROL: Final = "Running as primary controller"
WAITING: Final = "slurmctld running in background mode"

_KEEP: Final = """
runs() { grep -qs slurmctld /proc/[0-9]*/comm; }
slurmctld || exit
while runs || { sleep 1; runs; }; do sleep 0.1; done
"""
"""Holds the namespaces for as long as there is a slurmctld, whose process changes when it reads its files."""


class TwoSlurmctlds(SlurmHost):
    """A cluster that may have a second slurmctld. Neither is started by itself."""

    @override
    def write_conf(self, extra: str = "") -> None:
        super().write_conf(extra)
        hosts = "".join(f"SlurmctldHost={name}({address})\n" for name, address in _ADDRESSES.items())
        log = f"SlurmctldTimeout={TIMEOUT}\nSlurmctldLogFile=/var/log/slurmctld.log"
        conf = self.configuration / "slurm.conf"
        text = re.sub(r"SlurmctldHost=.*\n", hosts, conf.read_text())
        _ = conf.write_text(text.replace("SlurmctldLogFile=/dev/stderr", log))
        known = "".join(f"{address} {name}\n" for name, address in _ADDRESSES.items())
        _ = (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost {short_host_name()}\n{known}")

    def start_controller(self, name: str) -> None:
        """Start one of them, with an empty log."""
        folder = self._log(name).parent
        folder.mkdir(exist_ok=True)
        os.chown(folder, SLURM_UID, SLURM_UID)
        _ = self._log(name).write_text("")
        os.chown(self._log(name), SLURM_UID, SLURM_UID)
        self.binds["/var/log"] = folder
        self.spawn(name, ["unshare", "--uts", "sh", "-c", f"hostname {name}; {_KEEP}"])
        del self.binds["/var/log"]

    def end_controller(self, name: str) -> None:
        """End one as its pod does: SIGTERM to slurmctld, which saves its state, and wait."""
        daemon = self.daemons.pop(name)
        self.signal(daemon.process.pid, signal.SIGTERM, "slurmctld")
        _ = daemon.process.wait(60)

    def pause(self, name: str) -> None:
        """Stop all processes of a daemon, as a machine does that hangs and comes back."""
        self.signal(self.daemons[name].process.pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let them go on."""
        self.signal(self.daemons[name].process.pid, signal.SIGCONT)

    def signal(self, above: int, number: signal.Signals, command: str = "") -> None:
        """Send a signal to all processes in the namespaces below a process, or to those of a command."""
        (first,) = Path(f"/proc/{above}/task/{above}/children").read_text().split()
        space = Path(f"/proc/{first}/ns/pid").readlink()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns" / "pid").readlink() == space and (folder / "comm").read_text().startswith(command):
                    os.kill(int(folder.name), number)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                # It has ended while /proc was read, or belongs to another test.
                continue

    def says(self, name: str) -> str:
        """What one has written since its start."""
        return self._log(name).read_text(errors="replace")

    def is_in_control(self, name: str) -> bool:
        """Whether one says so, and not later that it waits."""
        said = self.says(name)
        return said.rfind(IN_CONTROL) > said.rfind(WAITING)

    @override
    def run(
        self, *command: str, check: bool = True, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a Slurm command beside a node, whose socket signs for it: no slurmctld need be there."""
        beside = next(name for name in list(self.daemons) if name not in {*_ADDRESSES, "slurmrestd"})
        return self.run_beside(beside, *command, check=check, stdin=stdin, timeout=timeout)

    def _log(self, name: str) -> Path:
        return self.folder / f"log-{name}" / "slurmctld.log"


class Submits:
    """Jobs submitted one after the other for as long as the block lasts, and a second before and after it."""

    def __init__(self, slurm: TwoSlurmctlds) -> None:
        self.accepted: list[int] = []
        self.refused: list[str] = []
        self.longest = 0.0
        self._slurm = slurm
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._submit)

    def __enter__(self) -> Self:
        """Begin, and wait for the first answer."""
        self._thread.start()
        self._slurm.wait_for(lambda: bool(self.accepted), "a job is accepted")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = len(self.accepted)
        try:
            if error is None:
                self._slurm.wait_for(lambda: len(self.accepted) > before, "a job is accepted again")
        finally:
            self._ended.set()
            self._thread.join()

    def _submit(self) -> None:
        while not self._ended.wait(0.1):
            began = time.monotonic()
            answer = self._slurm.run(
                "sbatch", "--parsable", "--hold", "-o", "/dev/null", check=False, stdin="#!/bin/sh\n"
            )
            self.longest = max(self.longest, time.monotonic() - began)
            if answer.returncode:
                self.refused.append(answer.stderr.strip())
            else:
                self.accepted.append(int(answer.stdout))

    def lost(self) -> set[int]:
        """Numbers that were given and that Slurm does not know."""
        known = self._slurm.run("squeue", "-h", "-o", "%i").stdout.split()
        return set(self.accepted) - {int(one) for one in known}
