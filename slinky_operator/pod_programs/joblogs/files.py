"""What may be opened: a regular file of one user below a folder, reached through no symbolic link.

Users of a cluster share the folder, and anyone who reads a job's output in Kubernetes need not be the user of the job.
A link that a user has put in the place of another's output would show what that other one may read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

MAX_DEPTH: Final = 64
"""Folders on the way to a file."""

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Without waiting: opening a pipe would wait for somebody who writes to it."""


class Refused(Exception):
    """A file is not served; the text says why."""


class Held:
    """The file that was opened last, kept open until the next one is.

    A file system may give the number of a deleted file to the next one. As long as the earlier file is open it does
    not, so that another file has another number.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def keep(self, descriptor: int) -> str:
        """Keep this one instead of the one before, and return a tag by which the two differ."""
        self.close()
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        return f"{found.st_dev:x}-{found.st_ino:x}"

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_for(uid: int, path: str, folders: Sequence[str]) -> int:
    """Open a file for reading; the calling process must have become the user already.

    Parameters
    ----------
    uid
        The user whose file it must be.
    path
        Absolute path.
    folders
        Those below which files are served; they are trusted.

    Raises
    ------
    Refused
        It is not to be served.
    FileNotFoundError
        It does not exist.
    OSError
        The user may not read it, or the file system fails.
    """
    folder = next((one for one in folders if path.startswith(one.rstrip("/") + "/")), None)
    if folder is None:
        raise Refused(f"only files below {', '.join(folders)} are served")
    parts = path[len(folder.rstrip("/")) + 1 :].split("/")
    if len(parts) > MAX_DEPTH or any(part in {"", ".", ".."} for part in parts):
        raise Refused("the path is not a plain one")
    opened = _open(folder, parts)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        os.close(opened)
        raise Refused("it is not a regular file")
    if found.st_uid != uid:
        os.close(opened)
        raise Refused("it belongs to another user than the job")
    return opened


def _open(folder: str, parts: Sequence[str]) -> int:
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            following = os.open(part, _FOLDER, dir_fd=place)
            os.close(place)
            place = following
        return os.open(parts[-1], _FILE, dir_fd=place)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise Refused("a symbolic link, or what is no folder, is on the way to it") from None
        if error.errno == errno.ENXIO:
            raise Refused("it is not a regular file") from None
        raise
    finally:
        os.close(place)
