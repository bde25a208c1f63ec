"""Copies beside slurmd: each in a process of its own, which becomes the user of the job before it touches a file."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.copies import permits, places, tree_writer, wire
from slinky_operator.pod_programs.joblogs.copies.events import Stopped
from slinky_operator.pod_programs.joblogs.copies.pace import COPY_SECONDS, Line, Pace
from slinky_operator.pod_programs.joblogs.copies.permits import Permit
from slinky_operator.pod_programs.joblogs.copies.shares import Shares
from slinky_operator.pod_programs.joblogs.copies.tree_reader import Reader
from slinky_operator.pod_programs.joblogs.copies.tree_writer import PRIVATE, Target
from slinky_operator.pod_programs.joblogs.tokens import InvalidToken, UnusableKey

BEGUN: Final = b"101"

OPEN_SECONDS: Final = 5
"""Within which a place is opened; a network file system may not answer."""

STALLED_SECONDS: Final = 20.0
"""After which a caller that neither sends nor takes is given up."""

DRAIN_SECONDS: Final = 5.0
"""For which what a caller still sends is thrown away, so that he can read why it was refused."""

_UMASK: Final = 0o022


class Refused(Exception):
    """There is no copy; the text says why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        self.status = status
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A copy that is made.

    Parameters
    ----------
    permit
        What its token permits.
    proof_key, nonce
        What the proof for the caller is made of.
    slot
        Where its progress is noted.
    """

    permit: Permit
    proof_key: str = field(repr=False)
    nonce: str
    slot: int


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of one server.

    Parameters
    ----------
    folders
        Those below which files are.
    become
        Turns a process into one of a user, for good.
    shares
        Who may begin one.
    """

    folders: Sequence[str]
    become: Callable[[int, Sequence[int]], None]
    shares: Shares

    def admit(self, asked: bytes, key: Path) -> Admitted:
        """Check a token with its nonce, and whether its user may have one copy more.

        Raises
        ------
        Refused
            There is no copy.
        """
        token, _, nonce = asked.decode("ascii", errors="replace").partition(" ")
        try:
            secret = key.read_bytes()
            permit = permits.verify(token, secret, now=time.time())
        except InvalidToken as error:
            raise Refused(HTTPStatus.FORBIDDEN, str(error)) from None
        except (UnusableKey, OSError) as error:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"the server has no key: {error}") from None
        slot = self.shares.admit(permit.uid)
        if slot is None:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "other copies are under way here")
        return Admitted(permit, permits.proof_key(token, secret), nonce, slot)

    def carry_out(self, admitted: Admitted, reply: socket.socket, connection: socket.socket) -> None:
        """Become the user, and copy; the calling process ends afterwards."""
        permit = admitted.permit
        self.shares.close()
        signal.alarm(OPEN_SECONDS)
        self.become(permit.uid, permit.gids)
        _ = os.umask(_UMASK)
        try:
            folder, names = self._place(permit.path)
            if permit.writes:
                opened = places.parent(folder, names, PRIVATE.folder, permit.uid)
            else:
                opened = places.existing(folder, names, permit.uid)
        except Stopped as error:
            status = HTTPStatus.FORBIDDEN if error.is_final else HTTPStatus.SERVICE_UNAVAILABLE
            words = f"{status.value} {permit.path} of job {permit.job} is not copied: {error.why}"
            reply.send(words.encode(errors="replace")[: 2 * protocol.MAX_LINE])
            return
        # A file system that does not answer is left to the alarm, everything else to the pace.
        signal.alarm(int(COPY_SECONDS + STALLED_SECONDS))
        reply.send(BEGUN)
        pace = Pace(note=partial(self.shares.note, admitted.slot))
        line = Line(connection, connection.recv, pace, STALLED_SECONDS)
        address = str(connection.getsockname()[0])
        line.send(protocol.turned(permits.proof(admitted.proof_key, admitted.nonce, address)))
        try:
            if permit.writes:
                target = Target(opened, names[-1], permit.mark, permit.uid)
                found = tree_writer.write(pace.events(wire.events(line.receive)), target, permit.limits, PRIVATE)
                line.send(wire.frame(found))
            else:
                for event in pace.events(Reader(permit.limits).events(opened)):
                    line.send(wire.frame(event))
        except Stopped as error:
            connection.settimeout(STALLED_SECONDS)
            connection.sendall(wire.stopped(error))
            _drain(connection)

    def _place(self, path: str) -> tuple[str, tuple[str, ...]]:
        folder = next((one for one in self.folders if path.startswith(one.rstrip("/") + "/")), None)
        if folder is None:
            raise Stopped(f"only files below {', '.join(self.folders)} are copied", is_final=True)
        names = places.parts(path[len(folder.rstrip("/")) + 1 :])
        if not names:
            raise Stopped("the folder itself is not copied", is_final=True)
        return folder, names


def _drain(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    until = time.monotonic() + DRAIN_SECONDS
    while (left := until - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            if not connection.recv(65536):
                return
        except TimeoutError:
            return
