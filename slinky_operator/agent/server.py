"""A server for what the operator asks beside slurmctld.

What is mounted, which names in that have an address, which domains SSSD cannot reach, and whether it runs itself.

Plain sockets: one question at a time, each with its own time limit, no keep-alive. The modules of the standard library
that do more than this need three times the memory.
"""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from slinky_operator.agent.directory import offline
from slinky_operator.agent.files import mounted, text_of
from slinky_operator.agent.resolver import Resolver

SLURM_CONF: Final = "slurm.conf"

PATIENCE: Final = 2.0
"""Seconds one caller may take."""

LONGEST: Final = 4096
"""Bytes of a request that are read."""


def serve(
    folder: Path,
    port: int,
    *,
    host: str = "",
    ready: Callable[[int], None] | None = None,
    directory: Path | None = None,
) -> None:
    """Answer requests until cancelled.

    Parameters
    ----------
    folder
        What is looked at.
    port
        Port to listen on; 0 for any.
    directory
        The file that SSSD's container keeps; none without SSSD.
    host
        Address to listen on; empty for all, of both families where there are two.
    ready
        Told the port once it listens.
    """
    resolver = Resolver()
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=16) as listener:
        if ready is not None:
            ready(listener.getsockname()[1])
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE)
                try:
                    connection.sendall(answer(_request(connection), folder, resolver, directory))
                except OSError:
                    # The caller has gone, or takes too long; the next one is served.
                    continue


def _request(connection: socket.socket) -> bytes:
    read = b""
    while b"\r\n\r\n" not in read and len(read) < LONGEST:
        chunk = connection.recv(LONGEST)
        if not chunk:
            break
        read += chunk
    return read


def answer(request: bytes, folder: Path, resolver: Resolver, directory: Path | None = None) -> bytes:
    """Make the whole answer to a request."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    path = words[1].decode("latin-1") if len(words) > 1 and words[0] == b"GET" else ""
    try:
        body = _body(path, folder, resolver, directory)
    except OSError as error:
        return _response(503, "Service Unavailable", {"error": str(error)})
    if body is None:
        return _response(404, "Not Found", {"error": "ask for /files, /names, /directory or /healthz"})
    return _response(200, "OK", body)


def _body(path: str, folder: Path, resolver: Resolver, directory: Path | None) -> dict[str, object] | None:
    if path == "/healthz":
        return {}
    if path == "/files":
        return {"files": mounted(folder)}
    if path == "/names":
        return {"names": resolver.names(text_of(folder, SLURM_CONF))}
    if path == "/directory" and directory is not None:
        return {"offline": offline(directory)}
    return None


def _response(status: int, words: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + content
