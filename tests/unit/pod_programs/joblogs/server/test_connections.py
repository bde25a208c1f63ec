"""Who has how many connections to a job log server, and who gives one to whom."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server.connections import MARGIN, OWN, Connections, Place, holder_of
from slinky_operator.pod_programs.joblogs.server.listener import Limits
from tests.unit.pod_programs.joblogs.test_limits import PATIENCE, OneFile, ask, serving, wait_for


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


def connected(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    return stack.enter_context(ours), stack.enter_context(theirs)


def admitted(found: Connections, stack: ExitStack, holder: str) -> tuple[Place, socket.socket]:
    ours, theirs = connected(stack)
    place = found.admit(ours, holder)
    assert place is not None
    return place, theirs


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        (("127.0.0.1", 7), OWN),
        (("127.9.8.7", 7), OWN),
        (("::ffff:127.0.0.2", 7, 0, 0), OWN),
        (("::1", 7, 0, 0), OWN),
        (("203.0.113.7", 7), "203.0.113.7"),
        (("::ffff:203.0.113.7", 7, 0, 0), "203.0.113.7"),
        (("2001:db8::7", 7, 0, 0), "2001:db8::7"),
    ],
)
def test_whom_a_connection_counts_to(address: tuple[str, int], holder: str) -> None:
    assert holder_of(address) == holder


def test_every_address_of_the_pod_is_its_own() -> None:
    assert holder_of((socket.gethostbyname(socket.gethostname()), 7)) == OWN


def test_all_loopback_addresses_together_have_one_share(tmp_path: Path, stack: ExitStack) -> None:
    with serving(OneFile(tmp_path), Limits(per_peer=4)) as (server, port):

        def from_address(last: int) -> socket.socket:
            own = (f"127.0.0.{last}", 0)
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE, own))

        for last in range(2, 6):
            from_address(last)
        wait_for(lambda: len(server._connections) == 4)
        assert from_address(6).recv(4096).startswith(b"HTTP/1.1 503 ")


def test_a_user_has_so_many_connections_wherever_they_come_from(tmp_path: Path, stack: ExitStack) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with serving(OneFile(path), Limits(per_user=2)) as (_, port):

        def answer() -> bytes:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            ask(connection)
            return connection.recv(4096)

        assert [answer()[:12] for _ in range(2)] == [b"HTTP/1.1 200"] * 2
        assert answer().endswith(f"too many connections of uid {os.getuid()}\n".encode())


def test_the_holder_of_the_most_gives_its_oldest_to_one_of_fewer(stack: ExitStack) -> None:
    found = Connections(4, 4, 4, Log())
    oldest = admitted(found, stack, "a")
    younger = [admitted(found, stack, "a") for _ in range(2)]
    _ = admitted(found, stack, "b")
    _ = admitted(found, stack, "c")
    assert oldest[1].recv(1) == b"", "its connection is closed"
    assert len(found) == 4
    # Its thread ends, which counts nothing twice.
    found.leave(oldest[0])
    assert len(found) == 4
    for place, _ in younger:
        assert not place.is_given_away
    # Now nobody has enough more than another one.
    assert MARGIN == 2
    assert found.admit(connected(stack)[0], "b") is None


def test_users_are_holders_too_and_copies_are_given_to_nobody(stack: ExitStack) -> None:
    found = Connections(3, 3, 3, Log())
    places = [admitted(found, stack, f"address-{number}")[0] for number in range(3)]
    for place in places:
        assert found.is_of(place, 2001)
        assert found.is_of(place, 2001)
    found.keep(places[0])
    _ = admitted(found, stack, "another")
    assert [one.is_given_away for one in places] == [False, True, False]
    assert not found.is_of(places[1], 2001)
    found.keep(places[2])
    assert found.admit(connected(stack)[0], "another") is None


def test_a_user_who_has_all_he_may_have_is_refused_one_more(stack: ExitStack) -> None:
    found = Connections(9, 3, 2, Log())
    places = [admitted(found, stack, OWN)[0] for _ in range(3)]
    assert [found.is_of(one, 2001) for one in places] == [True, True, False]
    assert found.is_of(places[2], 2002)
    for one in places:
        found.leave(one)
    assert len(found) == 0
