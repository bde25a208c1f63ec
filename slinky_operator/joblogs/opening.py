"""The process that opens files as the users of jobs, for the process that talks to callers.

It is root, and has the capabilities SETUID and SETGID and no other. It sees no network, and is not asked for a user and
a path but given the caller's token, which it checks itself: anyone who takes over the other process can open nothing
for which there is no token, and does not have the key. Each file is opened by a child that first becomes the user.
A connection for a copy is handed over to such a child (`copies.serving`), which by then has no right but the user's.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from slinky_operator.joblogs import files, tokens
from slinky_operator.joblogs.copies.serving import BEGUN, Copies, Refused
from slinky_operator.joblogs.protocol import MAX_LINE

OPEN_SECONDS: Final = 5
"""Within which a file is opened; a network file system may not answer."""

AT_A_TIME: Final = 16
"""Files that are opened concurrently."""

_OPENED: Final = b"200"


class NotOpened(Exception):
    """There is no file for a token.

    Parameters
    ----------
    status
        The answer to the caller.
    why
        One line.
    """

    def __init__(self, status: HTTPStatus, why: str) -> None:
        self.status = status
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the key is, and below which folders files are served."""

    key: Path
    folders: tuple[str, ...]


class Opener:
    """The side of the process that talks to callers.

    Parameters
    ----------
    channel
        To the process that opens.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._free = threading.BoundedSemaphore(AT_A_TIME)

    def open(self, token: str) -> int:
        """Return a descriptor of the token's file.

        Raises
        ------
        NotOpened
            There is none.
        """
        if len(token) > tokens.MAX_TOKEN:
            raise NotOpened(HTTPStatus.FORBIDDEN, "the token is too long")
        with self._free, self._asked(token) as reply:
            said, found = _said(reply)
        if said == _OPENED and found:
            return found[0]
        raise _refusal(said)

    def copy(self, token: str, nonce: str, connection: socket.socket) -> None:
        """Hand a connection over for the copy of its token, and return when that has ended.

        Raises
        ------
        NotOpened
            There is none; nothing was sent to the caller.
        """
        if len(token) > tokens.MAX_TOKEN:
            raise NotOpened(HTTPStatus.FORBIDDEN, "the token is too long")
        with self._asked(f"{token} {nonce}", connection.fileno()) as reply:
            said, _ = _said(reply)
            if said != BEGUN:
                raise _refusal(said)
            reply.settimeout(None)
            while reply.recv(1):
                # Its process says nothing more: what comes is its end.
                continue

    def _asked(self, token: str, *given: int) -> socket.socket:
        """Send a token to the process that opens, and return where it answers."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._channel, [token.encode()], [theirs.fileno(), *given])
        ours.settimeout(OPEN_SECONDS * 2)
        return ours


def _said(reply: socket.socket) -> tuple[bytes, list[int]]:
    try:
        said, found, _, _ = socket.recv_fds(reply, 2 * MAX_LINE, 1)
    except TimeoutError:
        return b"", []
    return said, found


def _refusal(said: bytes) -> NotOpened:
    if not said:
        return NotOpened(HTTPStatus.SERVICE_UNAVAILABLE, "the file system does not answer")
    status, _, why = said.decode(errors="replace").partition(" ")
    return NotOpened(HTTPStatus(int(status)), why)


def run(
    channel: socket.socket, settings: Settings, *, every: float | None = None, beside: Callable[[], None] | None = None
) -> None:
    """Open files until the other process has ended.

    Parameters
    ----------
    channel
        To the process that talks to callers.
    every, beside
        Seconds after which something else is done too, in a child of its own.
    """
    # Children are reaped by the kernel.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    due = time.monotonic()
    copies = Copies(settings.folders, become)
    while True:
        if every is not None and beside is not None and time.monotonic() >= due:
            _in_child(beside)
            due = time.monotonic() + every
        channel.settimeout(None if every is None else max(0.1, due - time.monotonic()))
        try:
            token, given, _, _ = socket.recv_fds(channel, tokens.MAX_TOKEN + MAX_LINE, 2)
        except TimeoutError:
            # Nobody has asked: the other task is due.
            continue
        if not token and not given:
            return
        if not given:
            continue
        with socket.socket(fileno=given[0]) as reply:
            if len(given) == 1:
                _in_child(lambda reply=reply, token=token: _answer(reply, token, settings))  # type: ignore[misc]
                continue
            with socket.socket(fileno=given[1]) as connection:
                _begin_copy(channel, reply, connection, token, settings, copies)


def _begin_copy(
    channel: socket.socket,
    reply: socket.socket,
    connection: socket.socket,
    token: bytes,
    settings: Settings,
    copies: Copies,
) -> None:
    """Check the token here, since copies of one user are counted, and let a child do the rest."""
    try:
        admitted = copies.admit(token, settings.key)
    except Refused as error:
        _say(reply, error.status, error.why)
        return

    def work() -> None:
        # It lives long: the end of this process must be seen on the channel nevertheless.
        channel.close()
        copies.carry_out(admitted, reply, connection)

    copies.begun(_in_child(work), admitted.permit)


def _in_child(work: Callable[[], None]) -> int:
    if child := os.fork():
        return child
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        code = 0
    finally:
        # Nothing of the parent may run in a child, whatever has happened.
        os._exit(code)


def _answer(reply: socket.socket, token: bytes, settings: Settings) -> None:
    signal.alarm(OPEN_SECONDS)
    try:
        grant = tokens.verify(token.decode("ascii"), settings.key.read_bytes(), now=time.time())
    except (tokens.InvalidToken, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, tokens.InvalidToken) else "the token is not valid here"
        _say(reply, HTTPStatus.FORBIDDEN, why)
        return
    except (tokens.UnusableKey, OSError) as error:
        _say(reply, HTTPStatus.SERVICE_UNAVAILABLE, f"the server has no key: {error}")
        return
    become(grant.uid, grant.gids)
    try:
        opened = files.open_for(grant.uid, grant.path, settings.folders)
    except FileNotFoundError:
        _say(reply, HTTPStatus.NOT_FOUND, f"job {grant.job} has no file {grant.path}")
    except (files.Refused, PermissionError) as error:
        why = str(error) if isinstance(error, files.Refused) else f"uid {grant.uid} may not read it"
        _say(reply, HTTPStatus.FORBIDDEN, f"file {grant.path} of job {grant.job} is not served: {why}")
    except OSError as error:
        _say(reply, HTTPStatus.SERVICE_UNAVAILABLE, f"file {grant.path} of job {grant.job}: {error.strerror}")
    else:
        socket.send_fds(reply, [_OPENED], [opened])


def become(uid: int, gids: Sequence[int]) -> None:
    """Turn this process into one of a user, for good."""
    os.setgroups(list(gids))
    os.setresgid(gids[0], gids[0], gids[0])
    os.setresuid(uid, uid, uid)


def _say(reply: socket.socket, status: HTTPStatus, why: str) -> None:
    reply.send(f"{status.value} {why}".encode(errors="replace")[: 2 * MAX_LINE])
