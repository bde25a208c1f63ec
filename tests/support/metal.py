"""A machine outside Kubernetes, for slurmds: the packages of Slurm, and nothing but what the operator's texts tell.

What slurmctld must know of it (`spec.nodes`), and where slurmctld is, is left to the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemons import Daemons, short_host_name
from tests.support.slurm_host import SLURM_UID


class Metal(Daemons):
    """A machine.

    Parameters
    ----------
    root
        Root tree with the packages.
    hosts
        Lines of `/etc/hosts` beside those about itself.
    process
        One in whose network it is, under a name of its own; this machine's network if absent.
    host_name
        That name.
    """

    def __init__(self, root: Path, hosts: str, *, process: int = 0, host_name: str = "") -> None:
        super().__init__(root, "metal-")
        self.host_name = host_name
        if process:
            self.entrance = ("nsenter", "--target", str(process), "--net", "--uts", "--")
        self.configuration = self.folder / "etc" / "slurm"
        shutil.rmtree(self.configuration, ignore_errors=True)
        self.configuration.mkdir()
        self.spool = self.folder / "spool"
        self.spool.mkdir()
        self.spool.chmod(0o777)
        self.binds["/var/spool"] = self.spool
        self.know(hosts)

    def know(self, hosts: str) -> None:
        """Replace those lines of `/etc/hosts`."""
        name = self.host_name or short_host_name()
        (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost {name}\n{hosts}")

    def store_key(self, name: str, key: bytes) -> None:
        """Put a key where slurmd finds it."""
        path = self.configuration / name
        path.unlink(missing_ok=True)
        path.write_bytes(key)
        os.chown(path, SLURM_UID, SLURM_UID)
        path.chmod(0o400)

    def start_here(self, command: str) -> None:
        """Start slurmd by a command line, on a machine with a name of its own."""
        self.spawn("slurmd", ["env", "-u", "SLURM_CONF", "sh", "-c", command])

    def start(self, node: str, command: str) -> None:
        """Start slurmd by a command line that asks for the machine's name, which is that of a node here."""
        self.spawn("slurmd", ["env", "-u", "SLURM_CONF", "sh", "-c", f"hostname() {{ echo {node}; }}; {command}"])

    def said(self) -> str:
        """What slurmd has said so far."""
        return (self.folder / "slurmd.log").read_text(errors="replace")


@contextmanager
def network(name: str) -> Iterator[int]:
    """Give the number of a process with a network and a host name of its own."""
    script = 'hostname "$0" && echo ready && exec sleep infinity'
    command = ["unshare", "--net", "--uts", "--kill-child", "--fork", "sh", "-c", script, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
            yield int(children[0])
        finally:
            # It ignores SIGTERM; its child ends with it.
            holder.kill()
            holder.wait()
