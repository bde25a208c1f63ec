"""Reserved ports: free for their own server at any time, and for nobody else."""

from __future__ import annotations

import errno
import socket

import pytest

from hack.machine import ports


def server(port: int) -> socket.socket:
    """A socket that listens as servers do."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


def knock(port: int) -> int:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port))


def test_held_ports_differ() -> None:
    assert len(set(ports.hold(5))) == 5


def test_a_server_comes_and_goes_on_a_held_port() -> None:
    (port,) = ports.hold(1)
    for _ in range(2):
        assert knock(port) == errno.ECONNREFUSED
        with server(port) as listener:
            assert knock(port) == 0
            accepted, _ = listener.accept()
            accepted.close()


def test_nobody_else_gets_a_held_port() -> None:
    (port,) = ports.hold(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
