"""Callers of the agent that are slow, or many: each has a share and an end, and the others are served meanwhile."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

import pytest

from slinky_operator.pod_programs.agent.connections import LONGEST, Connections, Limits

pytestmark = pytest.mark.timeout(120)

FOR_EVER = 3600.0
PEERS = [f"127.0.0.{number}" for number in range(2, 60)]
GET = b"GET /files HTTP/1.1\r\n\r\n"


class Agent:
    """An agent that answers with what the test says; use it as a context."""

    def __init__(self, limits: Limits, answer: Callable[[bytes], bytes] = lambda _: b"answer") -> None:
        self.asked: queue.Queue[bytes] = queue.Queue()
        self._limits, self._answer = limits, answer
        self._open = ExitStack()

    def __enter__(self) -> Self:
        listener = self._open.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        self.port: int = listener.getsockname()[1]
        threading.Thread(target=Connections(self._told, self._limits).serve, args=(listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _told(self, request: bytes) -> bytes:
        self.asked.put(request)
        return self._answer(request)

    def call(self, peer: str = PEERS[-1], sends: bytes = b"") -> socket.socket:
        """Open a connection from an address."""
        connection = socket.create_connection(("127.0.0.1", self.port), source_address=(peer, 0))
        self._open.enter_context(connection)
        connection.sendall(sends)
        return connection

    def is_served(self, peer: str = PEERS[-1]) -> bool:
        return all_of(self.call(peer, GET)) == b"answer"


def all_of(connection: socket.socket) -> bytes:
    """All that comes until the agent ends the connection."""
    read = bytearray()
    try:
        while piece := connection.recv(65536):
            read += piece
    except ConnectionResetError:
        # It was ended with something of ours unread.
        return bytes(read)
    return bytes(read)


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_callers_that_say_nothing_hold_up_nobody() -> None:
    with Agent(Limits(seconds=FOR_EVER)) as agent:
        silent = [agent.call(peer, sends=b"GET") for peer in PEERS[:20]]
        assert agent.is_served()
        assert all(is_open(one) for one in silent)


@pytest.mark.parametrize("sends", [b"", b"G"])
def test_a_caller_has_an_end_however_little_it_sends_at_a_time(sends: bytes) -> None:
    with Agent(Limits(seconds=3.0)) as agent:
        caller = agent.call()
        pause = threading.Event()
        try:
            while sends and is_open(caller):
                caller.sendall(sends)
                pause.wait(0.01)
        except (ConnectionResetError, BrokenPipeError):
            # It is over.
            assert agent.asked.empty()
        caller.settimeout(None)
        assert all_of(caller) == b""
        assert agent.is_served()


def test_an_address_has_a_share_and_its_oldest_connection_gives_way() -> None:
    with Agent(Limits(per_peer=3, seconds=FOR_EVER)) as agent:
        other = agent.call(PEERS[1])
        first, *more = [agent.call(PEERS[0]) for _ in range(4)]
        assert all_of(first) == b""
        assert all(is_open(one) for one in (other, *more))
        # Its newest one is served all the same.
        assert agent.is_served(PEERS[0])


def test_of_too_many_the_oldest_of_the_address_with_most_gives_way() -> None:
    with Agent(Limits(connections=8, per_peer=4, seconds=FOR_EVER)) as agent:
        others = [agent.call(peer) for peer in PEERS[:5]]
        greedy = [agent.call(PEERS[9]) for _ in range(3)]
        assert agent.is_served()
        assert all_of(greedy[0]) == b""
        assert all(is_open(one) for one in (*others, *greedy[1:]))


def test_a_new_caller_is_served_whatever_the_number_of_addresses() -> None:
    with Agent(Limits(connections=8, seconds=FOR_EVER)) as agent:
        callers = [agent.call(peer) for peer in PEERS[:40]]
        assert agent.is_served()
        for one in callers[:32]:
            assert all_of(one) == b""


def test_answers_that_are_not_read_have_a_bound_together() -> None:
    # More than the kernel takes, which counts as read.
    size = 32 * 2**20
    body = b"x" * size
    with Agent(Limits(seconds=FOR_EVER, unread=3 * size), lambda _: body) as agent:
        lazy = [agent.call(PEERS[0], GET) for _ in range(3)]
        for _ in lazy:
            agent.asked.get()
        reader = agent.call(PEERS[1], GET)
        sizes: list[int] = []
        reading = threading.Thread(target=lambda: sizes.append(len(all_of(reader))))
        reading.start()
        agent.asked.get()
        also = agent.call(PEERS[2], GET)
        agent.asked.get()
        assert len(all_of(also)) == size
        reading.join()
        assert sizes == [size]
        assert len(all_of(lazy[0])) < size


def test_a_request_without_an_end_is_answered_when_it_is_too_long_or_the_caller_has_said_all() -> None:
    with Agent(Limits(seconds=FOR_EVER)) as agent:
        assert all_of(agent.call(sends=b"x" * LONGEST)) == b"answer"
        short = agent.call(sends=b"GET")
        short.shutdown(socket.SHUT_WR)
        assert all_of(short) == b"answer"
        assert [agent.asked.get() for _ in range(2)] == [b"x" * LONGEST, b"GET"]


def test_callers_that_go_leave_nothing() -> None:
    with Agent(Limits(connections=4, per_peer=4, seconds=FOR_EVER)) as agent:
        stays = agent.call(PEERS[0])
        for _ in range(100):
            agent.call(PEERS[1], GET).close()
        assert agent.is_served(PEERS[1])
        assert is_open(stays)
