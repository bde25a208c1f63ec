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
no rights; slurmd signs what it answers to a ping of SlurmUser only. The form of messages is in `signed_messages`.
Measured with both releases (`tests/integration/slurm_conf/test_key_proof.py`).
"""

from __future__ import annotations

import asyncio
import json
import struct
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from slinky_operator.slurm.connection import signed_messages
from slinky_operator.slurm.connection.signed_messages import NotUnderstood, SharedKey
from slinky_operator.slurm.naming import NOBODY, SLURM_UID

TIMEOUT: Final = 3.0
"""Seconds for one question, all in all."""

LONGEST_ANSWER: Final = 4096
"""Bytes of an answer that are read: header and token come first."""

_TO_SLURMDBD: Final = 1 << 1
_PERSIST_RC: Final = 1433


class Daemon(Enum):
    """Which daemon is asked."""

    SLURMCTLD = auto()
    SLURMD = auto()
    SLURMDBD = auto()
    SACKD = auto()


_MESSAGES: Final = {Daemon.SLURMCTLD: 1008, Daemon.SLURMD: 1008, Daemon.SLURMDBD: 6500, Daemon.SACKD: 1008}


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
        version = signed_messages.VERSION
        flags, first, body = _TO_SLURMDBD, struct.pack("!H", kind), struct.pack("!HIHH", version, 0, 1, 0)
    if daemon is Daemon.SACKD:
        return b"GET /verify/" + signed_messages.token(key, kind, NOBODY, wall) + b" HTTP/1.1\r\n\r\n"
    uid = SLURM_UID if daemon is Daemon.SLURMD else NOBODY
    return signed_messages.message(kind, key, uid, wall, flags=flags, body=body, first=first)


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
        found = signed_messages.read(answer)
        if found.token:
            return Answer(Verdict.ACCEPTED, signed_messages.key_id(found.token))
        code = struct.unpack_from("!I", found.body)[0] if found.kind == signed_messages.RESPONSE_RC else 0
        return Answer(Verdict.REFUSED if code == signed_messages.AUTHENTICATION_ERROR else Verdict.ACCEPTED)
    except struct.error as error:
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
            question = request(daemon, key, wall)
            return understood(daemon, await signed_messages.exchange(host, port, question, LONGEST_ANSWER))
    except TimeoutError:
        return Answer(Verdict.UNKNOWN, why=f"no answer within {patience:g} s")
    except NotUnderstood as error:
        return Answer(Verdict.UNKNOWN, why=f"an answer that is not understood: {error}")
    except OSError as error:
        return Answer(Verdict.UNKNOWN, why=error.strerror or type(error).__name__)
    except ValueError as error:
        return Answer(Verdict.UNKNOWN, why=f"its address cannot be used: {error}")


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
