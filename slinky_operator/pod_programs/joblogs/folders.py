"""Folders of users, in slices: what is kept of their names is bounded, however many files a user has put there.

The server's container has a small limit of memory, and what exceeds it ends the output of all jobs of the node. So no
list of a whole folder is ever made, here or by the standard library (`shutil.rmtree` makes one).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Final

SLICE: Final = 512
"""Names that are kept at a time; each has 255 bytes at most."""

MAX_DEPTH: Final = 80
"""Folders within folders that are removed: more than a copy may have."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def slices(opened: int) -> Iterator[list[str]]:
    """Give the names in a folder, some at a time, in no order; it may be changed meanwhile.

    Parameters
    ----------
    opened
        Descriptor of the folder; names are read from its offset on.

    Raises
    ------
    OSError
        The file system has failed, or the folder may not be listed.
    """
    with os.scandir(opened) as found:
        names = (entry.name for entry in found)
        while some := list(islice(names, SLICE)):
            yield some


def remove(name: str, parent: int) -> None:
    """Remove a folder with all that is in it; no link is followed, and what cannot be removed stays.

    Parameters
    ----------
    name
        Of the folder.
    parent
        Descriptor of the folder that it is in.
    """
    _remove(name, parent, MAX_DEPTH)


def _remove(name: str, parent: int, depth: int) -> None:
    try:
        opened = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        return
    try:
        # File systems may pass over names while others of the same folder are removed.
        while depth and _emptied(opened, depth):
            _ = os.lseek(opened, 0, os.SEEK_SET)
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EROFS}:
            raise
    finally:
        os.close(opened)


def _emptied(opened: int, depth: int) -> int:
    """Remove what is in a folder, and return how many entries have gone."""
    gone = 0
    for some in slices(opened):
        for name in some:
            gone += _is_removed(name, opened, depth)
    return gone


def _is_removed(name: str, folder: int, depth: int) -> bool:
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            _remove(name, folder, depth - 1)
            # It is there still, or this fails.
            _ = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return False
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        # Somebody else's, or of a file system that is read-only: it stays.
        return False
    return True
