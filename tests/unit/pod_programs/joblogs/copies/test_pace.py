"""A copy goes on, or ends: what moves too slowly, and what takes too long."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from slinky_operator.pod_programs.joblogs.copies import wire
from slinky_operator.pod_programs.joblogs.copies.events import PIECE, Data, File, FileEnd, Folder, Stopped
from slinky_operator.pod_programs.joblogs.copies.pace import (
    COPY_SECONDS,
    EVENT_WORTH,
    GRACE_SECONDS,
    SLOWEST,
    Line,
    Pace,
)


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_byte_from_time_to_time_is_no_progress(clock: Clock, ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends

    def drop(count: int) -> bytes:
        clock.now += 19.0
        theirs.send(b"x")
        return ours.recv(count)

    line = Line(ours, drop, Pace(clock=clock), 20.0)
    with pytest.raises(Stopped, match="too slow") as stopped:
        list(wire.events(line.receive))
    assert not stopped.value.is_final
    assert clock.now < 50.0 + GRACE_SECONDS + 20.0


def test_it_is_waited_for_as_long_as_the_pace_allows(clock: Clock, ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    line = Line(ours, ours.recv, Pace(clock=clock), 20.0)
    theirs.send(b"x")
    line.receive(1)
    assert ours.gettimeout() == 20.0
    clock.now += GRACE_SECONDS - 3.0
    line.send(b"y")
    assert ours.gettimeout() == pytest.approx(3.0, abs=0.01)


def test_what_moves_fast_enough_has_its_hour(clock: Clock) -> None:
    noted: list[int] = []

    def note(moved: int) -> bool:
        noted.append(moved)
        return True

    pace = Pace(note=note, clock=clock)
    for _ in range(int(COPY_SECONDS) - 1):
        clock.now += 1.0
        pace.moved(SLOWEST)
        assert pace.left() > 0
    clock.now += 1.0
    with pytest.raises(Stopped, match="not complete within 3600 s"):
        pace.left()
    assert noted[-1] == SLOWEST * (int(COPY_SECONDS) - 1)


def test_a_copy_that_may_not_go_on_ends(clock: Clock) -> None:
    with pytest.raises(Stopped, match="given to a copy of another user") as stopped:
        Pace(note=lambda _: False, clock=clock).left()
    assert not stopped.value.is_final


def test_small_files_take_their_time(clock: Clock) -> None:
    """Three a second are slow for a disk, and fast enough."""

    def files() -> Iterator[Folder | File | Data | FileEnd]:
        yield Folder("")
        for number in range(3 * int(GRACE_SECONDS) * 5):
            yield File(f"{number}")
            clock.now += 1 / 3
            yield FileEnd("")

    assert 2 * 3 * EVENT_WORTH > SLOWEST
    assert len(list(Pace(clock=clock).events(files()))) > 5 * GRACE_SECONDS


def test_content_counts_where_nothing_else_counts_it(clock: Clock) -> None:
    def pieces() -> Iterator[Data]:
        for _ in range(40):
            clock.now += 10.0
            yield Data(bytes(PIECE))

    assert len(list(Pace(clock=clock).events(pieces(), is_local=True))) == 40
    with pytest.raises(Stopped, match="too slow"):
        list(Pace(clock=clock).events(pieces()))
