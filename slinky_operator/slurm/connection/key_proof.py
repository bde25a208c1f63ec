"""Asks one daemon of Slurm whether it has a key of auth/slurm: by a message that is signed with the key.

Nothing else proves it: no API shows what a kubelet has mounted, and what a daemon has read of that. Each daemon answers
one of these messages, and changes nothing for it:

==========  ==========================  ========================================================================
daemon      message                     answer to a key that it has
==========  ==========================  ========================================================================
slurmctld   `REQUEST_PING`              a code, unsigned: the key that slurmctld itself signs with does not show
slurmd      `REQUEST_PING`              signed with its own default key
slurmdbd    `REQUEST_PERSIST_INIT`      a code, unsigned
sackd       the token alone             by the program beside it (`agent.sack`), which also tells the default key
==========  ==========================  ========================================================================

The answer to a key that a daemon does not have, or that has expired, is an error (`SLURM_PROTOCOL_AUTHENTICATION_ERROR`
or any of slurmdbd); slurmd of 24.11 closes the connection without a word. sackd itself answers nobody over the network,
but each process of its pod at its socket.

The token is bound to its kind of message, which changes nothing, and names no user, so that a stolen one gives
no rights; slurmd signs what it answers to a ping of SlurmUser only. It lasts an hour, since clocks may differ.
Messages have the form of 24.11; each release takes those of the three before, so 26.05 does. Measured with both
(`tests/integration/slurm_conf/test_key_proof.py`).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from slinky_operator.slurm.naming import NOBODY, SLURM_UID

TIMEOUT: Final = 3.0
"""Seconds for one question, all in all."""

LONGEST_ANSWER: Final = 4096
"""Bytes of an answer that are read: header and token come first."""

LONGEST_TOKEN: Final = 3072
"""Bytes of a token in an answer."""

_VERSION: Final = 42 << 8
_AUTH_SLURM: Final = 103
_NO_AUTH: Final = 1 << 6
_TO_SLURMDBD: Final = 1 << 1
_PERSIST_RC: Final = 1433
_RESPONSE_RC: Final = 8001
_AUTHENTICATION_ERROR: Final = 1007
_LIFE: Final = 3600
_ANYBODY: Final = 0xFFFF_FFFF
_IPV4, _IPV6, _NO_ADDRESS = 2, 10, 0


class Daemon(Enum):
    """Which daemon is asked."""

    SLURMCTLD = auto()
    SLURMD = auto()
    SLURMDBD = auto()
    SACKD = auto()


_MESSAGES: Final = {Daemon.SLURMCTLD: 1008, Daemon.SLURMD: 1008, Daemon.SLURMDBD: 6500, Daemon.SACKD: 1008}


@dataclass(frozen=True, slots=True)
class SharedKey:
    """One key of a key set."""

    kid: str
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeySet:
    """A key set as daemons that have it answer."""

    id: str
    """Distinguishes it from others, with the keys that have expired, and discloses none."""

    default: str
    """Id of the key that they sign with."""

    live: tuple[SharedKey, ...] = field(repr=False)
    expired: tuple[SharedKey, ...] = field(default=(), repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the keys that have not expired, the default first."""
        return (self.default, *(one.kid for one in self.live if one.kid != self.default))


@dataclass(frozen=True, slots=True)
class Holder:
    """A daemon that is asked."""

    id: str
    """Distinguishes it from a successor of the same name."""

    name: str
    """For people."""

    daemon: Daemon
    host: str
    port: int
    elsewhere: bool = False
    """Whether an administrator may vouch for it."""

    reloads: bool = True
    """Whether it reads its keys when slurmctld reconfigures."""


