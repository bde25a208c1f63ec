"""
Daemons run from a root tree of packages, without Kubernetes, each in its own mount and PID namespace.

Killing PID 1 of a daemon's namespace ends everything that it started, so that nothing of it outlives the test. The
network is the machine's own. Which daemons, with which configuration, is left to :mod:`tests.support.slurm_host` and
:mod:`tests.support.mariadb_host`. All waiting is for conditions.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slinky_operator.slurm.pod_templates.security import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ENTER = """
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
mount --rbind /dev "$ROOT/dev"
printf '%s' "$BINDS" | while read -r place folder; do
    mkdir -p "$ROOT$place"
    mount --bind "$folder" "$ROOT$place"
done
[ -n "$AS_IN_PODS" ] || exec chroot --userspec="$USERSPEC" "$ROOT" "$@"
mount --rbind /sys "$ROOT/sys"
mount -t cgroup2 cgroup2 "$ROOT/sys/fs/cgroup"
mount --bind "$ROOT/proc/sys" "$ROOT/proc/sys"
mount -o remount,bind,ro "$ROOT/proc/sys"
cd "$ROOT"
mkdir run/machine
pivot_root . run/machine
umount -l /run/machine
rmdir /run/machine
exec setpriv --reuid "${USERSPEC%:*}" --regid "${USERSPEC#*:}" --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set="$AS_IN_PODS" "$@"
"""
# A process in a chroot can create no user namespace, and one in a pod cannot mount /proc in it: parts are hidden there.

_BOUNDING = ",".join(("-all", *(f"+{name.lower()}" for name in CAPABILITIES)))


class DaemonError(RuntimeError):
    """A daemon did not start, or a condition was not met in time; carries the end of the daemons' logs."""


