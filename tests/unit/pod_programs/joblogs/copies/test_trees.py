"""Files and folders that are copied: what arrives, what is left out, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.pod_programs.joblogs.copies import places, wire
from slinky_operator.pod_programs.joblogs.copies.events import (
    Data,
    Event,
    File,
    FileEnd,
    Folder,
    Limits,
    Stopped,
    Whole,
)
from slinky_operator.pod_programs.joblogs.copies.tree_writer import PRIVATE
from tests.unit.pod_programs.joblogs.copies.trees import AMPLE, Tree, events, found, plant, write

TREE: Mapping[str, Any] = {"a": b"one", "b": {"c": b"", "d": {"e": b"x" * 600_000}}, "empty": {}}
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    plant(path, TREE)
    return path


def through_a_wire(given: list[Event]) -> list[Event]:
    stream = b"".join(map(wire.frame, given))
    return list(wire.events(reader(stream)))


class reader:  # noqa: N801 - a function with a place
    """Gives bytes in odd pieces, as a connection does."""

    def __init__(self, content: bytes) -> None:
        self._content, self._sizes = content, itertools.cycle((1, 7, 65_536))

    def __call__(self, most: int) -> bytes:
        count = min(most, next(self._sizes))
        piece, self._content = self._content[:count], self._content[count:]
        return piece


def test_a_folder_arrives_as_it_is(source: Path, tmp_path: Path) -> None:
    whole = write(through_a_wire(list(events(source))), tmp_path / "copy")
    assert found(tmp_path / "copy") == TREE
    assert (whole.files, whole.size, whole.left_out) == (3, 600_003, 0)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["copy", "source"]


def test_a_file_arrives_as_it_is(source: Path, tmp_path: Path) -> None:
    (source / "a").chmod(0o750)
    assert write(events(source / "a"), tmp_path / "copy").files == 1
    assert (tmp_path / "copy").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) & 0o777 == 0o755
    write(events(source / "a"), tmp_path / "own", modes=PRIVATE)
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


def test_a_copy_that_is_made_again_changes_nothing(source: Path, tmp_path: Path) -> None:
    for _ in range(2):
        write(events(source), tmp_path / "copy")
    assert found(tmp_path / "copy") == TREE


def test_a_folder_that_exists_keeps_its_other_files(source: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    plant(tmp_path / "copy", {"a": b"old", "other": b"kept", "b": {"c": b"old", "z": b"kept"}})
    write(events(source), tmp_path / "copy")
    assert found(tmp_path / "copy") == {**TREE, "other": b"kept", "b": {**TREE["b"], "z": b"kept"}}


@pytest.mark.parametrize(("there", "words"), [({"a": {}}, "a is a folder there"), ({"b": b""}, "b is a file there")])
def test_a_file_does_not_replace_a_folder(source: Path, tmp_path: Path, there: Tree, words: str) -> None:
    (tmp_path / "copy").mkdir()
    plant(tmp_path / "copy", there)
    with pytest.raises(Stopped, match=words) as stopped:
        write(events(source), tmp_path / "copy")
    assert stopped.value.is_final


def test_links_and_pipes_are_left_out_and_told(source: Path, tmp_path: Path) -> None:
    (source / "link").symlink_to("/etc/passwd")
    (source / "loop").symlink_to(".")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(source / "socket"))
        whole = write(events(source), tmp_path / "copy")
    assert found(tmp_path / "copy") == TREE
    assert (whole.left_out, whole.example) == (4, "link")


def test_no_link_on_the_way_is_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    for names in (("link",), ("link", "a")):
        with pytest.raises(Stopped, match="symbolic link"):
            places.existing(str(tmp_path), names)
    with pytest.raises(Stopped, match="symbolic link"):
        places.parent(str(tmp_path), ("link", "new"), 0o755)
    with pytest.raises(Stopped, match="is a file there"):
        write(events(source), tmp_path / "link")
    assert found(source) == TREE


def test_what_is_missing_is_made_on_the_way(source: Path, tmp_path: Path) -> None:
    parent = places.parent(str(tmp_path), ("new", "deep", "copy"), 0o700)
    os.close(parent)
    assert stat.S_IMODE((tmp_path / "new" / "deep").stat().st_mode) == 0o700


def test_the_owner_of_the_way_counts(source: Path, tmp_path: Path) -> None:
    me = os.geteuid()
    os.close(places.existing(str(tmp_path), ("source",), me))
    with pytest.raises(Stopped, match="another user"):
        places.existing(str(tmp_path), ("source",), me + 1)
    if me:
        with pytest.raises(Stopped, match="another user"):
            places.parent(str(tmp_path), ("source", "new"), 0o755, me + 1)


@pytest.mark.parametrize(
    ("limits", "words"), [(Limits(600_002, 100), "600002 bytes"), (Limits(10**9, 6), "more than 6 files")]
)
def test_what_is_too_much_is_refused_by_both_sides(source: Path, tmp_path: Path, limits: Limits, words: str) -> None:
    with pytest.raises(Stopped, match=words):
        list(events(source, limits))
    with pytest.raises(Stopped, match=words) as stopped:
        write(events(source), tmp_path / "copy", limits)
    assert stopped.value.is_final
    assert [one.name for one in tmp_path.iterdir()] == ["source"]


def test_a_damaged_copy_is_not_to_be_seen(source: Path, tmp_path: Path) -> None:
    changed = [Data(b"two") if isinstance(one, Data) and one.content == b"one" else one for one in events(source)]
    with pytest.raises(Stopped, match="a was damaged") as stopped:
        write(changed, tmp_path / "copy")
    assert not stopped.value.is_final
    assert [one.name for one in tmp_path.iterdir()] == ["source"]


def test_a_copy_that_ends_too_early_is_not_to_be_seen(source: Path, tmp_path: Path) -> None:
    every = list(events(source))
    for count in range(len(every)):
        with pytest.raises(Stopped):
            write(every[:count], tmp_path / "copy")
    without = [one for one in every if not (isinstance(one, File) and one.path == "b/c")]
    without.remove(FileEnd(EMPTY))
    with pytest.raises(Stopped, match="files are missing"):
        write(without, tmp_path / "copy")
    assert [one.name for one in tmp_path.iterdir()] == ["source"]


def test_what_an_earlier_attempt_has_left_is_removed(source: Path, tmp_path: Path) -> None:
    (tmp_path / ".mark.part").mkdir()
    plant(tmp_path / ".mark.part", {"content": {"old": b"old"}})
    write(events(source), tmp_path / "copy")
    assert found(tmp_path / "copy") == TREE
    assert sorted(one.name for one in tmp_path.iterdir()) == ["copy", "source"]


def test_a_name_that_is_no_text_arrives(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    write(through_a_wire(list(events(tmp_path / "source"))), tmp_path / "copy")
    assert [os.fsencode(one.name) for one in (tmp_path / "copy").iterdir()] == [b"\xff\xfe"]


ODD = st.one_of(
    st.sampled_from(
        ["..", ".", "", "a", "a/b", "../x", "/etc/x", "a//b", "a/../../x", "content", "\0", "\ud800", "x" * 256]
    ),
    st.text(max_size=8),
)
ANYTHING = st.one_of(
    st.builds(Folder, ODD),
    st.builds(File, ODD, st.booleans()),
    st.builds(Data, st.binary(max_size=20)),
    st.builds(FileEnd, st.sampled_from([EMPTY, "", "0"])),
    st.builds(Whole, st.integers(0, 3), st.integers(0, 40)),
)


@given(st.lists(ANYTHING, max_size=12), st.booleans())
def test_no_sequence_of_events_leads_out_of_its_place(
    tmp_path_factory: pytest.TempPathFactory, given: list[Event], is_folder: bool
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "inside").mkdir()
    try:
        write([Folder("") if is_folder else File(""), *given], outside / "inside" / "copy", Limits(100, 8))
    except Stopped:
        assert list((outside / "inside").iterdir()) == []
    assert [one.name for one in outside.iterdir()] == ["inside"]
    assert {one.name for one in (outside / "inside").iterdir()} <= {"copy"}


@given(st.binary(max_size=200))
def test_no_bytes_on_a_wire_do_harm(content: bytes) -> None:
    # Most bytes are refused: what must not come is any other error, or more content than there is.
    with contextlib.suppress(Stopped):
        for event in wire.events(reader(content)):
            assert not isinstance(event, Data) or len(event.content) <= len(content)


@given(ODD)
def test_a_path_is_taken_apart_or_refused(path: str) -> None:
    try:
        names = places.parts(path)
    except Stopped:
        return
    assert "/".join(names) == path
    assert not {"", ".", ".."} & set(names)


def test_why_a_side_has_stopped_is_told_to_the_other() -> None:
    content = wire.stopped(Stopped("no\nspace", is_final=True))
    with pytest.raises(Stopped, match=r"no\?space") as stopped:
        list(wire.events(reader(content)))
    assert stopped.value.is_final
    with pytest.raises(Stopped, match="has ended") as stopped:
        list(wire.events(reader(content[:-1])))
    assert not stopped.value.is_final


def test_a_folder_with_too_many_names_is_not_listed_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for number in range(20):
        (tmp_path / "source" / f"{number}").write_bytes(b"")
    with pytest.raises(Stopped, match="more than 10"):
        list(events(tmp_path / "source", Limits(AMPLE.size, 10)))
