"""Paths below a folder: found, or made, without following a symbolic link that somebody has put there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

from slinky_operator.pod_programs.joblogs.copies.events import Stopped, shown

MAX_DEPTH: Final = 64
"""Folders on the way to a file."""

MAX_NAME: Final = 255
"""Bytes of the name of a file."""

MAX_PATH: Final = 4095
"""Bytes of a path."""

_PASSED: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENED: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Without waiting: opening a pipe would wait for somebody who writes to it."""


def parts(path: str) -> tuple[str, ...]:
    """Take a plain relative path apart; none for ``""``.

    Raises
    ------
    Stopped
        It could lead elsewhere, or is too long.
    """
    if not path:
        return ()
    found = tuple(path.split("/"))
    try:
        sizes = [len(os.fsencode(part)) for part in found]
    except UnicodeEncodeError:
        sizes = []
    is_plain = "\0" not in path and not {"", ".", ".."} & set(found)
    if not is_plain or not sizes or max(sizes) > MAX_NAME or len(found) > MAX_DEPTH or sum(sizes) > MAX_PATH:
        raise Stopped(f"{shown(path)} is not a plain path", is_final=True)
    return found


def root(folder: str) -> int:
    """Open a folder that is trusted.

    Raises
    ------
    Stopped
        It is not there.
    """
    try:
        return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Stopped(f"{folder}: {error.strerror}") from None


def existing(folder: str, names: Sequence[str], owner: int | None = None) -> int:
    """Open a file or a folder for reading.

    Parameters
    ----------
    folder
        It is trusted.
    names
        The way from there.
    owner
        To whom it must belong; None if that does not matter.

    Raises
    ------
    Stopped
        It is not there, or not to be read.
    """
    path = "/".join(names)
    passed = root(folder)
    try:
        for name in names[:-1]:
            passed = _next(passed, name)
        opened = os.open(names[-1] if names else ".", _OPENED, dir_fd=passed)
    except OSError as error:
        raise _not_there(error, path) from None
    finally:
        os.close(passed)
    about = os.fstat(opened)
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        os.close(opened)
        raise Stopped(f"{shown(path)} is neither a file nor a folder", is_final=True)
    if owner is not None and about.st_uid != owner:
        os.close(opened)
        raise Stopped(f"{shown(path)} belongs to another user than the job", is_final=True)
    return opened


def parent(folder: str, names: Sequence[str], mode: int, owner: int | None = None) -> int:
    """Open the folder of what is to be written, and make it where it is missing.

    Parameters
    ----------
    folder
        It is trusted, and exists.
    names
        The way from there to what is to be written.
    mode
        Of folders that are made.
    owner
        To whom folders on the way must belong, unless to root; None if that does not matter. Somebody else could
        replace what is written into his.

    Raises
    ------
    Stopped
        It cannot be opened, or made.
    """
    passed = root(folder)
    try:
        for name in names[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=passed)
            passed = _next(passed, name)
            check_owner(passed, name, owner)
    except OSError as error:
        os.close(passed)
        raise _not_there(error, "/".join(names)) from None
    except Stopped:
        os.close(passed)
        raise
    return passed


def check_owner(opened: int, name: str, owner: int | None) -> None:
    """See whether a folder is the user's, or root's.

    Raises
    ------
    Stopped
        It is somebody else's.
    """
    if owner is not None and os.fstat(opened).st_uid not in {0, owner}:
        raise Stopped(f"folder {shown(name)} belongs to another user than the job", is_final=True)


def _next(passed: int, name: str) -> int:
    """Go one folder further, and let go of the one before."""
    following = os.open(name, _PASSED, dir_fd=passed)
    os.dup2(following, passed, inheritable=False)
    os.close(following)
    return passed


def _not_there(error: OSError, path: str) -> Stopped:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return Stopped(f"a symbolic link, or what is no folder, is on the way to {shown(path)}", is_final=True)
    if error.errno == errno.ENOENT:
        return Stopped(f"there is no {shown(path)}", is_final=True)
    if error.errno == errno.ENXIO:
        return Stopped(f"{shown(path)} is neither a file nor a folder", is_final=True)
    is_final = error.errno in {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG}
    return Stopped(f"{shown(path)}: {error.strerror}", is_final=is_final)
