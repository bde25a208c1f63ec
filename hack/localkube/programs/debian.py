"""Install the Debian packages that a Node needs, where their programs are missing.

A program that is already on the PATH is used as it is: a machine with Docker keeps its own containerd.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from hack.localkube.errors import MissingProgram
from hack.machine import apt
from hack.machine.progress import say, step

NODE_PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
"""Program, or the full path of a file, and the Debian package that brings it."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def which(program: str) -> str | None:
    """Return the full path of a program, looked for in the system folders too (sudo may hide them)."""
    if program.startswith("/"):
        return program if Path(program).exists() else None
    return shutil.which(program) or shutil.which(program, path=SYSTEM_PATH)


def ensure(packages: Mapping[str, str] = NODE_PACKAGES) -> None:
    """Install the packages whose program is missing.

    Raises
    ------
    MissingProgram
        A program is missing and there is no apt-get, or the installation failed.
    """
    missing = {program: package for program, package in packages.items() if which(program) is None}
    if not missing:
        return
    wanted = sorted(set(missing.values()))
    with step(f"install Debian packages: {' '.join(wanted)}"):
        try:
            apt.install(wanted, say)
        except apt.AptFailed as error:
            raise MissingProgram(next(iter(missing)), f"install {', '.join(wanted)}; {error}") from error
