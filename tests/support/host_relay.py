"""Lets an API server's proxy of Services reach a server on loopback: it refuses loopback addresses itself."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from typing_extensions import override


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    target = 0


class _Connection(socketserver.BaseRequestHandler):
    @override
    def handle(self) -> None:
        assert isinstance(self.server, _Relay)
        with socket.create_connection(("127.0.0.1", self.server.target)) as other:
            back = threading.Thread(target=_copy, args=(other, self.request), daemon=True)
            back.start()
            _copy(self.request, other)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One of them has gone; the other copy ends with it.
        return


def address() -> str:
    """An address of this machine that is not loopback. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@contextmanager
def relay(port: int) -> Iterator[tuple[str, int]]:
    """Pass on connections to a port on loopback; yields the address and port at which they are taken."""
    here = address()
    with _Relay((here, 0), _Connection) as server:
        server.target = port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield here, server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
