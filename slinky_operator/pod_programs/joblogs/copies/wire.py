"""Events on a connection: a letter, a length, and so many bytes. Whatever comes is bounded, and checked by its reader.

A side that stops says why in a frame of its own, so that the other one knows whether to try again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final

from slinky_operator.pod_programs.joblogs.copies.events import (
    PIECE,
    Data,
    Event,
    Events,
    File,
    FileEnd,
    Folder,
    Stopped,
    Whole,
)

MAX_HEADER: Final = 32 * 1024
"""Bytes of a frame without content; a path may take six for each of its own."""

MAX_WHY: Final = 300

_HEAD: Final = struct.Struct("!cI")
_DATA: Final = b"D"
_LETTERS: Final[dict[type[Any], bytes]] = {Folder: b"d", File: b"f", FileEnd: b"e", Whole: b"w"}
_STOPPED: Final = b"s"
_MAX_NUMBER: Final = 2**63 - 1
_UNKNOWN: Final = "the other side does not speak as it should"


class Broken(Stopped):
    """What comes is not what the other side of this program sends."""


def frame(event: Event) -> bytes:
    """Write an event."""
    body: list[Any]
    match event:
        case Data(content):
            return _HEAD.pack(_DATA, len(content)) + content
        case Folder(path):
            body = [path]
        case File(path, is_executable):
            body = [path, is_executable]
        case FileEnd(digest):
            body = [digest]
        case Whole(files, size, left_out, example):
            body = [files, size, left_out, example]
    return _framed(_LETTERS[type(event)], body)


def stopped(why: Stopped) -> bytes:
    """Write why this side has stopped."""
    return _framed(_STOPPED, [why.why[:MAX_WHY], why.is_final])


def _framed(letter: bytes, body: list[Any]) -> bytes:
    content = json.dumps(body).encode()
    return _HEAD.pack(letter, len(content)) + content


def events(receive: Callable[[int], bytes]) -> Events:
    """Read events, up to `Whole`.

    Parameters
    ----------
    receive
        Gives at most so many bytes, and none at the end of the connection.

    Raises
    ------
    Stopped
        The other side has stopped, or the connection has ended.
    """
    while True:
        letter, length = _HEAD.unpack(_exactly(receive, _HEAD.size))
        if length > (PIECE if letter == _DATA else MAX_HEADER):
            raise Broken(_UNKNOWN)
        event = _event(letter, _exactly(receive, length))
        yield event
        if isinstance(event, Whole):
            return


def _exactly(receive: Callable[[int], bytes], count: int) -> bytes:
    pieces: list[bytes] = []
    while count:
        try:
            piece = receive(count)
        except OSError as error:
            raise Broken(f"the connection has failed: {error}") from None
        if not piece:
            raise Broken("the connection has ended before the copy was whole")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _event(letter: bytes, content: bytes) -> Event:
    if letter == _DATA:
        return Data(content)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Broken(_UNKNOWN) from error
    match letter, body:
        case b"d", [str(path)]:
            return Folder(path)
        case b"f", [str(path), bool(is_executable)]:
            return File(path, is_executable)
        case b"e", [str(digest)]:
            return FileEnd(digest)
        case b"w", [int(files), int(size), int(left_out), str(example)] if all(
            0 <= number <= _MAX_NUMBER for number in (files, size, left_out)
        ):
            return Whole(files, size, left_out, example[:MAX_WHY])
        case b"s", [str(why), bool(is_final)]:
            raise Stopped(_line(why), is_final=is_final)
        case _:
            raise Broken(_UNKNOWN)


def _line(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:MAX_WHY]
