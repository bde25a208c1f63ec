"""Deletes output that nobody has written to for some time, so that the folder of a long-lived node does not fill up.

A file that any process has open stays, however old: a job may be silent for days. The kernel knows that only of its own
machine, so nothing is deleted on a file system that several machines may share. Only files directly in the folder are
looked at; folders that users make in it are theirs. A folder is read and emptied slice by slice, so that its size costs
time and no memory; a look that does not get through is continued by the next one from where it was.
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

from slinky_operator.pod_programs.joblogs import folders

FOLDER_MODE: Final = 0o1733
"""Everybody may create files and reach those whose name he knows; nobody may list them, or replace those of others."""

EVERY: Final = 60.0
"""Seconds between two looks."""

LOOK_SECONDS: Final = 40.0
"""After which a look ends; the next one goes on from there."""

GIVEN_UP_SECONDS: Final = 50
"""After which a look at a file system that does not answer is given up."""

AGAIN_SECONDS: Final = 86400.0
"""After which what is wrong with a folder is said again."""

_SAID: Final = struct.Struct("d")
"""When something was said last; 0 before."""

_PLACE: Final = struct.Struct("q")
"""Offset in a folder from which the next look goes on; 0 at its beginning."""

LOCAL: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlay"},
)
"""File systems that no two machines have mounted at once."""

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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
        self._places = mmap.mmap(-1, (1 + len(self._folders)) * _PLACE.size)

    def look(self) -> None:
        """Delete what is old; the calling process is root, and ends afterwards."""
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        os.setgroups([])
        for number, folder in enumerate(self._folders):
            signal.alarm(GIVEN_UP_SECONDS)
            before = time.time() - self._keep_seconds
            look = _Look(folder, before, partial(self._seldom, number * len(Remark)))
            look.go(partial(self._noted, number * _PLACE.size), *_PLACE.unpack_from(self._places, number * _PLACE.size))

    def _noted(self, at: int, place: int) -> None:
        _PLACE.pack_into(self._places, at, place)

    def _seldom(self, first: int, remark: Remark, line: str) -> None:
        place = (first + remark) * _SAID.size
        (before,) = _SAID.unpack_from(self._said, place)
        now = time.monotonic()
        if not before or now - before >= AGAIN_SECONDS:
            _SAID.pack_into(self._said, place, now)
            self._log(line)


class _Look:
    """Deletes old files of one folder, each as its owner; the process is root.

    Parameters
    ----------
    folder
        Its path.
    before
        Files that were last written to before this time, in seconds since the epoch, are old.
    say
        Takes what there is to say.
    """

    def __init__(self, folder: str, before: float, say: Say) -> None:
        self._folder = folder
        self._before = before
        self._say = say

    def go(self, note: Callable[[int], None], begin: int) -> None:
        """Look, for `LOOK_SECONDS` at most.

        Parameters
        ----------
        note
            Takes the offset from which another look is to go on, also if this process is killed.
        begin
            The same of the look before.
        """
        try:
            self._look(note, begin, time.monotonic() + LOOK_SECONDS)
        except PermissionError as error:
            words = f"old files in {self._folder} are not deleted, since root may not list it: {error.strerror}"
            self._say(Remark.NOT_LISTED, words)

    def _look(self, note: Callable[[int], None], begin: int, until: float) -> None:
        opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            begun = noted = reached = _sought(opened, begin)
            for names in folders.slices(opened):
                self._delete_of(opened, names)
                # What is read in one call is taken apart meanwhile: all that was read before it is done.
                following = os.lseek(opened, 0, os.SEEK_CUR)
                if following != reached:
                    note(reached)
                    noted, reached = reached, following
                if time.monotonic() >= until and noted != begun:
                    return
            note(0)
        finally:
            os.close(opened)

    def _delete_of(self, opened: int, names: Sequence[str]) -> None:
        """Delete those of some files that are old."""
        for uid, own in _old_files(opened, names, self._before).items():
            os.seteuid(uid)
            for name in own:
                try:
                    _delete(opened, name, self._before)
                except _NoLeasesError as error:
                    words = f"files in {self._folder} stay, since it does not tell which ones are open: {error}"
                    self._say(Remark.NO_LEASES, words)
                except OSError as error:
                    words = f"{self._folder}/{name} of uid {uid} is not deleted: {error.strerror}"
                    self._say(Remark.NOT_DELETED, words)
            os.seteuid(0)


def _sought(opened: int, begin: int) -> int:
    """Go to an offset of a folder, or to its beginning if there is none any more."""
    try:
        return os.lseek(opened, begin, os.SEEK_SET)
    except OSError:
        return os.lseek(opened, 0, os.SEEK_SET)


def _old_files(opened: int, names: Sequence[str], before: float) -> dict[int, list[str]]:
    """Names of old files by their owners, but for those of root."""
    owners: dict[int, list[str]] = defaultdict(list)
    for name in names:
        try:
            about = os.stat(name, dir_fd=opened, follow_symlinks=False)
        except FileNotFoundError:
            # Its job has deleted it meanwhile.
            continue
        if stat.S_ISREG(about.st_mode) and about.st_mtime < before and about.st_uid:
            owners[about.st_uid].append(name)
    return owners


def _delete(place: int, name: str, before: float) -> None:
    """Delete a file, unless it was written to, or somebody has it open; the process has become its owner."""
    try:
        opened = _opened(place, name)
    except OSError:
        # Gone, or replaced by what is no file of its owner's: not what was found.
        return
    try:
        if os.fstat(opened).st_mtime < before and not _is_open(opened):
            os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        return
    finally:
        os.close(opened)


def _opened(place: int, name: str) -> int:
    try:
        return os.open(name, _FILE, dir_fd=place)
    except PermissionError:
        # Its owner has taken away his own right to read it, and can give it back.
        passed = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        if not stat.S_ISREG(os.fstat(passed).st_mode):
            raise PermissionError(errno.EPERM, "it is no file")
        itself = f"/proc/self/fd/{passed}"
        Path(itself).chmod(stat.S_IMODE(os.fstat(passed).st_mode) | stat.S_IRUSR)
        return os.open(itself, _FILE & ~os.O_NOFOLLOW)
    finally:
        os.close(passed)


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
