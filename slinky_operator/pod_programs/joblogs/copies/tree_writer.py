"""Events become a file or a folder: everything is written beside its place and checked, and then moved there.

A folder that exists is merged with: its other files stay, those of the same name are replaced one by one. A process
that ends in between leaves a folder `.<mark>.part`, which the next attempt removes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slinky_operator.pod_programs.joblogs import folders
from slinky_operator.pod_programs.joblogs.copies import places
from slinky_operator.pod_programs.joblogs.copies.events import (
    Count,
    Data,
    Event,
    File,
    FileEnd,
    Folder,
    Limits,
    Stopped,
    Whole,
    shown,
    stopped_by,
)

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT: Final = "content"
"""Name of the copy while it is in the folder beside its place."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Who may read what is written."""

    folder: int
    file: int

    def of(self, file: File) -> int:
        """Mode of a file; anyone who may read it may run it, if its owner may."""
        return self.file | (self.file & 0o444) >> 2 if file.is_executable else self.file


PRIVATE: Final = Modes(0o700, 0o600)
"""For its owner only."""

READABLE: Final = Modes(0o755, 0o644)
"""For everybody who may mount the volume."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a copy is written.

    Parameters
    ----------
    parent
        Descriptor of the folder of its place.
    name
        Its name there; empty to write a folder's content right into `parent`.
    mark
        Tells this copy apart from others into the same folder.
    owner
        To whom a folder with which it is merged must belong, unless to root; None if that does not matter.
    """

    parent: int
    name: str
    mark: str
    owner: int | None = None


def write(events: Iterable[Event], target: Target, limits: Limits, modes: Modes) -> Whole:
    """Write a copy, and return what it has.

    Parameters
    ----------
    events
        See there.
    target
        Where.
    limits
        What it may have.
    modes
        Who may read it.

    Raises
    ------
    Stopped
        It is incomplete, damaged or too much, or its place cannot be written to. Nothing of it is to be seen there,
        unless the file system failed while a folder was merged with another.
    """
    staged = f".{target.mark}.part"
    try:
        opened = _stage(target.parent, staged)
    except OSError as error:
        raise stopped_by(error, "the folder cannot be written to") from None
    try:
        found = _Writer(opened, limits, modes).take(events)
        _ = _move(opened, _CONTENT, target.parent, target.name, target.owner)
    except OSError as error:
        raise stopped_by(error, shown(target.name) or "the folder") from None
    else:
        return found
    finally:
        os.close(opened)
        folders.remove(staged, target.parent)


def _stage(parent: int, staged: str) -> int:
    """Make the folder beside the place; what an earlier attempt has left there is removed."""
    old = f"{staged}.{secrets.token_hex(4)}"
    try:
        os.rename(staged, old, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        # The usual case.
        pass
    else:
        folders.remove(old, parent)
    os.mkdir(staged, 0o700, dir_fd=parent)
    return os.open(staged, _FOLDER, dir_fd=parent)


class _Writer:
    def __init__(self, staged: int, limits: Limits, modes: Modes) -> None:
        self._staged = staged
        self._modes = modes
        self._count = Count(limits)
        self._file: int | None = None
        self._digest = hashlib.sha256()
        self._path = ""

    def take(self, events: Iterable[Event]) -> Whole:
        """Write everything, up to the end.

        Raises
        ------
        OSError
            The file system has failed.
        """
        try:
            for event in events:
                match event:
                    case Data(content):
                        self._data(content)
                    case FileEnd(digest):
                        self._end(digest)
                    case File() | Folder():
                        self._entry(event)
                    case Whole():
                        return self._whole(event)
            raise Stopped("the copy is incomplete")
        finally:
            self._close()

    def _entry(self, event: File | Folder) -> None:
        if self._file is not None:
            raise Stopped("a file has no end")
        if bool(self._count.entries) != bool(event.path):
            raise Stopped("a copy begins with what it is a copy of, and has that once", is_final=True)
        self._count.entry()
        names = (_CONTENT, *places.parts(event.path))
        folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._staged)
        try:
            for name in names[:-1]:
                following = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                os.close(folder)
                folder = following
            if isinstance(event, Folder):
                os.mkdir(names[-1], self._modes.folder, dir_fd=folder)
                return
            self._file = os.open(names[-1], _NEW, self._modes.of(event), dir_fd=folder)
        finally:
            os.close(folder)
        self._path, self._digest = event.path, hashlib.sha256()

    def _data(self, content: bytes) -> None:
        if self._file is None:
            raise Stopped("there is content of no file", is_final=True)
        self._count.data(len(content))
        self._digest.update(content)
        view = memoryview(content)
        while view:
            view = view[os.write(self._file, view) :]

    def _end(self, digest: str) -> None:
        if self._file is None:
            raise Stopped("there is the end of no file", is_final=True)
        if digest != self._digest.hexdigest():
            raise Stopped(f"{shown(self._path) or 'the file'} was damaged on its way: its checksum is another one")
        os.fsync(self._file)
        self._count.files += 1
        self._close()

    def _whole(self, event: Whole) -> Whole:
        if self._file is not None or not self._count.entries:
            raise Stopped("the copy is incomplete")
        if (event.files, event.size) != (self._count.files, self._count.size):
            raise Stopped("the copy is incomplete: files are missing")
        return event

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _move(source: int, name: str, target: int, wanted: str, owner: int | None = None) -> bool:
    """Move an entry to its place; a folder that is there is merged with, and only then the entry stays, empty."""
    is_folder = stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
    if not wanted:
        if not is_folder:
            raise Stopped("a file needs a name, and not that of a folder", is_final=True)
        _merge(source, name, target)
        return False
    if is_folder and _is_folder(target, wanted):
        into = os.open(wanted, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target)
        try:
            places.check_owner(into, wanted, owner)
            _merge(source, name, into)
        finally:
            os.close(into)
        return False
    try:
        os.rename(name, wanted, src_dir_fd=source, dst_dir_fd=target)
    except OSError as error:
        if error.errno == errno.EISDIR:
            raise Stopped(f"{shown(wanted)} is a folder there, and a file here", is_final=True) from None
        if error.errno == errno.ENOTDIR:
            raise Stopped(f"{shown(wanted)} is a file there, and a folder here", is_final=True) from None
        raise
    return True


def _merge(source: int, name: str, target: int) -> None:
    opened = os.open(name, _FOLDER, dir_fd=source)
    try:
        moved = True
        while moved:
            # File systems may pass over names while others of the same folder are moved away.
            moved = False
            _ = os.lseek(opened, 0, os.SEEK_SET)
            for some in folders.slices(opened):
                for inside in some:
                    moved = _move(opened, inside, target, inside) or moved
    finally:
        os.close(opened)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
