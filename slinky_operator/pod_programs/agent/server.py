"""A server for what the operator asks beside slurmctld.

What is mounted, which names in that have an address, which domains SSSD cannot reach, how much room volumes have, and
whether it runs itself.

Plain sockets (`connections`), no keep-alive. The modules of the standard library that do more than this need three
times the memory.

SSSD's container keeps a file in the pod with a line for each domain that is offline: since when, in seconds since 1970,
and its name (`containers/sssd/directory.pl`).
"""

import json
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from slinky_operator.pod_programs.agent.connections import LIMITS, Connections, Limits
from slinky_operator.pod_programs.agent.files import mounted, text_of
from slinky_operator.pod_programs.agent.resolver import Resolver
from slinky_operator.pod_programs.agent.volumes import Volumes

SLURM_CONF: Final = "slurm.conf"

LOOKS: Final = 1.0
"""Seconds that an answer about volumes may wait for a look: the operator asks seldom, and needs what is there now."""


def serve(
    folder: Path,
    port: int,
    *,
    host: str = "",
    ready: Callable[[int], None] | None = None,
    directory: Path | None = None,
    volumes: Mapping[str, Path] | None = None,
    limits: Limits = LIMITS,
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
    volumes
        Mount paths of the volumes whose free space is reported, by name.
    host
        Address to listen on; empty for all, of both families where there are two.
    ready
        Told the port once it listens.
    limits
        What callers may use.
    """
    resolver, rooms = Resolver(), Volumes(volumes) if volumes else None
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    connections = Connections(lambda request: answer(request, folder, resolver, directory, rooms), limits)
    with socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=64) as listener:
        if ready is not None:
            ready(listener.getsockname()[1])
        connections.serve(listener)


def answer(
    request: bytes, folder: Path, resolver: Resolver, directory: Path | None = None, volumes: Volumes | None = None
) -> bytes:
    """Make the whole answer to a request."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    path = words[1].decode("latin-1") if len(words) > 1 and words[0] == b"GET" else ""
    try:
        body = _body(path, folder, resolver, directory, volumes)
    except OSError as error:
        return _response(503, "Service Unavailable", {"error": str(error)})
    if body is None:
        return _response(404, "Not Found", {"error": "ask for /files, /names, /directory, /volumes or /healthz"})
    return _response(200, "OK", body)


def _body(
    path: str, folder: Path, resolver: Resolver, directory: Path | None, volumes: Volumes | None
) -> dict[str, object] | None:
    if path == "/healthz":
        return {}
    if path == "/files":
        return {"files": mounted(folder)}
    if path == "/names":
        return {"names": resolver.names(text_of(folder, SLURM_CONF))}
    if path == "/directory" and directory is not None:
        return {"offline": offline(directory)}
    if path == "/volumes" and volumes is not None:
        return {"volumes": volumes.told(patience=LOOKS)}
    return None


def _response(status: int, words: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + content


LONGEST: Final = 32_768
"""Characters of the file that are read."""


def offline(file: Path) -> dict[str, int]:
    """Return the domains that are offline, each with the time since when.

    Raises
    ------
    OSError
        If there is no such file: SSSD does not run, or its image keeps none.
    """
    found = {}
    with file.open(encoding="ascii", errors="replace") as lines:
        for line in lines.read(LONGEST).splitlines():
            since, _, name = line.partition(" ")
            if name and since.isdecimal():
                found[name] = int(since[:12])
    return found


def main() -> None:
    """Serve until SIGTERM, which the first process of a container ignores unless it has a handler."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    mark = "--volume="
    folder, port, *more = (word for word in sys.argv[1:] if not word.startswith(mark))
    named = (word.removeprefix(mark).partition("=") for word in sys.argv[1:] if word.startswith(mark))
    volumes = {name: Path(path) for name, _, path in named}
    serve(Path(folder), int(port), directory=Path(more[0]) if more else None, volumes=volumes)
