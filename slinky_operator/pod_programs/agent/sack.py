"""``python -m slinky_operator.agent.sack SOCKET PORT``: asks the sackd of a login pod whether it takes a token.

sackd answers nobody over the network: it takes pushed configurations, and closes the connection whatever it makes of
them. Its own socket, at which commands of users have messages signed and checked, shows what keys it has: it checks a
token that is signed with a key, and signs with its default. This program stands beside it and passes the operator's
question on. It has no key and returns no token that sackd signs, only the id of the key.

``GET /verify/TOKEN`` is answered with ``accepted`` and ``signsWith``. Slurm's formats are those of 24.11 and 26.05.
"""

import base64
import json
import re
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from slinky_operator.pod_programs.agent.connections import LIMITS, Connections, Limits

SECONDS: Final = 1.0
"""For one answer of sackd, which is on the same machine."""

LONGEST: Final = 4096
"""Bytes of a token that sackd signs."""

_PATH: Final = re.compile(rb"GET /verify/([A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+) HTTP/1\.[01]\r\n")
_VERSION: Final = 42 << 8
_CREATE, _VERIFY = 64_001, 64_002
_ANYBODY: Final = 0xFFFF_FFFF
_NOTHING: Final = b"\x01\x03\xf0"
"""What the token is bound to that sackd signs: a message that asks for nothing."""


class SackdError(Exception):
    """sackd does not answer, or not as sackd does; the text says what is wrong."""


def serve(
    path: Path, port: int, *, host: str = "", ready: Callable[[int], None] | None = None, limits: Limits = LIMITS
) -> None:
    """Answer requests until cancelled.

    Parameters
    ----------
    path
        The socket of sackd.
    port
        Port to listen on; 0 for any.
    host
        Address to listen on; empty for all.
    ready
        Told the port once it listens.
    limits
        What callers may use.
    """
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=64) as listener:
        if ready is not None:
            ready(listener.getsockname()[1])
        Connections(lambda request: answer(request, path), limits).serve(listener)


def answer(request: bytes, path: Path) -> bytes:
    """Make the whole answer to a request."""
    asked = _PATH.match(request)
    if asked is None:
        return _response(404, "Not Found", {"error": "ask for /verify/TOKEN"})
    try:
        return _response(200, "OK", {"accepted": verifies(path, asked[1]), "signsWith": signs_with(path)})
    except SackdError as error:
        return _response(503, "Service Unavailable", {"error": str(error)})


def verifies(path: Path, token: bytes) -> bool:
    """Whether sackd has the key of a token; 26.05 says nothing to one that it does not have.

    Raises
    ------
    SackdError
        It does not answer.
    """
    return _exchange(path, _VERIFY, _packed(token + b"\0")) == struct.pack("!I", 0)


def signs_with(path: Path) -> str:
    """Id of the key that sackd signs with.

    Raises
    ------
    SackdError
        It does not answer, or not as sackd does.
    """
    said = _exchange(path, _CREATE, struct.pack("!I", _ANYBODY) + _packed(_NOTHING))
    head = said[4:].split(b".", 1)[0]
    try:
        found = json.loads(base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4)))
    except (ValueError, RecursionError) as error:
        raise SackdError("what sackd signs is no token") from error
    kid = found.get("kid") if isinstance(found, dict) else None
    if not isinstance(kid, str):
        raise SackdError("what sackd signs names no key")
    return kid


def _exchange(path: Path, kind: int, body: bytes) -> bytes:
    message = struct.pack("!HII", _VERSION, 8 + len(body), kind) + body
    said = b""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            until = time.monotonic() + SECONDS
            connection.settimeout(SECONDS)
            connection.connect(str(path))
            connection.sendall(message)
            while len(said) < LONGEST:
                connection.settimeout(max(0.001, until - time.monotonic()))
                chunk = connection.recv(LONGEST - len(said))
                if not chunk:
                    break
                said += chunk
    except OSError as error:
        raise SackdError(f"sackd does not answer: {error.strerror or error}") from error
    return said


def _packed(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def _response(status: int, words: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {words}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def main() -> None:
    """Serve until SIGTERM, which the first process of a container ignores unless it has a handler."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    path, port = sys.argv[1:]
    serve(Path(path), int(port))
