"""The first process of a machine: keeps its servers running and ends them with itself.

Run as ``python -m hack.localkube.supervisor FOLDER`` by `hack.localkube.host.machine`. FOLDER holds ``machine.json``
(what the machine looks like) and receives ``control.sock`` and a log per service. In a full cluster it is pid 1 of its
own namespaces: the kernel kills everything in them when it ends, however it ends. In a control plane without root it is
an ordinary process, and its children die with it by their parent-death signal.

What it leaves to others: the wiring of the network (done from outside, between the start of the machine and the start
of its services) and what the services are.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.machine import neutral_start

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x20000000,
    0x40000000,
)
PR_SET_PDEATHSIG = 1
RESTART_AFTER_SECONDS = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Service:
    """One server of the machine and what became of it."""

    name: str
    argv: list[str]
    env: dict[str, str]
    log: str
    wanted: bool = True
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    start_at: float = 0.0


@dataclass
class Supervisor:
    """Starts, restarts and stops the services of one machine on request."""

    folder: Path
    services: dict[str, Service] = field(default_factory=dict)
    ending: bool = False

    def run(self) -> None:
        """Serve requests on ``control.sock`` until SIGTERM."""
        selector = selectors.DefaultSelector()
        wake_read, wake_write = socket.socketpair()
        for end in (wake_read, wake_write):
            end.setblocking(False)  # noqa: FBT003 the standard library's signature
        signal.set_wakeup_fd(wake_write.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        server = listen(self.folder / "control.sock")
        selector.register(server, selectors.EVENT_READ, "request")
        selector.register(wake_read, selectors.EVENT_READ, "signal")
        while not self.ending:
            for key, _ in selector.select(timeout=RESTART_AFTER_SECONDS / 2):
                if key.data == "request":
                    self._serve(server)
                else:
                    with contextlib.suppress(
                        BlockingIOError
                    ):  # the byte only wakes us; a second signal may have taken it
                        wake_read.recv(4096)
            self._reap()
            self._start_due()
        self._stop_all()

    def _end(self, *_: object) -> None:
        self.ending = True

    def _serve(self, server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rw") as stream:
            request = json.loads(stream.readline())
            answer = self._answer(request)
            stream.write(json.dumps(answer) + "\n")

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "start":
                service = Service(**request["service"])
                self.services[service.name] = service
                self._start_due()
            case "stop" | "resume" as verb:
                service = self.services[request["name"]]
                service.wanted = verb == "resume"
                if service.process is not None and not service.wanted:
                    service.process.send_signal(request.get("signal", signal.SIGTERM))
            case "signal":
                process = self.services[request["name"]].process
                if process is not None:
                    process.send_signal(request["signal"])
            case _:  # "status": the report below is all
                pass
        return {"services": {name: self._report(service) for name, service in self.services.items()}}

    @staticmethod
    def _report(service: Service) -> dict[str, Any]:
        running = service.process is not None and service.process.returncode is None
        return {"running": running, "restarts": service.restarts, "log": service.log, "wanted": service.wanted}

    def _start_due(self) -> None:
        for service in self.services.values():
            if service.process is None and service.wanted and time.monotonic() >= service.start_at and not self.ending:
                with Path(service.log).open("ab") as log:
                    service.process = subprocess.Popen(
                        service.argv,
                        env={**os.environ, **service.env},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=_die_with_parent,  # noqa: PLW1509 this program has one thread
                    )

    def _reap(self) -> None:
        # As pid 1 we inherit every orphan (containerd's shims): waiting for "any child" collects those too.
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for service in self.services.values():
                if service.process is not None and service.process.pid == pid:
                    service.process.returncode = os.waitstatus_to_exitcode(status)
                    service.process = None
                    service.restarts += service.wanted
                    service.start_at = time.monotonic() + RESTART_AFTER_SECONDS

    def _stop_all(self) -> None:
        # Killed, not asked: nothing of a local cluster outlives it, and an API server takes 5 s to say goodbye.
        running = [s.process for s in self.services.values() if s.process is not None]
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def listen(path: Path) -> socket.socket:
    """Return a socket that takes connections from the moment its name is there, which is what `Machine` waits for."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(fresh))
    fresh.chmod(0o600)
    server.listen()
    fresh.replace(path)
    return server


def enter_namespaces(look: Mapping[str, Any]) -> None:
    """Give this process a host of its own: namespaces, a private /run, and its folders bound where programs look.

    Parameters
    ----------
    look
        ``hostname``; ``binds``: pairs of source and target; ``tmpfs``: folders that start empty.
    """
    _check(_libc.mount(None, b"/", None, 0x4000 | 0x40000, None), "make mounts private")  # MS_REC | MS_PRIVATE
    _check(_libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount /proc")
    for target in look["tmpfs"]:
        _check(_libc.mount(b"tmpfs", target.encode(), b"tmpfs", 0, b"mode=755"), f"mount a tmpfs on {target}")
    for source, target in look["binds"]:
        Path(target).mkdir(parents=True, exist_ok=True)
        _check(_libc.mount(source.encode(), target.encode(), None, 0x1000 | 0x4000, None), f"bind {target}")
    _check(_libc.mount(None, b"/", None, 0x4000 | 0x100000, None), "share mounts")  # MS_REC | MS_SHARED, among our own
    socket.sethostname(look["hostname"])


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Become the machine that FOLDER/machine.json describes."""
    neutral_start.begin()
    folder = Path(sys.argv[1])
    look = json.loads((folder / "machine.json").read_text())
    # Detached: the caller of `up` may exit, or keep running without ever waiting for this process.
    if os.fork():
        os._exit(0)
    os.setsid()
    if look["isolated"]:
        # Outlives the machine's first process to collect it; `end_all` signals both.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
        _check(_libc.unshare(flags), "make namespaces")
        child = os.fork()
        if child:
            # The pid as the host sees it, which the child cannot know.
            (folder / "pid.new").write_text(str(child))
            (folder / "pid.new").replace(folder / "pid")
            _, status = os.waitpid(child, 0)
            sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
        enter_namespaces(look)
    else:
        (folder / "pid").write_text(str(os.getpid()))
    Supervisor(folder).run()


if __name__ == "__main__":
    main()
