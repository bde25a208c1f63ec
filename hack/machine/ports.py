"""Ports of loopback for servers that come and go, held so that nobody else gets them meanwhile.

A port that is merely looked for is anybody's again until its server listens, and each time the server is down: other
processes look for free ones too, and every connection takes one. So each stays bound to a socket that never listens.
Linux lets a server bind beside it as long as both allow addresses to be used again (servers in Go and Python and
Slurm's daemons do), gives the port to nobody who asks for any, and refuses connections while no server is there.
"""

from __future__ import annotations

import socket


def hold(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 on which nothing listens; they are held for as long as this process lives."""
    found = [holder() for _ in range(count)]
    numbers = [int(one.getsockname()[1]) for one in found]
    for one in found:
        # Nobody closes it but the end of the process, which would complain of a socket object that is still open.
        _ = one.detach()
    return numbers


def holder() -> socket.socket:
    """Return a socket that holds a free port until it is closed."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one