@dataclass
class Daemon:
    """A daemon that was started: its name, the process above its namespaces, and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


class Daemons:
    """
    Daemons of one root tree that belong together.

    Parameters
    ----------
    root
        Root tree with the packages; never written to except for mount points.
    prefix
        First letters of the temporary folder.
    folder
        Folder for configuration, state and logs; a temporary one when absent, removed by :meth:`close`.

    Attributes
    ----------
    daemons
        Those that run, by name.
    binds
        Folders that the daemons see, by the absolute path at which they see them; ``/etc`` is a copy of the tree's own,
        with a hosts file in which this machine is on loopback.
    grace
        Seconds for a daemon to end by itself where it needs more than ten, by name.
    as_in_pods
        Whether daemons have a root of their own instead of a chroot, with the capabilities that slurmd has in pods.
    entrance
        Command in front of each daemon, such as one that enters another network.
    """

    def __init__(self, root: Path, prefix: str, folder: Path | None = None) -> None:
        self.root = root
        self._remove_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix=prefix))
        self.folder.chmod(0o755)
        self.daemons: dict[str, Daemon] = {}
        shutil.copytree(root / "etc", self.folder / "etc", symlinks=True, dirs_exist_ok=True)
        (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost {short_host_name()}\n")
        self.binds = {"/etc": self.folder / "etc"}
        self.grace: dict[str, float] = {}
        self.entrance: tuple[str, ...] = ()
        self.as_in_pods = False

    def spawn(
        self,
        name: str,
        command: list[str],
        *,
        userspec: str = "0:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a daemon as a user and group of the tree; what it writes is in the log of its name."""
        if name in self.daemons:
            raise DaemonError(f"{name} runs already")
        log = self.folder / f"{name}.log"
        # As a service manager starts them: a shell ignores some signals for what it runs in the background.
        signals = ["env", "--default-signal=INT,QUIT,PIPE"]
        apart = [*signals, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "enter"]
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*self.entrance, *apart, *command],
                env=self._environment(userspec=userspec) | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.daemons[name] = Daemon(name, process, log)
        self.wait_for(lambda: bool(_children(process.pid)), f"{name} is started")

    def stop(self, name: str, *, kill: bool = False) -> None:
        """End a daemon, by name, and all processes it started."""
        daemon = self.daemons.pop(name)
        first = _children(daemon.process.pid)
        if not kill:
            _signal(first, signal.SIGTERM)
            try:
                daemon.process.wait(self.grace.get(name, 10))
            except subprocess.TimeoutExpired:
                kill = True
        if kill:
            # The first process of the PID namespace: the kernel ends all others with it. Ending its parent would not
            # do, because a daemon that has changed its user no longer hears of its parent's death.
            _signal(first, signal.SIGKILL)
            if not first:
                daemon.process.kill()
            daemon.process.wait(30)

    def freeze(self, name: str) -> None:
        """Stop a daemon's first process without ending it, so that it accepts and never answers."""
        frozen = _children(self.daemons[name].process.pid)
        _signal(frozen, signal.SIGSTOP)
        self.wait_for(lambda: all(_is_stopped(one) for one in frozen), f"{name} is frozen")

    def thaw(self, name: str) -> None:
        """Let a frozen daemon go on."""
        _signal(_children(self.daemons[name].process.pid), signal.SIGCONT)

    def hang_up(self, name: str) -> None:
        """Send a daemon SIGHUP, by its id outside of its namespaces."""
        _signal(_children(self.daemons[name].process.pid), signal.SIGHUP)

    def close(self) -> None:
        """End everything that was started and remove the temporary folder."""
        for name in reversed(list(self.daemons)):
            self.stop(name, kill=True)
        if self._remove_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run_beside(
        self,
        name: str,
        *command: str,
        check: bool = True,
        stdin: str | None = None,
        timeout: float = 60,
        processes: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root in the tree as a daemon sees it; on request it sees its processes, too."""
        beside = _children(self.daemons[name].process.pid)
        if not beside:
            raise DaemonError(f"{name} has ended\n{self.logs()}")
        enter = ["nsenter", "--target", str(beside[0]), "--mount", "--root", *(["--pid"] if processes else []), "--"]
        result = subprocess.run(
            [*enter, "sh", "-c", 'cd / && exec "$@"', "sh", *command],
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and result.returncode:
            raise DaemonError(f"{' '.join(command)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def wait_for(self, condition: Callable[[], bool], what: str, timeout: float = 150) -> None:
        """Poll until ``condition()`` is true; :class:`DaemonError` with the logs after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise DaemonError(f"never happened: {what}\n{self.logs()}")
            for daemon in self.daemons.values():
                if daemon.process.poll() is not None:
                    raise DaemonError(f"{daemon.name} ended with {daemon.process.returncode}\n{self.logs()}")
            time.sleep(0.05)

    def logs(self, lines: int = 30) -> str:
        """Return the ends of all logs, those of ended daemons included."""
        ends = []
        for log in sorted(self.folder.glob("*.log")):
            tail = log.read_text(errors="replace").splitlines()[-lines:]
            ends.append("\n".join([f"--- {log.name}", *tail]))
        return "\n".join(ends)

    def _environment(self, *, userspec: str = "0:0") -> dict[str, str]:
        return {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "ROOT": str(self.root),
            "BINDS": "".join(f"{place} {folder}\n" for place, folder in self.binds.items()),
            "USERSPEC": userspec,
            "AS_IN_PODS": _BOUNDING if self.as_in_pods else "",
            "SLURM_CONF": "/etc/slurm/slurm.conf",
        }


def accepts(port: int) -> bool:
    """Whether something accepts connections on that port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def accepts_at(path: Path) -> bool:
    """Whether something accepts connections on that socket of this machine."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        return probe.connect_ex(str(path)) == 0


def short_host_name() -> str:
    """Return the name of this machine without its domain."""
    return socket.gethostname().split(".")[0]


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _is_stopped(pid: int) -> bool:
    """Whether all threads of a process have heard of its SIGSTOP."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        # A thread has ended meanwhile: none of a stopped process does.
        return False
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def _children(pid: int) -> list[int]:
    """Return the processes started by ``pid``: the daemon itself, below the program that made its namespaces."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
