"""The program in a pod that copies: makes the copies of its orders, one after the other, and says what became of each.

What may mend itself (a server that is restarted, a volume that is full) is tried again for some minutes. A server that
has no place for another copy is waited for, which does not count as an attempt. Each copy has a deadline for all of it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.copies import orders, permits, places, tree_writer, wire
from slinky_operator.pod_programs.joblogs.copies.events import Events, Stopped, Whole
from slinky_operator.pod_programs.joblogs.copies.orders import Copy, InvalidOrders, Place, Report
from slinky_operator.pod_programs.joblogs.copies.pace import COPY_SECONDS, Line, Pace
from slinky_operator.pod_programs.joblogs.copies.tree_reader import Reader
from slinky_operator.pod_programs.joblogs.copies.tree_writer import PRIVATE, READABLE, Target
from slinky_operator.pod_programs.joblogs.timed_socket import TimedSocket

PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
"""Seconds before each further attempt."""

CONNECT_SECONDS: Final = 10.0
STALLED_SECONDS: Final = 60.0
"""After which a server that neither sends nor takes is given up."""

ITEM_SECONDS: Final = 7200.0
"""After which a copy is not tried again, and no place is waited for any more."""

FAILED: Final = 1
PROJECTED: Final = "..data"
"""Link of the kubelet to the files of a ConfigMap or Secret."""

_MAX_LINE: Final = 1024
_MAX_LINES: Final = 64


class Busy(Stopped):
    """The server has no place for another copy now."""


@dataclass(frozen=True, slots=True)
class Time:
    """How time passes.

    Parameters
    ----------
    clock
        Monotonic seconds.
    sleep
        Lets some pass.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def run(path: Path, said: Path, *, pauses: tuple[float, ...] = PAUSES, passing: Time = Time()) -> int:
    """Make all copies, and return the exit code.

    Parameters
    ----------
    path
        The orders.
    said
        Where the reports are written.
    pauses
        Seconds between attempts.
    passing
        How time passes.
    """
    try:
        wanted = orders.read(path)
    except InvalidOrders as error:
        _say(f"{path}: {error}")
        return FAILED
    reports = [_reported(one, pauses, passing) for one in wanted]
    try:
        _ = said.write_text(orders.message(reports))
    except OSError as error:
        _say(f"{said}: {error.strerror}")
    return FAILED if any(report.why for report in reports) else 0


def _reported(copy: Copy, pauses: tuple[float, ...], passing: Time) -> Report:
    until, attempts, waited = passing.clock() + ITEM_SECONDS, iter(pauses), False
    while True:
        try:
            found = once(copy, min(COPY_SECONDS, until - passing.clock()))
        except Stopped as error:
            pause = protocol.RETRY_SECONDS if isinstance(error, Busy) else next(attempts, None)
            if not (waited and isinstance(error, Busy)):
                _say(f"{copy.name}: {error.why}")
            waited = isinstance(error, Busy)
            if error.is_final or pause is None or passing.clock() + pause >= until:
                return Report(error.why, error.is_final)
            passing.sleep(pause)
        else:
            _say(f"{copy.name}: {found.files} files, {found.size} bytes")
            return Report(
                is_final=True, files=found.files, size=found.size, left_out=found.left_out, example=found.example
            )


def once(copy: Copy, seconds: float = COPY_SECONDS) -> Whole:
    """Make one copy, within a time.

    Raises
    ------
    Stopped
        It was not made.
    """
    pace = Pace(seconds)
    try:
        if copy.target.url:
            return _sent(copy, _read(copy, copy.source), pace)
        if copy.source.url:
            with _connected(copy.source, pace) as line:
                return _written(copy, pace.events(wire.events(line.receive)))
        return _written(copy, pace.events(_read(copy, copy.source), is_local=True))
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


def _sent(copy: Copy, events: Events, pace: Pace) -> Whole:
    with _connected(copy.target, pace) as line:
        expected: Whole | None = None
        try:
            for event in pace.events(events):
                if line.may_be_read():
                    # It has an answer before it has everything: the reason of its refusal.
                    break
                line.send(wire.frame(event))
                expected = event if isinstance(event, Whole) else None
        except ConnectionError:
            # Its reason may still be there to be read.
            expected = None
        found = next(wire.events(line.receive))
        if expected is None or found != expected:
            raise Stopped("the server has not got everything")
        return expected


@contextmanager
def _connected(place: Place, pace: Pace) -> Iterator[Line]:
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
            status, fields = _head(stream)
            if status != HTTPStatus.SWITCHING_PROTOCOLS:
                why = stream.readline(_MAX_LINE).decode(errors="replace").strip()
                if status == HTTPStatus.BAD_REQUEST:
                    why = "the job log server of the node is of an older version: its pod must be replaced"
                if protocol.RETRY.lower() in fields:
                    raise Busy(why)
                is_final = status not in {HTTPStatus.SERVICE_UNAVAILABLE, 0}
                raise Stopped(why or "the server does not answer", is_final=is_final)
            shown = fields.get(protocol.PROOF.lower(), "")
            expected = permits.proof(place.proof_key, nonce, str(connection.getpeername()[0]))
            if not hmac.compare_digest(shown.encode(), expected.encode()):
                raise Stopped("what answers there is not the job log server")
            # A minute more than the server has for it.
            connection.end_within(COPY_SECONDS + STALLED_SECONDS)
            yield Line(connection, stream.read1, pace, STALLED_SECONDS)


def _head(stream: BufferedReader) -> tuple[int, dict[str, str]]:
    """Read the head of an answer: its status, 0 for what is none, and its fields."""
    words, fields = stream.readline(_MAX_LINE).split(), dict[str, str]()
    for _ in range(_MAX_LINES):
        name, _, value = stream.readline(_MAX_LINE).decode("latin-1").partition(":")
        if not name.strip():
            return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, fields
        fields[name.strip().lower()] = value.strip()
    return 0, fields


def _say(line: str) -> None:
    print("".join(one if one.isprintable() else "?" for one in line), file=sys.stderr, flush=True)  # noqa: T201