class Verdict(Enum):
    """Whether a daemon has a key."""

    ACCEPTED = auto()
    REFUSED = auto()
    SILENT = auto()
    """It has closed the connection without a word: refused by slurmd of 24.11, or it is just starting again."""

    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a daemon has answered."""

    verdict: Verdict
    signs_with: str = ""
    """Id of the key that it signs with; empty if it does not show that."""

    why: str = ""
    """Why nothing is known."""


class NotUnderstood(Exception):
    """An answer that no daemon of Slurm gives; the text says what is wrong with it."""


def request(daemon: Daemon, key: SharedKey, wall: float) -> bytes:
    """Build the question, signed with a key.

    Parameters
    ----------
    wall
        Seconds since 1970.
    """
    kind, flags, body, first = _MESSAGES[daemon], 0, b"", b""
    if daemon is Daemon.SLURMDBD:
        # Type of connection 1, of a client without a port that slurmdbd could call back.
        flags, first, body = _TO_SLURMDBD, struct.pack("!H", kind), struct.pack("!HIHH", _VERSION, 0, 1, 0)
    if daemon is Daemon.SACKD:
        return b"GET /verify/" + _token(key, kind, NOBODY, wall) + b" HTTP/1.1\r\n\r\n"
    header = struct.pack("!HHHIHHH", _VERSION, flags, kind, len(body), 0, 0, 0)
    token = _token(key, kind, SLURM_UID if daemon is Daemon.SLURMD else NOBODY, wall)
    message = first + header + struct.pack("!II", _AUTH_SLURM, len(token) + 1) + token + b"\0" + body
    return struct.pack("!I", len(message)) + message


def understood(daemon: Daemon, answer: bytes) -> Answer:
    """Read the first bytes of what a daemon has answered; nothing at all is the answer to a key that it does not have.

    Raises
    ------
    NotUnderstood
        This is no answer of that daemon.
    """
    if not answer:
        return Answer(Verdict.SILENT)
    try:
        if daemon is Daemon.SLURMDBD:
            return _of_slurmdbd(answer)
        if daemon is Daemon.SACKD:
            return _of_sackd(answer)
        _, flags, kind, _, forwarded, returned, family = struct.unpack_from("!HHHIHHH", answer, 4)
        start = 4 + struct.calcsize("!HHHIHHH") + {_NO_ADDRESS: 0, _IPV4: 6, _IPV6: 22}[family]
        if forwarded or returned:
            raise NotUnderstood("it is of several daemons")
        if flags & _NO_AUTH:
            error = kind == _RESPONSE_RC and struct.unpack_from("!I", answer, start)[0] == _AUTHENTICATION_ERROR
            return Answer(Verdict.REFUSED if error else Verdict.ACCEPTED)
        plugin, length = struct.unpack_from("!II", answer, start)
        if plugin != _AUTH_SLURM or not 1 < length <= LONGEST_TOKEN:
            raise NotUnderstood("it has no token of auth/slurm")
        token = answer[start + 8 : start + 8 + length - 1]
        if len(token) != length - 1:
            raise NotUnderstood("it ends within its token")
        return Answer(Verdict.ACCEPTED, _key_id(token))
    except (struct.error, KeyError) as error:
        raise NotUnderstood("it is no message of Slurm") from error


async def ask(daemon: Daemon, host: str, port: int, key: SharedKey, wall: float, patience: float = TIMEOUT) -> Answer:
    """Ask one daemon; one that does not answer in time, or not as Slurm does, has proven nothing.

    Parameters
    ----------
    patience
        Seconds, all in all.
    """
    try:
        async with asyncio.timeout(patience):
            return understood(daemon, await _exchange(host, port, request(daemon, key, wall)))
    except TimeoutError:
        return Answer(Verdict.UNKNOWN, why=f"no answer within {patience:g} s")
    except NotUnderstood as error:
        return Answer(Verdict.UNKNOWN, why=f"an answer that is not understood: {error}")
    except OSError as error:
        return Answer(Verdict.UNKNOWN, why=error.strerror or type(error).__name__)
    except ValueError as error:
        return Answer(Verdict.UNKNOWN, why=f"its address cannot be used: {error}")


async def _exchange(host: str, port: int, message: bytes) -> bytes:
    """Send a message, and return what comes of the answer, up to a limit."""
    reader, writer = await asyncio.open_connection(host, port, limit=LONGEST_ANSWER)
    try:
        writer.write(message)
        await writer.drain()
        read = b""
        while len(read) < LONGEST_ANSWER:
            if len(read) >= 4 and len(read) - 4 >= int.from_bytes(read[:4], "big"):  # noqa: PLR2004 - its own length
                break
            chunk = await reader.read(LONGEST_ANSWER - len(read))
            if not chunk:
                break
            read += chunk
        return read
    finally:
        writer.close()
        # Nothing is left to be said; a peer that has gone changes nothing.
        with suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), 1.0)


def _of_slurmdbd(answer: bytes) -> Answer:
    kind, length = struct.unpack_from("!HI", answer, 4)
    if kind != _PERSIST_RC or length > LONGEST_ANSWER:
        raise NotUnderstood("it is no code of slurmdbd")
    _, code = struct.unpack_from("!HI", answer, 10 + length)
    return Answer(Verdict.REFUSED if code else Verdict.ACCEPTED)


def _of_sackd(answer: bytes) -> Answer:
    """By the program beside sackd, in a pod that users of Slurm log in to."""
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood("it is no JSON") from error
    if head.split(b" ", 2)[1:2] != [b"200"] or not isinstance(said, dict):
        why = said.get("error") if isinstance(said, dict) else None
        return Answer(Verdict.UNKNOWN, why=why if isinstance(why, str) else "an answer that is not understood")
    accepted, kid = said.get("accepted"), said.get("signsWith")
    if not isinstance(accepted, bool) or not isinstance(kid, str):
        raise NotUnderstood("it does not say what sackd takes")
    return Answer(Verdict.ACCEPTED, kid) if accepted else Answer(Verdict.REFUSED)


def _token(key: SharedKey, kind: int, uid: int, wall: float) -> bytes:
    """A token of auth/slurm: a JSON Web Token with claims of Slurm's own."""
    # Instead of a digest of the body it has the kind of message (Slurm's hash "none"), to which it is bound.
    payload = base64.b64encode(b"\x01" + struct.pack("!H", kind)).decode()
    now = int(wall)
    claims = {
        "iat": now,
        "exp": now + _LIFE,
        "ver": _VERSION,
        "ruid": _ANYBODY,
        "context": "auth",
        "host": "slurm-operator",
        "uid": uid,
        "gid": uid,
        "payload": payload,
    }
    head = {"alg": "HS256", "typ": "JWT", "kid": key.kid}
    text = b".".join(_base64url(json.dumps(one).encode()) for one in (head, claims))
    return text + b"." + _base64url(hmac.new(key.value, text, hashlib.sha256).digest())


def _key_id(token: bytes) -> str:
    head = token.split(b".", 1)[0]
    try:
        found = json.loads(base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4)))
    except (ValueError, RecursionError) as error:
        raise NotUnderstood("its token has no header") from error
    kid = found.get("kid") if isinstance(found, dict) else None
    return kid if isinstance(kid, str) else ""


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
