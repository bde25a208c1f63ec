"""Makes a JWT for a Slurm user, and reads one back.

Format: Slurm's auth/jwt, HS256 with the content of ``jwt.key``, the user in the claim ``sun``, ``iat`` and ``exp`` in
seconds since 1970 (https://slurm.schedmd.com/jwt.html).
"""

from __future__ import annotations

import base64
import binascii
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import jwt

ALGORITHM: Final = "HS256"


class UnusableKey(Exception):
    """A key that no token can be signed with; the text says why, and never contains the key."""


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


def make(claims: Claims, key: bytes) -> str:
    """Sign a token.

    Raises
    ------
    UnusableKey
        The key cannot be used for HS256, for example because it is a public key.
    """
    said = {"sun": claims.username, "iat": int(claims.issued.timestamp()), "exp": int(claims.expires.timestamp())}
    try:
        with warnings.catch_warnings():
            # A short key is the user's own, and slurmctld takes it.
            warnings.simplefilter("ignore")
            return jwt.encode(said, key, algorithm=ALGORITHM)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise UnusableKey(str(error) or type(error).__name__) from error


def read(token: bytes, key: bytes) -> Claims | None:
    """Read a token that was signed with a key, whether it has ended or not; None if it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False},
            )
        return Claims(str(said["sun"]), _time(said["iat"]), _time(said["exp"]))
    except (jwt.PyJWTError, KeyError, ValueError, TypeError, OverflowError, OSError, RecursionError):
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
