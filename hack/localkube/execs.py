"""Run a command in a container as ``kubectl exec`` does, without the process of a tenth of a second of a processor.

What the API server refuses is left to kubectl, and so are containers that it has to choose, commands that read, and
terminals.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from hack.localkube.api_server import ApiServer
from hack.localkube.commands import LeftToKubectl

PROTOCOL: Final = "v5.channel.k8s.io"
STDOUT, STDERR, ERROR = 1, 2, 3
"""Channels: the first byte of each message."""
PIECE: Final = 65536
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_LAST: Final = 0x80
_SHORTEST: Final = 2
_LONGER: Final = {126: 2, 127: 8}
"""Bytes that say how long a frame is, by what stands where a shorter one has its length."""


class Failed(Exception):
    """The command ended with an error, or its container did; the text is what kubectl would print."""


@dataclass(frozen=True, slots=True)
class Exec:
    """A command and where it runs."""

    namespace: str
    pod: str
    container: str
    argv: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path and the parameters of the request."""
        about = [("stdout", "true"), ("stderr", "true"), *(("command", word) for word in self.argv)]
        chosen = [("container", self.container)] if self.container else []
        return f"/api/v1/namespaces/{self.namespace}/pods/{quote(self.pod)}/exec?{urlencode([*chosen, *about])}"


def read(arguments: Sequence[str]) -> Exec | None:
    """Return what arguments of kubectl run in a container; nothing if they say more than is understood here."""
    if "--" not in arguments:
        return None
    end = list(arguments).index("--")
    words, options, rest = list[str](), {"--namespace": "default", "--container": ""}, iter(arguments[:end])
    for argument in rest:
        name, has_value, value = argument.partition("=")
        name = {"-n": "--namespace", "-c": "--container"}.get(name, name)
        if not argument.startswith("-"):
            words.append(argument)
        elif name in options:
            options[name] = value if has_value else next(rest, "")
        else:
            return None
    verb, _, pod = " ".join(words).partition(" ")
    if verb != "exec" or not pod or {" ", "/"} & {*pod}:
        return None
    return Exec(options["--namespace"], pod, options["--container"], tuple(arguments[end + 1 :]))


def run(server: ApiServer, wanted: Exec, timeout: float) -> str:
    """Run a command, and return what it printed.

    Raises
    ------
    Failed
        It ended with an error.
    LeftToKubectl
        It was not begun.
    OSError
        The API server cannot be reached.
    TimeoutError
        It has not ended in time.
    """
    deadline = time.monotonic() + timeout
    stream = _open(server, wanted, timeout)
    try:
        printed, status = _read(stream, deadline)
    finally:
        stream.close()
    if status.get("status") == "Success":
        return printed[STDOUT].decode(errors="replace")
    causes = (status.get("details") or {}).get("causes") or ()
    code = next((one["message"] for one in causes if one.get("reason") == "ExitCode"), "")
    ended = f"command terminated with exit code {code}" if code else status.get("message", "the connection has ended")
    raise Failed(printed[STDERR].decode(errors="replace") + ended)


def _open(server: ApiServer, wanted: Exec, timeout: float) -> socket.socket:
    """Ask for a stream, and return it."""
    connection = server.connection(timeout)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": PROTOCOL,
    }
    try:
        connection.request("GET", wanted.path, headers=headers)
        # Not by the connection, which would read on: what follows the headers are messages.
        head = b""
        while not head.endswith(b"\r\n\r\n") and (piece := connection.sock.recv(1)):
            head += piece
    except BaseException:
        connection.close()
        raise
    if head.split()[1:2] != [str(HTTPStatus.SWITCHING_PROTOCOLS.value).encode()]:
        connection.close()
        raise LeftToKubectl
    return connection.sock


def _read(stream: socket.socket, deadline: float) -> tuple[dict[int, bytes], dict[str, Any]]:
    """Read until the command has ended; return what it printed by channel, and how it ended."""
    printed, status = {STDOUT: bytearray(), STDERR: bytearray(), ERROR: bytearray()}, dict[str, Any]()
    for kind, message in _messages(stream, deadline):
        if kind == _PING:
            stream.sendall(_masked(_PONG, message))
        elif kind == _CLOSE:
            break
        elif message and message[0] in printed:
            printed[message[0]] += message[1:]
    if printed[ERROR]:
        status = json.loads(printed[ERROR])
    return {channel: bytes(text) for channel, text in printed.items()}, status


def _messages(stream: socket.socket, deadline: float) -> Iterator[tuple[int, bytes]]:
    """Yield the messages of a server with their kinds, until it ends the connection."""
    buffered, kind, whole = bytearray(), 0, b""
    while True:
        frame = _frame(buffered)
        if frame is None:
            stream.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                piece = stream.recv(PIECE)
            except ConnectionError:
                # Without a status before it, the command counts as failed.
                return
            if not piece:
                return
            buffered += piece
            continue
        first, content, length = frame
        del buffered[:length]
        if first & 0x0F >= _CLOSE:
            yield first & 0x0F, content
            continue
        kind, whole = first & 0x0F or kind, whole + content
        if first & _LAST:
            yield kind, whole
            whole = b""


def _frame(buffered: bytearray) -> tuple[int, bytes, int] | None:
    """Return the first byte and the content of the frame that is first, and its length; None if it is not all there."""
    begin = _SHORTEST
    if len(buffered) < begin:
        return None
    length = buffered[1] & 0x7F
    if length in _LONGER:
        begin += _LONGER[length]
        length = int.from_bytes(buffered[_SHORTEST:begin], "big")
    end = begin + length
    return (buffered[0], bytes(buffered[begin:end]), end) if len(buffered) >= end else None


def _masked(kind: int, content: bytes) -> bytes:
    """Return a frame of a client, which has to mask what it sends; control frames are short."""
    mask = os.urandom(4)
    covered = bytes(byte ^ mask[place % 4] for place, byte in enumerate(content))
    return struct.pack("!BB", _LAST | kind, 0x80 | len(content)) + mask + covered
