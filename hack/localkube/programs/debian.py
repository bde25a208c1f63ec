"""Install the Debian packages that a Node needs, where their programs are missing.

A program that is on the PATH is used as it is, whoever installed it: a machine with Docker keeps its own containerd.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.localkube.errors import MissingProgram
from hack.progress import step

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
    apt = shutil.which("apt-get")
    wanted = sorted(set(missing.values()))
    if apt is None:
        raise MissingProgram(next(iter(missing)), f"install {', '.join(wanted)} (this machine has no apt-get)")
    # Without this file dpkg would start containerd as a service of the machine, which nobody asked for.
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    try:
        with step(f"install Debian packages: {' '.join(wanted)}"):
            for command in ([apt, "update"], [apt, "install", "-y", "--no-install-recommends", *wanted]):
                run = subprocess.run(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
                )
                if run.returncode != 0:
                    raise MissingProgram(next(iter(missing)), f"`{' '.join(command)}` failed:\n{run.stdout[-2000:]}")
    finally:
        if ours:
            policy.unlink()
