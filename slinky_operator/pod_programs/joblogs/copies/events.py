"""A file or a folder as a sequence of events: `Folder` or `File` first, `Whole` last."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

PIECE: Final = 256 * 1024
"""Bytes of one `Data`."""

_FINAL: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.EINVAL,
    }
)
"""Errors that trying again does not mend."""


class Stopped(Exception):
    """A copy has stopped, and nothing of it is to be seen.

    Parameters
    ----------
    why
        One line.
    is_final
        Whether trying again is of no use.
    """

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        self.why = why
        self.is_final = is_final
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one copy may have."""

    size: int
    """Bytes of all files."""
    entries: int
    """Files and folders."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder; the copy itself has the path ``""``."""

    path: str


@dataclass(frozen=True, slots=True)
class File:
    """A file, of which the content follows."""

    path: str
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Some of the content of a file."""

    content: bytes


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file, with the SHA-256 of its content as the reader has seen it."""

    digest: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The end of a copy."""

    files: int
    size: int
    left_out: int = 0
    """Symbolic links and what is neither file nor folder: these are not copied."""
    example: str = ""
    """Path of the first of them."""


Event: TypeAlias = Folder | File | Data | FileEnd | Whole
Events: TypeAlias = Iterator[Event]


def stopped_by(error: OSError, what: str) -> Stopped:
    """Say what the file system has refused."""
    return Stopped(f"{what}: {error.strerror or error}", is_final=error.errno in _FINAL)


class Count:
    """Counts what a copy has, up to its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.entries = 0
        self.files = 0
        self.size = 0

    def entry(self) -> None:
        """Count a file or a folder.

        Raises
        ------
        Stopped
            There are too many.
        """
        self.entries += 1
        if self.entries > self._limits.entries:
            raise Stopped(f"there are more than {self._limits.entries} files and folders", is_final=True)

    def data(self, size: int) -> None:
        """Count bytes.

        Raises
        ------
        Stopped
            There are too many.
        """
        self.size += size
        self.check(0)

    def check(self, more: int) -> None:
        """See whether so many bytes more are allowed.

        Raises
        ------
        Stopped
            They are not.
        """
        if self.size + more > self._limits.size:
            raise Stopped(f"the files have more than {self._limits.size} bytes", is_final=True)


def _is_name(path: str) -> bool:
    try:
        _ = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """A path of somebody's files, fit for one line."""
    text = path.encode(errors="surrogateescape" if _is_name(path) else "replace").decode(errors="backslashreplace")
    return "".join(one if one.isprintable() else "?" for one in text)[:100]
