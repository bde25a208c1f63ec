"""Tokens for copies: each lets somebody read, or write, one file or folder, as one user, until a given time.

They are signed with the same key as tokens for output, for another purpose: neither is valid in the place of the other.
A job may listen where the server did while that is being restarted. So the server proves that it has the key, for this
connection, before anything of a copy is sent or believed.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from slinky_operator.pod_programs.joblogs import tokens
from slinky_operator.pod_programs.joblogs.copies.events import Limits
from slinky_operator.pod_programs.joblogs.tokens import InvalidToken

MAX_SIZE: Final = 2**50
MAX_ENTRIES: Final = 1_000_000

_PURPOSE: Final = b"slurm-operator job files 1\0"
_SERVER: Final = b"slurm-operator job files server 1\0"
_MARK: Final = re.compile(r"[0-9a-z-]{1,64}", re.ASCII)
_FIELDS: Final = frozenset({"job", "uid", "gids", "path", "expires", "writes", "mark", "max_bytes", "max_entries"})


@dataclass(frozen=True, slots=True)
class Permit:
    """What a token permits.

    Parameters
    ----------
    job
        For messages.
    uid, gids
        As whom files are read or written; the first group is the primary one.
    path
        Absolute path in slurmd's container.
    expires
        Seconds since the epoch.
    writes
        Whether it is written, not read.
    mark
        Tells copies to the same folder apart.
    max_bytes, max_entries
        What the copy may have.
    """

    job: str
    uid: int
    gids: tuple[int, ...]
    path: str
    expires: int
    writes: bool
    mark: str
    max_bytes: int
    max_entries: int

    @property
    def limits(self) -> Limits:
        """What the copy may have."""
        return Limits(self.max_bytes, self.max_entries)


def sign(permit: Permit, key: bytes) -> str:
    """Make a token.

    Raises
    ------
    UnusableKey
        The key is too short or too long.
    ValueError
        No server would accept such a permit.
    """
    body = asdict(permit)
    why = _why_not(body)
    if why:
        raise ValueError(why)
    return tokens.seal(body, key, _PURPOSE)


def verify(token: str, key: bytes, *, now: float) -> Permit:
    """Check a token.

    Raises
    ------
    InvalidToken
        It is not a token, was signed with another key, has expired, or permits what no server does.
    UnusableKey
        The key is too short or too long.
    """
    found = tokens.unseal(token, key, _PURPOSE)
    why = _why_not(found)
    if why:
        raise InvalidToken(why)
    permit = Permit(**{**found, "gids": tuple(found["gids"])})
    if now >= permit.expires:
        raise InvalidToken("the token has expired")
    return permit


def proof_key(token: str, key: bytes) -> str:
    """What a server's proofs for a token are made with; the pod that copies gets it beside the token."""
    return hmac.digest(key, _SERVER + token.encode(), hashlib.sha256).hex()


def proof(known: str, nonce: str, address: str) -> str:
    """What a server answers.

    Parameters
    ----------
    known
        See `proof_key`.
    nonce
        Of the caller, for this connection.
    address
        That of the server as both sides of the connection see it: nobody can pass on another server's answer.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return hmac.digest(known.encode(), f"{nonce} {mapped or found}".encode(), hashlib.sha256).hex()


def _why_not(found: Any) -> str:
    if not isinstance(found, dict) or set(found) != _FIELDS:
        return "the token has other fields"
    why = tokens.why_not({name: found[name] for name in tokens.FIELDS})
    if why:
        return why
    if (
        not isinstance(found["writes"], bool)
        or not isinstance(found["mark"], str)
        or not _MARK.fullmatch(found["mark"])
    ):
        return "the token does not say what is copied"
    for name, most in (("max_bytes", MAX_SIZE), ("max_entries", MAX_ENTRIES)):
        if not isinstance(found[name], int) or isinstance(found[name], bool) or not 1 <= found[name] <= most:
            return "the token has no limits"
    return ""
