"""Deletes output that nobody has written to for some time, so that the folder of a long-lived node does not fill up.

A file that any process has open stays, however old: a job may be silent for days. The kernel knows that only of its own
machine, so nothing is deleted on a file system that several machines may share. Only files directly in the folder are
looked at; folders that users make in it are theirs.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o1733
"""Everybody may create files and reach those whose name he knows; nobody may list them, or replace those of others."""

EVERY: Final = 60.0
"""Seconds between two looks."""

WHOLE_LOOK_SECONDS: Final = 50
"""After which a look is given up; the next one goes on."""


LOCAL: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlay"},
)
"""File systems that no two machines have mounted at once."""

_MOUNT_POINT: Final = 4
"""Which field of a line it is."""

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def file_system(folder: str, mounts: str | None = None) -> str:
    """Type of the file system of a folder, as the kernel calls it; empty if that is not known.

    Parameters
    ----------
    folder
        Its path, without symbolic links.
    mounts
        Content of `/proc/self/mountinfo`; read there by default.
    """
    found, longest = "", -1
    for line in (_MOUNTS.read_text(errors="surrogateescape") if mounts is None else mounts).splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) <= _MOUNT_POINT or not kinds:
            continue
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[_MOUNT_POINT]).rstrip("/")
        # What was mounted later on the same place hides what was there.
        if f"{folder}/".startswith(f"{point}/") and len(point) >= longest:
            found, longest = kinds[0], len(point)
    return found


def prepare(folder: str) -> None:
    """Set the mode of the folder, which belongs to root."""
    Path(folder).chmod(FOLDER_MODE)


def delete_old(folder: str, keep_seconds: float) -> int:
    """Delete old files, each as its owner, and return how many; the calling process is root, and ends afterwards."""
    signal.alarm(WHOLE_LOOK_SECONDS)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    before = time.time() - keep_seconds
    owners: dict[int, list[str]] = defaultdict(list)
    with os.scandir(folder) as found:
        for entry in found:
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_mtime < before and about.st_uid:
                owners[about.st_uid].append(entry.name)
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.setgroups([])
    return sum(_delete_as(uid, place, names, before) for uid, names in owners.items())


def _delete_as(uid: int, place: int, names: Iterable[str], before: float) -> int:
    os.seteuid(uid)
    try:
        return sum(_delete(place, name, before) for name in names)
    finally:
        os.seteuid(0)


def _delete(place: int, name: str, before: float) -> bool:
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        # Gone, replaced, or not readable to its owner: not what was found.
        return False
    try:
        if os.fstat(opened).st_mtime >= before or _is_open(opened):
            return False
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        return False
    finally:
        os.close(opened)
    return True


def _is_open(opened: int) -> bool:
    """Whether anybody else on this machine may have the file open: then the kernel gives no lease for writing."""
    try:
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        # Somebody has, or the file system has no leases.
        return True
    return False
