"""Messages of Slurm's own protocol that are signed with a key of auth/slurm, and the first bytes of their answers.

For what no API shows: what a daemon has read, and what runs on a node. A message has the form of 24.11; each release
takes those of the three before, so 26.05 does. Its token is a JSON Web Token with claims of Slurm's own, bound to the
kind of message; it lasts an hour, since clocks may differ. What is asked, and what an answer means, is left to others.
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
from typing import Any, Final

LONGEST_TOKEN: Final = 3072
"""Bytes of a token in an answer."""

VERSION: Final = 42 << 8
"""Of the protocol: 24.11."""

RESPONSE_RC: Final = 8001
AUTHENTICATION_ERROR: Final = 1007

_AUTH_SLURM: Final = 103
_NO_AUTH: Final = 1 << 6
_LIFE: Final = 3600
_ANYBODY: Final = 0xFFFF_FFFF
_IPV4, _IPV6, _NO_ADDRESS = 2, 10, 0
_HEADER: Final = "!HHHIHHH"
_LENGTH: Final = 4


class NotUnderstood(Exception):
    """An answer that no daemon of Slurm gives; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class SharedKey:
    """One key of auth/slurm."""

    kid: str
    """Its id in a key set; empty for a key that is in none."""

    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """What comes before the body of an answer, and the body."""

    kind: int
    token: bytes = field(repr=False)
    """Empty if the answer is not signed."""

    body: bytes


def message(
    kind: int, key: SharedKey, uid: int, wall: float, *, flags: int = 0, body: bytes = b"", first: bytes = b""
) -> bytes:
    """Build a message that is signed with a key.

    Parameters
    ----------
    uid
        For whom it asks.
    wall
        Seconds since 1970.
    first
        What comes before its header.
    """
    header = struct.pack(_HEADER, VERSION, flags, kind, len(body), 0, 0, 0)
    signed = token(key, kind, uid, wall)
    text = first + header + struct.pack("!II", _AUTH_SLURM, len(signed) + 1) + signed + b"\0" + body
    return struct.pack("!I", len(text)) + text


def token(key: SharedKey, kind: int, uid: int, wall: float) -> bytes:
    """A token that is bound to a kind of message.

    Parameters
    ----------
    uid
        For whom it asks.
    wall
        Seconds since 1970.
    """
    # Instead of a digest of the body it has the kind of message (Slurm's hash "none"), to which it is bound.
    payload = base64.b64encode(b"\x01" + struct.pack("!H", kind)).decode()
    now = int(wall)
    claims = {
        "iat": now,
        "exp": now + _LIFE,
        "ver": VERSION,
        "ruid": _ANYBODY,
        "context": "auth",
        "host": "slurm-operator",
        "uid": uid,
        "gid": uid,
        "payload": payload,
    }
    head = {"alg": "HS256", "typ": "JWT", **({"kid": key.kid} if key.kid else {})}
    text = b".".join(_base64url(json.dumps(one).encode()) for one in (head, claims))
    return text + b"." + _base64url(hmac.new(key.value, text, hashlib.sha256).digest())


def read(answer: bytes) -> SignedAnswer:
    """Take an answer apart.

    Raises
    ------
    NotUnderstood
        No daemon of Slurm answers so.
    """
    try:
        _, flags, kind, _, forwarded, returned, family = struct.unpack_from(_HEADER, answer, _LENGTH)
        start = _LENGTH + struct.calcsize(_HEADER) + {_NO_ADDRESS: 0, _IPV4: 6, _IPV6: 22}[family]
        if forwarded or returned:
            raise NotUnderstood("it is of several daemons")
        if flags & _NO_AUTH:
            return SignedAnswer(kind, b"", answer[start:])
        plugin, length = struct.unpack_from("!II", answer, start)
    except (struct.error, KeyError) as error:
        raise NotUnderstood("it is no message of Slurm") from error
    if plugin != _AUTH_SLURM or not 1 < length <= LONGEST_TOKEN:
        raise NotUnderstood("it has no token of auth/slurm")
    token = answer[start + 8 : start + 8 + length - 1]
    if len(token) != length - 1:
        raise NotUnderstood("it ends within its token")
    return SignedAnswer(kind, token, answer[start + 8 + length :])


async def exchange(host: str, port: int, text: bytes, longest: int) -> bytes:
    """Send a message, and return what comes of the answer, up to a limit.

    Raises
    ------
    OSError
        The daemon cannot be reached.
    ValueError
        Its address cannot be used.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=longest)
    try:
        writer.write(text)
        await writer.drain()
        found = b""
        while len(found) < longest:
            if len(found) >= _LENGTH and len(found) - _LENGTH >= int.from_bytes(found[:_LENGTH], "big"):
                break
            chunk = await reader.read(longest - len(found))
            if not chunk:
                break
            found += chunk
        return found
    finally:
        writer.close()
        # Nothing is left to be said; a peer that has gone changes nothing.
        with suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), 1.0)


def key_id(token: bytes) -> str:
    """Id of the key that a token says it is signed with; empty if it says none.

    Raises
    ------
    NotUnderstood
        It is no token.
    """
    kid = _part(token, 0).get("kid")
    return kid if isinstance(kid, str) else ""


def is_signed(token: bytes, key: SharedKey) -> bool:
    """Whether a token is signed with this very key."""
    text, _, signature = token.rpartition(b".")
    return bool(text) and hmac.compare_digest(_base64url(hmac.new(key.value, text, hashlib.sha256).digest()), signature)


def _part(token: bytes, index: int) -> dict[str, Any]:
    part = token.split(b".", 2)[index]
    try:
        found = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (ValueError, RecursionError) as error:
        raise NotUnderstood("its token has no header") from error
    return found if isinstance(found, dict) else {}


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
