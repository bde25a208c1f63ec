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
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from slinky_operator.pod_programs.joblogs import files, tokens
from slinky_operator.pod_programs.joblogs.copies.serving import BEGUN, Copies, Refused
from slinky_operator.pod_programs.joblogs.copies.shares import Shares
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.protocol import MAX_LINE
from slinky_operator.pod_programs.joblogs.server.openings import TooMany, Turns, Users
from slinky_operator.pod_programs.joblogs.tokens import Grant

OPEN_SECONDS: Final = 5
"""Within which a file is opened; a network file system may not answer."""

PAUSE: Final = 0.05
"""Seconds until a file is asked for again whose user has too many that are being opened."""

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
        self._turns = Turns()

    def open(self, token: str, caller: str) -> int:
        """Return a descriptor of the token's file.

        Parameters
        ----------
        caller
            Whom the opening counts to.

        Raises
        ------
        NotOpened
            There is none.
        """
        if len(token) > tokens.MAX_TOKEN:
            raise NotOpened(HTTPStatus.FORBIDDEN, "the token is too long")
        until = time.monotonic() + OPEN_SECONDS * 2
        while True:
            try:
                with self._turns.turn(caller, until), self._asked(token) as reply:
                    said, found = _said(reply)
            except TooMany:
                words = "too many files are being opened for this address"
                raise NotOpened(HTTPStatus.SERVICE_UNAVAILABLE, words) from None
            if said == _OPENED and found:
                return found[0]
            refusal = _refusal(said)
            if refusal.status is not HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() + PAUSE >= until:
                raise refusal
            # Without a turn, which others may have meanwhile.
            time.sleep(PAUSE)

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
    channel: socket.socket,
    settings: Settings,
    log: Log,
    *,
    every: float | None = None,
    beside: Callable[[], None] | None = None,
) -> None:
    """Open files until the other process has ended.

    Parameters
    ----------
    channel
        To the process that talks to callers.
    log
        For what fails that should not.
    every, beside
        Seconds after which something else is done too, in a child of its own.
    """
    # Children are reaped by the kernel.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    due = time.monotonic()
    opening = _Opening(channel, settings, log, Copies(settings.folders, become, Shares(log)))
    while True:
        if every is not None and beside is not None and time.monotonic() >= due:
            opening.tend(beside)
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
                opening.open(reply, token)
                continue
            with socket.socket(fileno=given[1]) as connection:
                opening.copy(reply, token, connection)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Checks tokens, and has children do what they permit: what has no token is worth no process."""

    channel: socket.socket
    settings: Settings
    log: Log
    copies: Copies
    users: Users = field(default_factory=Users)

    def open(self, reply: socket.socket, token: bytes) -> None:
        """Open the file of a token."""
        try:
            grant = _granted(token, self.settings.key)
            self._admit(grant.uid)
            self.users.begun(self._in_child(lambda: _answer(reply, grant, self.settings)), grant.uid)
        except NotOpened as error:
            self._refuse(reply, error.status, error.why)

    def _admit(self, uid: int) -> None:
        if not self.users.may_open(uid):
            why = f"the file system has yet to answer for other files of uid {uid}"
            raise NotOpened(HTTPStatus.TOO_MANY_REQUESTS, why)

    def copy(self, reply: socket.socket, token: bytes, connection: socket.socket) -> None:
        """Begin the copy of a token."""
        try:
            admitted = self.copies.admit(token, self.settings.key)
        except Refused as error:
            self._refuse(reply, error.status, error.why)
            return

        def work() -> None:
            # It lives long: the end of this process must be seen on the channel nevertheless.
            self.channel.close()
            try:
                self.copies.carry_out(admitted, reply, connection)
            except (ConnectionError, TimeoutError) as error:
                # Callers come and go; a copy that is not complete is asked for again.
                self.log(f"a copy for job {admitted.permit.job} has ended early: {error}")

        try:
            self.copies.shares.begun(self._in_child(work), admitted.permit.uid, admitted.slot)
        except NotOpened as error:
            self._refuse(reply, error.status, error.why)

    def tend(self, work: Callable[[], None]) -> None:
        """Do something else."""
        try:
            self._in_child(work)
        except NotOpened as error:
            self.log(f"{error.why}; tried again later")

    def _refuse(self, reply: socket.socket, status: HTTPStatus, why: str) -> None:
        try:
            _say(reply, status, why)
        except OSError as error:
            # The other process has waited long enough.
            self.log(f"nobody waits for an answer any more: {error}")

    def _in_child(self, work: Callable[[], None]) -> int:
        try:
            child = os.fork()
        except OSError as error:
            why = f"the server cannot start a process: {error.strerror}"
            raise NotOpened(HTTPStatus.SERVICE_UNAVAILABLE, why) from None
        if child:
            return child
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.users.close()
            work()
            code = 0
        except Exception:  # noqa: BLE001 - the parent does not wait for it, so nobody else would say it
            self.log.fault("a process of the server has failed")
        finally:
            # Nothing of the parent may run in a child, whatever has happened.
            os._exit(code)


def _granted(token: bytes, key: Path) -> Grant:
    try:
        return tokens.verify(token.decode("ascii"), key.read_bytes(), now=time.time())
    except (tokens.InvalidToken, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, tokens.InvalidToken) else "the token is not valid here"
        raise NotOpened(HTTPStatus.FORBIDDEN, why) from None
    except (tokens.UnusableKey, OSError) as error:
        raise NotOpened(HTTPStatus.SERVICE_UNAVAILABLE, f"the server has no key: {error}") from None


def _answer(reply: socket.socket, grant: Grant, settings: Settings) -> None:
    signal.alarm(OPEN_SECONDS)
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
