"""The program in a pod that copies: makes the copies of its orders, one after the other, and says what became of each.

What may mend itself (a server that is restarted, a volume that is full) is tried again for some minutes.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from slinky_operator.joblogs import protocol
from slinky_operator.joblogs.copies import orders, permits, places, tree_writer, wire
from slinky_operator.joblogs.copies.events import Events, Stopped, Whole
from slinky_operator.joblogs.copies.orders import Copy, InvalidOrders, Place, Report
from slinky_operator.joblogs.copies.tree_reader import Reader
from slinky_operator.joblogs.copies.tree_writer import PRIVATE, READABLE, Target
from slinky_operator.joblogs.timed_socket import TimedSocket

PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
"""Seconds before each further attempt."""

CONNECT_SECONDS: Final = 10.0
STALLED_SECONDS: Final = 60.0
"""After which a server that neither sends nor takes is given up."""

COPY_SECONDS: Final = 3660.0
"""Within which a copy is complete: a minute more than the server has for it."""

FAILED: Final = 1
PROJECTED: Final = "..data"
"""Link of the kubelet to the files of a ConfigMap or Secret."""

_MAX_LINE: Final = 1024
_MAX_LINES: Final = 64


def run(
    path: Path, said: Path, *, pauses: tuple[float, ...] = PAUSES, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Make all copies, and return the exit code.

    Parameters
    ----------
    path
        The orders.
    said
        Where the reports are written.
    pauses, sleep
        Seconds between attempts, and how to let them pass.
    """
    try:
        wanted = orders.read(path)
    except InvalidOrders as error:
        _say(f"{path}: {error}")
        return FAILED
    reports = [_reported(one, pauses, sleep) for one in wanted]
    try:
        _ = said.write_text(orders.message(reports))
    except OSError as error:
        _say(f"{said}: {error.strerror}")
    return FAILED if any(one.why for one in reports) else 0


def _reported(copy: Copy, pauses: tuple[float, ...], sleep: Callable[[float], None]) -> Report:
    for pause in (*pauses, None):
        try:
            found = once(copy)
        except Stopped as error:
            _say(f"{copy.name}: {error.why}")
            if error.is_final or pause is None:
                return Report(error.why, error.is_final)
            sleep(pause)
        else:
            _say(f"{copy.name}: {found.files} files, {found.size} bytes")
            return Report(
                is_final=True, files=found.files, size=found.size, left_out=found.left_out, example=found.example
            )
    raise AssertionError("the last attempt has ended")


def once(copy: Copy) -> Whole:
    """Make one copy.

    Raises
    ------
    Stopped
        It was not made.
    """
    try:
        if copy.target.url:
            return _sent(copy, _read(copy, copy.source))
        if copy.source.url:
            with _connected(copy.source) as (_, stream):
                return _written(copy, wire.events(stream.read1))
        return _written(copy, _read(copy, copy.source))
    except OSError as error:
        raise Stopped(str(error) or type(error).__name__) from None


def _read(copy: Copy, place: Place) -> Events:
    folder = f"{place.folder}/{PROJECTED}" if place.is_projected else place.folder
    return Reader(copy.limits).events(places.existing(os.path.realpath(folder), places.parts(place.path)))


def _written(copy: Copy, events: Events) -> Whole:
    names = places.parts(copy.target.path)
    modes = PRIVATE if copy.is_private else READABLE
    parent = places.parent(copy.target.folder, names, modes.folder)
    try:
        target = Target(parent, names[-1] if names else "", copy.mark)
        return tree_writer.write(events, target, copy.limits, modes)
    finally:
        os.close(parent)


def _sent(copy: Copy, events: Events) -> Whole:
    with _connected(copy.target) as (connection, stream):
        expected: Whole | None = None
        try:
            for event in events:
                if _may_be_read(connection):
                    # It has an answer before it has everything: the reason of its refusal.
                    break
                connection.sendall(wire.frame(event))
                expected = event if isinstance(event, Whole) else None
        except ConnectionError:
            # Its reason may still be there to be read.
            expected = None
        found = next(wire.events(stream.read1))
        if expected is None or found != expected:
            raise Stopped("the server has not got everything")
        return expected


@contextmanager
def _connected(place: Place) -> Iterator[tuple[socket.socket, BufferedReader]]:
    """Ask a server for a copy, and give its connection.

    Raises
    ------
    Stopped
        It refuses.
    """
    parts = urlsplit(place.url)
    if parts.scheme != "http" or not parts.hostname:
        raise Stopped("the server has no address", is_final=True)
    with TimedSocket.connect_to(
        parts.hostname, parts.port or 80, connecting=CONNECT_SECONDS, idle=STALLED_SECONDS
    ) as connection:
        connection.end_within(STALLED_SECONDS)
        nonce = secrets.token_hex(16)
        connection.sendall(protocol.copy_request(parts.netloc, place.token, nonce))
        with connection.makefile("rb") as stream:
            status, shown = _head(stream)
            if status != HTTPStatus.SWITCHING_PROTOCOLS:
                why = stream.readline(_MAX_LINE).decode(errors="replace").strip()
                if status == HTTPStatus.BAD_REQUEST:
                    why = "the job log server of the node is of an older version: its pod must be replaced"
                is_final = status not in {HTTPStatus.SERVICE_UNAVAILABLE, 0}
                raise Stopped(why or "the server does not answer", is_final=is_final)
            expected = permits.proof(place.proof_key, nonce, str(connection.getpeername()[0]))
            if not hmac.compare_digest(shown.encode(), expected.encode()):
                raise Stopped("what answers there is not the job log server")
            connection.end_within(COPY_SECONDS)
            yield connection, stream


def _head(stream: BufferedReader) -> tuple[int, str]:
    """Read the head of an answer: its status, 0 for what is none, and the proof."""
    words, proof = stream.readline(_MAX_LINE).split(), ""
    for _ in range(_MAX_LINES):
        name, _, value = stream.readline(_MAX_LINE).decode("latin-1").partition(":")
        if not name.strip():
            return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, proof
        if name.strip().lower() == protocol.PROOF.lower():
            proof = value.strip()
    return 0, ""


def _may_be_read(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _say(line: str) -> None:
    print("".join(one if one.isprintable() else "?" for one in line), file=sys.stderr, flush=True)  # noqa: T201
