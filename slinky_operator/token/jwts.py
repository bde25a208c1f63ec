"""Makes a JWT for a Slurm user, and reads one back.

Format: Slurm's auth/jwt, the user in the claim ``sun``, ``iat`` and ``exp`` in seconds since 1970
(https://slurm.schedmd.com/jwt.html). What it is signed with is in `slurm.tokens.signing_keys`.
"""

from __future__ import annotations

import base64
import binascii
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from slinky_operator.slurm.tokens.signing_keys import SigningKey, UnusableKey, sign, verify


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says."""

    username: str
    issued: datetime
    expires: datetime

    @property
    def life(self) -> timedelta:
        """From its making to its end."""
        return self.expires - self.issued


def make(claims: Claims, key: SigningKey) -> str:
    """Sign a token.

    Raises
    ------
    UnusableKey
        The key cannot sign, for example because it is a public one.
    """
    issued, expires = (int(one.timestamp()) for one in (claims.issued, claims.expires))
    with warnings.catch_warnings():
        # A short key is the user's own, and slurmctld takes it.
        warnings.simplefilter("ignore")
        return sign({"sun": claims.username, "iat": issued, "exp": expires}, key)


def read(token: bytes, key: SigningKey) -> Claims | None:
    """Read a token that was signed with a key, whether it has ended or not; None if it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = verify(token, key)
        return Claims(str(said["sun"]), _time(said["iat"]), _time(said["exp"]))
    except (UnusableKey, KeyError, ValueError, TypeError, OverflowError, OSError):
        return None


def _time(value: object) -> datetime:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(type(value).__name__)
    return datetime.fromtimestamp(value, UTC)


def decoded(value: str) -> bytes:
    """A value of a Secret; empty if it is no base64."""
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
