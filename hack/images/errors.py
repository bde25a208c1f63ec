"""What can go wrong while images are built, each with the thing it is about.

::

    ImagesError
    ├── UnknownImageSet      a name that is not in the list
    ├── NotRoot              building needs chroot and mount
    ├── HostToolMissing      a program is missing and could not be installed
    ├── NoDiskSpace          the cache's file system is nearly full
    └── StepFailed           a program ended with an error; its last lines are in the message
        ├── NetworkFailed    ... because something could not be downloaded
        └── KeyringTooOld    ... because the host's keyring does not know the keys of that Debian suite
"""

from __future__ import annotations

from pathlib import Path

from hack.machine.downloads import complaint


class ImagesError(Exception):
    """Anything this package reports."""


class UnknownImageSet(ImagesError):
    """Somebody asked for an image set, or a Slurm version, that is not built here."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"there is no {name!r} here; known are: {', '.join(known)}")
        self.name = name
        self.known = known


class NotRoot(ImagesError):
    """Building needs root, for chroot and mounts. Using what is in the cache does not."""

    def __init__(self, what: str) -> None:
        super().__init__(f"building {what} needs root (chroot, mounts, files of other users)")
        self.what = what


class HostToolMissing(ImagesError):
    """A program is missing on this machine and could not be installed from its package."""

    def __init__(self, tool: str, package: str, why: str) -> None:
        super().__init__(f"{tool} is missing and its package {package} could not be installed: {why}")
        self.tool = tool
        self.package = package


class NoDiskSpace(ImagesError):
    """Too little room for a build."""

    def __init__(self, path: Path, free_bytes: int, needed_bytes: int) -> None:
        super().__init__(
            f"{path} has {free_bytes / 1e9:.1f} GB free, a build needs {needed_bytes / 1e9:.1f} GB; "
            f"make room, or point XDG_CACHE_HOME to a larger disk"
        )
        self.path = path
        self.free_bytes = free_bytes
        self.needed_bytes = needed_bytes


class StepFailed(ImagesError):
    """A program of the build ended with an error."""

    reason = "failed"

    def __init__(self, step: str, status: int, tail: str, log: Path) -> None:
        super().__init__(f"{step}: {self.reason} (exit status {status}; all output in {log}):\n{tail}")
        self.step = step
        self.status = status
        self.tail = tail
        self.log = log


class NetworkFailed(StepFailed):
    """Something could not be downloaded."""

    reason = "a download failed, is the network there"


class KeyringTooOld(StepFailed):
    """The host's debian-archive-keyring does not know the keys the suite is signed with."""

    reason = "the suite is signed with keys that this machine's debian-archive-keyring does not have, upgrade it"


_KEY_WORDS = ("signed by unknown key", "no_pubkey", "missing key")


def classify(step: str, status: int, output: str, log: Path) -> StepFailed:
    """Pick the error class that fits what a program printed.

    Parameters
    ----------
    step
        What was being done, for the message.
    status
        The program's exit status.
    output
        What it printed, or the last part of it.
    log
        Where all of it is.
    """
    lowered = output.lower()
    tail = "\n".join(f"    {line}" for line in output.strip().splitlines()[-12:])
    if any(words in lowered for words in _KEY_WORDS):
        return KeyringTooOld(step, status, tail, log)
    if complaint(output) is not None:
        return NetworkFailed(step, status, tail, log)
    return StepFailed(step, status, tail, log)
