"""What becomes of old output, on folders of several kinds. Each look is a process of its own, as in the server."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from slinky_operator.pod_programs.joblogs import folders
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server import retention
from slinky_operator.pod_programs.joblogs.server.retention import FOLDER_MODE, Retention
from tests.support.job_logs import ALICE, BOB

KEEP = 3600.0
MANY = 40_000


@pytest.fixture
def folder() -> Iterator[Path]:
    # Those of pytest cannot be reached by other users.
    made = Path(tempfile.mkdtemp(prefix="job-output-"))
    made.chmod(FOLDER_MODE)
    yield made
    shutil.rmtree(made)


def write(folder: Path, name: str, *, uid: int = ALICE, old: bool = True) -> Path:
    path = folder / name
    path.write_bytes(b"x")
    os.chown(path, uid, uid)
    if old:
        os.utime(path, (0, 0))
    return path


def look(kept: Retention) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            kept.look()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def no_leases(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Leases as a file system without them answers."""
    real: Callable[..., int] = fcntl.fcntl

    def answer(descriptor: int, command: int, *more: int) -> int:
        if command == fcntl.F_SETLEASE:
            raise OSError(number, os.strerror(number))
        return real(descriptor, command, *more)

    monkeypatch.setattr(fcntl, "fcntl", answer)


def test_open_files_stay(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old, opened, young = write(folder, "old"), write(folder, "open"), write(folder, "young", old=False)
    others, of_root = write(folder, "others", uid=BOB), write(folder, "root", uid=0)
    with opened.open("ab"):
        look(Retention([str(folder)], KEEP, Log()))
    assert [path.exists() for path in (old, opened, young, others, of_root)] == [False, True, True, False, True]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_open_files_are_not_known_all_stay_and_this_is_said_once(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    no_leases(monkeypatch, number)
    old = [write(folder, "a"), write(folder, "b", uid=BOB)]
    kept = Retention([str(folder)], KEEP, Log())
    for _ in range(2):
        look(kept)
    assert all(path.exists() for path in old)
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"files in {folder} stay, since it does not tell which ones are open: {os.strerror(number)}" in said


def test_a_file_that_goes_during_the_look_keeps_no_other_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("a", "b", "c")
    for name in names:
        write(folder, name)
    real = os.scandir

    @contextmanager
    def racing(opened: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        with real(opened) as found:
            entries = list(found)
        (folder / entries[0].name).unlink()
        yield iter(entries)

    monkeypatch.setattr(os, "scandir", racing)
    look(Retention([str(folder)], KEEP, Log()))
    assert not list(folder.iterdir())


def test_a_file_that_cannot_be_deleted_keeps_no_other_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stuck, others = write(folder, "stuck"), [write(folder, "a"), write(folder, "z", uid=BOB)]
    real = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "stuck":
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    look(Retention([str(folder)], KEEP, Log()))
    assert [stuck.exists(), *(path.exists() for path in others)] == [True, False, False]
    assert f"{stuck} of uid {ALICE} is not deleted: Operation not permitted" in capfd.readouterr().err


def peak(folder: Path) -> int:
    """KiB that a look takes at most beyond what its process has at its beginning."""
    received, sent = os.pipe()

    class Measured(Retention):
        @override
        def look(self) -> None:
            Path("/proc/self/clear_refs").write_text("5")
            before = resident()
            super().look()
            os.write(sent, f"{resident() - before}\n".encode())

    look(Measured([str(folder)], KEEP, Log()))
    os.close(sent)
    with os.fdopen(received) as said:
        return int(said.read())


def resident() -> int:
    """KiB that this process had resident at most."""
    (found,) = re.findall(r"(?m)^VmHWM:\s+([0-9]+) kB$", Path("/proc/self/status").read_text())
    return int(found)


def test_a_folder_with_very_many_files_is_emptied_in_little_memory(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    for number in range(MANY):
        name = f"{number:0250}"
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=opened))
        os.chown(name, ALICE, ALICE, dir_fd=opened)
        os.utime(name, (0, 0), dir_fd=opened)
    os.close(opened)
    others = write(folder, "others", uid=BOB)
    grown = peak(folder)
    assert not others.exists()
    assert not any(folder.iterdir())
    # All names together have four times as much.
    assert grown < MANY * 250 / 1024 / 4


def test_a_look_that_ends_early_is_continued_from_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "LOOK_SECONDS", 0.0)
    kept = Retention([str(folder)], KEEP, Log())
    for number in range(5 * folders.SLICE):
        write(folder, f"{number:0250}", old=number % 2 == 0)
    # What is young stays, and so each look that began at the beginning would come to the same files.
    for _ in range(8 * 5):
        look(kept)
    assert {int(path.name) % 2 for path in folder.iterdir()} == {1}


def test_a_file_that_its_owner_may_not_read_is_deleted_too(folder: Path) -> None:
    closed, opened = write(folder, "closed"), write(folder, "open")
    for path in (closed, opened):
        path.chmod(0)
    with opened.open("ab"):
        look(Retention([str(folder)], KEEP, Log()))
    assert [closed.exists(), opened.exists()] == [False, True]


def test_a_folder_that_root_may_not_list_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(opened: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    old = write(folder, "old")
    kept = Retention([str(folder)], KEEP, Log())
    for _ in range(2):
        look(kept)
    assert old.exists()
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"old files in {folder} are not deleted, since root may not list it" in said


def test_the_mode_is_set_where_it_can_be(folder: Path) -> None:
    said: list[str] = []
    folder.chmod(0o755)
    retention.prepare(str(folder), said.append)
    assert folder.stat().st_mode & 0o7777 == FOLDER_MODE
    assert said == []


def test_a_folder_whose_mode_only_the_file_server_can_change_is_served_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    said: list[str] = []
    # It is as it should be: nothing to do.
    retention.prepare(str(folder), said.append)
    assert said == []
    (folder / "of-others").mkdir(mode=0o750)
    retention.prepare(str(folder / "of-others"), said.append)
    assert len(said) == 1
    assert f"the mode of {folder}/of-others stays 750: Operation not permitted. Set it to 1733" in said[0]
