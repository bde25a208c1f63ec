"""Install Debian packages on this machine, without starting what they bring."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hack.machine.downloads import persist

OPTIONS: Final = ("-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3")

DPKG: Final = Path("/var/lib/dpkg")
POLICY: Final = Path("/usr/sbin/policy-rc.d")

_REFUSAL: Final = (
    "#!/bin/sh\n"
    "# By slurm-operator's hack/machine/apt.py while it installs packages; left by one that was killed.\n"
    "exit 101\n"
)
"""What dpkg asks before it starts a service, and the answer no."""


class AptFailed(Exception):
    """Packages could not be installed; the text has apt's words."""


def install(packages: Sequence[str], progress: Callable[[str], None]) -> None:
    """Install packages, from package lists that are fetched first.

    Raises
    ------
    AptFailed
        There is no apt-get, or it failed.
    """
    apt = shutil.which("apt-get")
    if apt is None:
        raise AptFailed("this machine has no apt-get; install it by hand")
    command = [apt, *OPTIONS, "install", "--yes", "--no-install-recommends", *packages]

    def attempt() -> tuple[int, str]:
        # Where an installation was killed, apt installs nothing until what it had begun is finished.
        begun = _run(["dpkg", "--configure", "--pending"])
        # A source that has nothing to do with these packages may fail: what counts is whether they are there.
        lists = _run([apt, *OPTIONS, "update"])
        archives = _run(command)
        return archives.returncode, begun.stdout + lists.stdout + archives.stdout

    with no_services(POLICY, DPKG):
        status, output = persist("Debian packages", attempt, progress)
    if status != 0:
        raise AptFailed(f"`{' '.join(command)}` failed:\n{output[-2000:]}")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@contextmanager
def no_services(policy: Path, dpkg: Path) -> Iterator[None]:
    """Keep dpkg from starting containerd, say, as a service of the machine, which nobody asked for."""
    # One at a time: who is done first would take the file from under the other.
    folder = os.open(dpkg, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if policy.exists() and policy.read_text() != _REFUSAL:
            yield  # the machine has rules of its own
            return
        fresh = policy.with_name(f".{policy.name}.fresh")
        fresh.write_text(_REFUSAL)
        fresh.chmod(0o755)
        fresh.replace(policy)
        try:
            yield
        finally:
            policy.unlink()
    finally:
        os.close(folder)
