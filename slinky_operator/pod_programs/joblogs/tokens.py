"""Tokens: what lets somebody read one file of one job, as one user, until a given time.

A token is signed (HMAC-SHA256) with a key that only the operator and the servers of a Cluster have, so that servers
keep no list of jobs, and a job that runs again elsewhere needs no other token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

MIN_KEY_BYTES: Final = 32
MAX_KEY_BYTES: Final = 4096

MAX_TOKEN: Final = 16384
"""Characters of a token."""

MAX_GROUPS: Final = 512
MAX_PATH: Final = 4095
MAX_ID: Final = 2**32 - 2
"""Highest uid and gid; the next one means "unchanged" to the kernel."""

_PURPOSE: Final = b"slurm-operator job output 1\0"
FIELDS: Final = frozenset({"job", "uid", "gids", "path", "expires"})


class InvalidToken(Exception):
    """A token gives no access; the text says why, and tells nothing about the key."""


class UnusableKey(Exception):
    """A key is too short to sign with, or not a key."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token permits.

    Parameters
    ----------
    job
        Slurm's job id, for messages.
    uid, gids
        As whom the file is opened; the first group is the primary one.
    path
        Absolute path in slurmd's container.
    expires
        Seconds since the epoch.
    """

    job: str
    uid: int
    gids: tuple[int, ...]
    path: str
    expires: int


def sign(grant: Grant, key: bytes) -> str:
    """Make a token.

    Raises
    ------
    UnusableKey
        The key is too short or too long.
    ValueError
        No server would accept such a grant.
    """
    _check_key(key)
    why = why_not(asdict(grant))
    if why:
        raise ValueError(why)
    return seal(asdict(grant), key, _PURPOSE)


def verify(token: str, key: bytes, *, now: float) -> Grant:
    """Check a token.

    Raises
    ------
    InvalidToken
        It is not a token, was signed with another key, has expired, or permits what no server does.
    UnusableKey
        The key is too short or too long.
    """
    found = unseal(token, key, _PURPOSE)
    why = why_not(found)
    if why:
        raise InvalidToken(why)
    grant = Grant(found["job"], found["uid"], tuple(found["gids"]), found["path"], found["expires"])
    if now >= grant.expires:
        raise InvalidToken("the token has expired")
    return grant


def seal(body: Mapping[str, Any], key: bytes, purpose: bytes) -> str:
    """Sign what a token says, for one purpose: a token for another one is not valid in its place.

    Raises
    ------
    UnusableKey
        The key is too short or too long.
    ValueError
        It is too much.
    """
    _check_key(key)
    payload = _encoded(json.dumps(body, separators=(",", ":")).encode())
    token = f"{payload}.{_signature(payload, key, purpose)}"
    if len(token) > MAX_TOKEN:
        raise ValueError(f"the token has more than {MAX_TOKEN} characters")
    return token


def unseal(token: str, key: bytes, purpose: bytes) -> Any:
    """Read what was signed for a purpose.

    Raises
    ------
    InvalidToken
        It was not.
    UnusableKey
        The key is too short or too long.
    """
    _check_key(key)
    payload, _, signature = token.partition(".")
    wanted = _signature(payload, key, purpose)
    if len(token) > MAX_TOKEN or not hmac.compare_digest(wanted.encode(), signature.encode()):
        raise InvalidToken("the token is not valid here")
    try:
        return json.loads(base64.b64decode(payload + "=" * (-len(payload) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise InvalidToken("the token is not valid here") from None


def _check_key(key: bytes) -> None:
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise UnusableKey(f"the key has {len(key)} bytes, and needs {MIN_KEY_BYTES} to {MAX_KEY_BYTES}")


def _signature(payload: str, key: bytes, purpose: bytes) -> str:
    return _encoded(hmac.digest(key, purpose + payload.encode(), hashlib.sha256))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def why_not(found: Any) -> str:
    """Say what is wrong with the content of a token; nothing if it can be used."""
    if not isinstance(found, dict) or set(found) != FIELDS:
        return "the token has other fields"
    gids, path = found["gids"], found["path"]
    if not _is_id(found["uid"]) or found["uid"] == 0:
        return "the token names no user, or root, whose files are not served"
    if not isinstance(gids, list | tuple) or not 1 <= len(gids) <= MAX_GROUPS or not all(map(_is_id, gids)):
        return f"the token needs 1 to {MAX_GROUPS} groups"
    if not isinstance(path, str) or not path.startswith("/") or not 1 < len(path.encode()) <= MAX_PATH or "\0" in path:
        return "the token names no absolute path"
    if not isinstance(found["job"], str) or not isinstance(found["expires"], int):
        return "the token names no job, or no end"
    return ""


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID
