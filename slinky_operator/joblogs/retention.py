"""Deletes output that nobody has written to for some time, so that the folder of a long-lived node does not fill up.

A file that any process has open stays, however old: a job may be silent for days. The kernel knows that only of its own
machine, so nothing is deleted on a file system that several machines may share. Only files directly in the folder are
looked at; folders that users make in it are theirs.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import signal
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o1733
"""Everybody may create files and reach those whose name he knows; nobody may list them, or replace those of others."""

EVERY: Final = 60.0
"""Seconds between two looks."""

WHOLE_LOOK_SECONDS: Final = 50
"""After which a look is given up; the next one goes on."""

AGAIN_SECONDS: Final = 86400.0
"""After which what is wrong with a folder is said again."""

_SAID: Final = struct.Struct("d")
"""When something was said last; 0 before."""

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


def prepare(folder: str, log: Callable[[str], None]) -> None:
    """Set the mode of the folder, which belongs to root, unless it has it; a file server may not let root do so."""
    mode = stat.S_IMODE(Path(folder).stat().st_mode)
    if mode == FOLDER_MODE:
        return
    try:
        Path(folder).chmod(FOLDER_MODE)
    except OSError as error:
        log(
            f"the mode of {folder} stays {mode:o}: {error.strerror}. Set it to {FOLDER_MODE:o} where its volume comes "
            "from, so that all users may create files there and none may list them or replace those of others"
        )


class Remark(IntEnum):
    """What there may be to say of a folder."""

    NO_LEASES = 0
    NOT_LISTED = 1
    NOT_DELETED = 2


Say = Callable[[Remark, str], None]


class Retention:
    """Looks at folders, each time in a process of its own, of which none says what another one has said.

    Parameters
    ----------
    folders
        Those that the server looks after.
    keep_seconds
        For which a file stays after it was last written to.
    log
        Takes lines.
    """

    def __init__(self, folders: Sequence[str], keep_seconds: float, log: Callable[[str], None]) -> None:
        self._folders = tuple(folders)
        self._keep_seconds = keep_seconds
        self._log = log
        # Shared with the processes that are forked later.
        self._said = mmap.mmap(-1, (1 + len(self._folders) * len(Remark)) * _SAID.size)

    def look(self) -> None:
        """Delete what is old; the calling process is root, and ends afterwards."""
        for number, folder in enumerate(self._folders):
            delete_old(folder, self._keep_seconds, partial(self._seldom, number * len(Remark)))

    def _seldom(self, first: int, remark: Remark, line: str) -> None:
        place = (first + remark) * _SAID.size
        (before,) = _SAID.unpack_from(self._said, place)
        now = time.monotonic()
        if not before or now - before >= AGAIN_SECONDS:
            _SAID.pack_into(self._said, place, now)
            self._log(line)


def delete_old(folder: str, keep_seconds: float, say: Say) -> int:
    """Delete old files, each as its owner, and return how many; the calling process is root, and ends afterwards."""
    signal.alarm(WHOLE_LOOK_SECONDS)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    before = time.time() - keep_seconds
    try:
        owners = _old_files(folder, before)
    except PermissionError as error:
        say(Remark.NOT_LISTED, f"old files in {folder} are not deleted, since root may not list it: {error.strerror}")
        return 0
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.setgroups([])
    deleted = 0
    for uid, names in owners.items():
        os.seteuid(uid)
        for name in names:
            try:
                deleted += _delete(place, name, before)
            except _NoLeasesError as error:
                say(Remark.NO_LEASES, f"files in {folder} stay, since it does not tell which ones are open: {error}")
            except OSError as error:
                say(Remark.NOT_DELETED, f"{folder}/{name} of uid {uid} is not deleted: {error.strerror}")
        os.seteuid(0)
    return deleted


def _old_files(folder: str, before: float) -> dict[int, list[str]]:
    """Names of files by their owners, but for those of root."""
    owners: dict[int, list[str]] = defaultdict(list)
    with os.scandir(folder) as found:
        for entry in found:
            try:
                about = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # Its job has deleted it meanwhile.
                continue
            if stat.S_ISREG(about.st_mode) and about.st_mtime < before and about.st_uid:
                owners[about.st_uid].append(entry.name)
    return owners


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


class _NoLeasesError(Exception):
    """The file system does not say which files are open."""


def _is_open(opened: int) -> bool:
    """Whether anybody else on this machine may have the file open: then the kernel gives no lease for writing."""
    try:
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return True
        raise _NoLeasesError(error.strerror) from None
    return False
