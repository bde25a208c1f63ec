"""Folders with very many files: read, removed and moved in bounded memory."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs import folders
from slinky_operator.pod_programs.joblogs.copies.events import PIECE
from tests.unit.pod_programs.joblogs.copies.trees import events, found, write

SLICE = 64
MANY = 40 * SLICE


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "SLICE", SLICE)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A folder with many files of long names, and another one in it."""
    made = tmp_path / "full"
    made.mkdir()
    for number in range(MANY):
        (made / f"{number:0250}").touch()
    (made / "inner").mkdir()
    (made / "inner" / "file").write_bytes(b"x")
    return made


def peak(work: Callable[[], object]) -> int:
    """Bytes that some work takes at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def removed(path: Path) -> None:
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        folders.remove(path.name, parent)
    finally:
        os.close(parent)


def exhausted(path: Path) -> None:
    for _ in events(path):
        pass


@pytest.mark.parametrize("work", [exhausted, removed])
def test_no_list_of_all_names_is_made(full: Path, work: Callable[[Path], None]) -> None:
    # Besides what is read of a file, a third of all names, which have 49 bytes more in Python than their own.
    assert peak(lambda: work(full)) < PIECE + MANY * 300 / 3


def test_what_is_removed_is_gone(full: Path) -> None:
    outside = full.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"x")
    (full / "inner" / "link").symlink_to(outside)
    removed(full)
    assert not full.exists()
    assert found(outside) == {"file": b"x"}


def test_what_cannot_be_removed_ends_the_attempt_without_an_error(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.unlink

    def refuse(name: str, *, dir_fd: int | None = None) -> None:
        if name == "file":
            raise PermissionError(1, "Operation not permitted")
        real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    removed(full)
    assert found(full) == {"inner": {"file": b"x"}}


def test_what_is_deeper_than_a_copy_may_be_stays(tmp_path: Path) -> None:
    deep = tmp_path.joinpath("top", *["x"] * folders.MAX_DEPTH)
    deep.mkdir(parents=True)
    (deep / "file").touch()
    removed(tmp_path / "top")
    assert deep.exists()


def test_a_full_folder_is_merged_with_another(full: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "inner").mkdir(parents=True)
    (there / "inner" / "kept").write_bytes(b"y")
    write(events(full), there)
    assert found(there / "inner") == {"file": b"x", "kept": b"y"}
    assert len(found(there)) == MANY + 1
    assert {one.name for one in tmp_path.iterdir()} == {"full", "there"}
