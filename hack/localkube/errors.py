"""What can go wrong with the local Kubernetes, in words for the person at the terminal.

LocalKubeError
├── NotRoot            a full cluster needs root; the control plane alone does not
├── Unsupported        this kernel or cgroup layout cannot run a Node
├── MissingProgram     a program is absent and cannot be installed from Debian packages
├── BuildFailed        a program could not be built from its Go module
├── NoSpace            the disk has too little room
├── PortTaken          another process uses the port of a server
├── ServiceFailed      a server ended, or did not become ready in time
└── NotRunning         the command needs a cluster that is up
"""

from __future__ import annotations

from pathlib import Path


class LocalKubeError(Exception):
    """Base of all errors of this package; its text is shown to the user as it is."""


class NotRoot(LocalKubeError):
    """The command needs root."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs root (namespaces, mounts and cgroups): run it with sudo")
        self.what = what


class Unsupported(LocalKubeError):
    """The kernel lacks something that a Node needs."""


class MissingProgram(LocalKubeError):
    """A program is neither there nor to be had from Debian packages."""

    def __init__(self, program: str, hint: str) -> None:
        super().__init__(f"{program} is missing: {hint}")
        self.program = program


class BuildFailed(LocalKubeError):
    """`go` could not build a program."""

    def __init__(self, program: str, output: str) -> None:
        super().__init__(f"building {program} failed:\n{output.strip()}")
        self.program = program


class NoSpace(LocalKubeError):
    """The file system that holds a folder is too full."""

    def __init__(self, folder: Path, free_mib: int, needed_mib: int) -> None:
        super().__init__(f"{folder} has {free_mib} MiB free, {needed_mib} MiB are needed")
        self.folder = folder


class ServiceFailed(LocalKubeError):
    """A server ended or never became ready."""

    def __init__(self, service: str, reason: str, log: Path | None) -> None:
        tail = f"\nlast lines of {log}:\n{last_lines(log)}" if log is not None else ""
        super().__init__(f"{service}: {reason}{tail}")
        self.service = service
        self.log = log


class NotRunning(LocalKubeError):
    """There is no such cluster."""

    def __init__(self, cluster: str) -> None:
        super().__init__(f"the cluster {cluster!r} is not up: start it with `make up`")
        self.cluster = cluster


def last_lines(log: Path, lines: int = 15) -> str:
    """Return the end of a log file, or a sentence that there is none."""
    if not log.exists():
        return "(no log was written)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
