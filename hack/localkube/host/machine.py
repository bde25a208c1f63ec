"""Start, find, talk to and end machines.

A machine is found by its command line, not by a remembered pid: a pid file can outlive its process and name a
stranger's, while ``-m hack.localkube.supervisor <folder>`` in /proc is proof, also after a crash of ours.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.localkube.errors import LocalKubeError, ServiceFailed
from hack.localkube.paths import PROJECT

SOCKET_PATH_LIMIT = 100
MODULE = "hack.localkube.supervisor"


@dataclass(frozen=True, slots=True)
class Look:
    """What a machine looks like from inside.

    Attributes
    ----------
    hostname
        Its name, and that of its Node.
    isolated
        Whether it has namespaces of its own (needs root).
    binds
        Pairs of a folder outside and where it appears inside.
    tmpfs
        Folders that are empty inside.
    """

    hostname: str
    isolated: bool
    binds: Sequence[tuple[str, str]] = ()
    tmpfs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A server to run in a machine: its command line and where its output goes."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path


class Machine:
    """A handle on one machine, found by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """The machine's name, which is that of its folder."""
        return self.folder.name

    def start(self, look: Look, timeout: float = 120.0) -> None:
        """Start the machine and wait until it takes requests.

        Raises
        ------
        ServiceFailed
            Its first process ended, or did not answer in time; the error quotes its log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        control = self.folder / "control.sock"
        if len(str(control)) > SOCKET_PATH_LIMIT:
            raise LocalKubeError(f"{control} is too long for a socket: set XDG_STATE_HOME to a shorter path")
        for stale in (control, self.folder / "pid"):
            stale.unlink(missing_ok=True)
        description = {
            "hostname": look.hostname,
            "isolated": look.isolated,
            "binds": list(look.binds),
            "tmpfs": list(look.tmpfs),
        }
        (self.folder / "machine.json").write_text(json.dumps(description))
        log = self.folder / "supervisor.log"
        with log.open("ab") as output:
            subprocess.run(
                [sys.executable, "-m", MODULE, str(self.folder)],
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        deadline = time.monotonic() + timeout
        while not (control.exists() and (self.folder / "pid").exists()):
            if self.folder not in find(self.folder):
                raise ServiceFailed(f"machine {self.name}", "ended at once", log)
            if time.monotonic() > deadline:
                raise ServiceFailed(f"machine {self.name}", f"did not start in {timeout:.0f} s", log)
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        """The first process of the machine, as the host sees it; its namespaces are the machine's."""
        return int((self.folder / "pid").read_text())

    def run(self, service: ServiceSpec) -> None:
        """Start a service; it is started again when it ends."""
        self._ask(
            {
                "do": "start",
                "service": {
                    "name": service.name,
                    "argv": list(service.argv),
                    "env": dict(service.env),
                    "log": str(service.log),
                },
            }
        )

    def stop(self, service: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop a service and keep it stopped until `resume`."""
        self._ask({"do": "stop", "name": service, "signal": int(number)})

    def resume(self, service: str) -> None:
        """Let a stopped service run again."""
        self._ask({"do": "resume", "name": service})

    def send(self, service: str, number: signal.Signals) -> None:
        """Send a signal to a service."""
        self._ask({"do": "signal", "name": service, "signal": int(number)})

    def services(self) -> dict[str, dict[str, Any]]:
        """Return for each service whether it runs, how often it was restarted, and where its log is."""
        services: dict[str, dict[str, Any]] = self._ask({"do": "status"})["services"]
        return services

    def inside(self, *argv: str) -> list[str]:
        """Return the command line that runs `argv` inside the machine."""
        return ["nsenter", "--target", str(self.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", *argv]

    def in_network(self, *argv: str) -> list[str]:
        """Return the command line that runs `argv` with the machine's network and the host's files."""
        return ["nsenter", "--target", str(self.pid), "--net", "--", *argv]

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(120)
            connection.connect(str(self.folder / "control.sock"))
            with connection.makefile("rw") as stream:
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                answer: dict[str, Any] = json.loads(stream.readline())
                return answer


def find(below: Path) -> dict[Path, list[int]]:
    """Return the processes that are supervisors of machines below a folder, by the machine's folder."""
    found: dict[Path, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked, so it is no machine
        if MODULE.encode() in argv:
            folder = Path(os.fsdecode(argv[argv.index(MODULE.encode()) + 1]))
            if folder.is_relative_to(below):
                found.setdefault(folder, []).append(int(entry.name))
    return found


def end_all(below: Path, timeout: float = 60.0) -> None:
    """End every machine below a folder and wait until none is left.

    The supervisors get SIGTERM, so that they kill and collect their services, then SIGKILL; the kernel kills what is
    left in their pid namespaces.

    Raises
    ------
    LocalKubeError
        A machine is still there at the end.
    """
    start = time.monotonic()
    number = signal.SIGTERM
    while machines := find(below):
        elapsed = time.monotonic() - start
        if elapsed > timeout:
            raise LocalKubeError(f"these machines do not end: {', '.join(str(m) for m in machines)}")
        if elapsed > timeout / 3:
            number = signal.SIGKILL
        for pids in machines.values():
            for pid in pids:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue  # it ended on its own, which is what we want
        time.sleep(0.1)
