"""A file or a folder becomes events, within limits. No link is followed, and nothing that is no file is read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Final

from slinky_operator.pod_programs.joblogs import folders
from slinky_operator.pod_programs.joblogs.copies.events import (
    PIECE,
    Count,
    Data,
    Events,
    File,
    FileEnd,
    Folder,
    Limits,
    Stopped,
    Whole,
    shown,
    stopped_by,
)
from slinky_operator.pod_programs.joblogs.copies.places import MAX_DEPTH, MAX_PATH

_OPENED: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_EXECUTABLE: Final = 0o100


class Reader:
    """Reads one file or folder.

    Parameters
    ----------
    limits
        What it may have.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = Count(limits)
        self._left_out = 0
        self._example = ""

    def events(self, opened: int) -> Events:
        """Give the events of a file or folder that was opened for reading; it is closed afterwards.

        Raises
        ------
        Stopped
            It cannot be read, is too much, or has changed meanwhile.
        """
        try:
            if stat.S_ISDIR(os.fstat(opened).st_mode):
                yield from self._folder(opened, "", 0)
            else:
                yield from self._file(opened, "")
        finally:
            os.close(opened)
        yield Whole(self._count.files, self._count.size, self._left_out, self._example)

    def _folder(self, opened: int, path: str, depth: int) -> Events:
        self._count.entry()
        yield Folder(path)
        for name in self._names(opened, path):
            inside = f"{path}/{name}" if path else name
            if depth >= MAX_DEPTH - 1 or len(os.fsencode(inside)) > MAX_PATH:
                raise Stopped(f"{shown(inside)} is too deep", is_final=True)
            found = self._open(opened, name, inside)
            if found is None:
                continue
            try:
                if stat.S_ISDIR(os.fstat(found).st_mode):
                    yield from self._folder(found, inside, depth + 1)
                else:
                    yield from self._file(found, inside)
            finally:
                os.close(found)

    def _names(self, opened: int, path: str) -> Iterator[str]:
        """The names in a folder, some of them in order at a time: all of them may be more than there is memory for."""
        some = folders.slices(opened)
        while True:
            try:
                names = next(some, None)
            except OSError as error:
                raise stopped_by(error, f"folder {shown(path) or '.'}") from None
            if names is None:
                return
            yield from sorted(names)

    def _open(self, folder: int, name: str, path: str) -> int | None:
        """Open an entry; None for one that is left out."""
        try:
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                self._left_out += 1
                self._example = self._example or shown(path)
                return None
            opened = os.open(name, _OPENED, dir_fd=folder)
        except FileNotFoundError:
            raise Stopped(f"{shown(path)} was deleted meanwhile") from None
        except OSError as error:
            raise stopped_by(error, shown(path)) from None
        if stat.S_IFMT(os.fstat(opened).st_mode) != stat.S_IFMT(kind):
            os.close(opened)
            raise Stopped(f"{shown(path)} was replaced meanwhile")
        return opened

    def _file(self, opened: int, path: str) -> Events:
        about = os.fstat(opened)
        self._count.entry()
        self._count.check(about.st_size)
        self._count.files += 1
        yield File(path, bool(about.st_mode & _EXECUTABLE))
        digest = hashlib.sha256()
        while content := self._read(opened, path):
            self._count.data(len(content))
            digest.update(content)
            yield Data(content)
        yield FileEnd(digest.hexdigest())

    def _read(self, opened: int, path: str) -> bytes:
        try:
            return os.read(opened, PIECE)
        except OSError as error:
            raise stopped_by(error, shown(path) or "the file") from None
