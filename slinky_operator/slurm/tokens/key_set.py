"""The public keys by which slurmctld and slurmdbd check RS256 tokens: a JSON Web Key Set (RFC 7517), ``jwks=``.

The daemons never read what a user wrote. What a key set of a user's has is read here, and the set for the daemons is
rewritten, of what Slurm needs and nothing else: a daemon that finds anything wrong in its file ends. Measured with
slurmctld of 24.11 and 26.05:

- it ends on a key without an id, even one of a kind that it would not use; on one without ``n`` or ``e``, or with one
  that is no base64 (24.11 without a word); on a file that is no JSON, is empty, or that everybody may write to;
- 24.11 does not use a key without ``"alg": "RS256"``; both use the first of two keys with the same id only;
- a file without any usable key is taken, and every RS256 token refused; keys of 1024 to 8192 bits work;
- ``jwt_key=`` and ``jwks=`` may be given together: tokens of both kinds are taken. With ``jwks=`` alone HS256 ends;
- slurmctld reads both at each start and at each reconfigure, and uses them 0.1 s later; calls meanwhile wait, and none
  fails. slurmdbd reads them when it starts, and does not know a key that slurmctld has got since.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.slurm.tokens.signing_keys import RS256, SMALLEST_BITS, PublicKey

FILE: Final = "jwt.jwks"
"""Name of the file beside slurm.conf."""

MOST_KEYS: Final = 32
"""Keys in a set of a user's."""

LONGEST: Final = 100_000
"""Characters of a set of a user's."""

BIGGEST_BITS: Final = 8192

_KID: Final = re.compile(r"[!#-\[\]-~]{1,128}", re.ASCII)
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+=*", re.ASCII)
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_BIGGEST_EXPONENT: Final = 2**32
_SHOWN: Final = 48


class UnusableKeySet(Exception):
    """A key set that is not given to the daemons; the text says why."""


def read(text: str) -> tuple[PublicKey, ...]:
    """The keys of a user's set that Slurm can use, in their order; those for other purposes are left out.

    Raises
    ------
    UnusableKeySet
        It is no key set, has no key for RS256, or one of those cannot be used.
    """
    if len(text) > LONGEST:
        raise UnusableKeySet(f"it has {len(text)} characters, and may have {LONGEST}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableKeySet("it is not JSON") from error
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise UnusableKeySet('it is not a JSON Web Key Set: {"keys": [...]}')
    if len(listed) > MOST_KEYS:
        raise UnusableKeySet(f"it has {len(listed)} keys, and may have {MOST_KEYS}")
    if any(not _PRIVATE.isdisjoint(one) for one in listed):
        raise UnusableKeySet("it has a private or secret key, which is known to others now: give public keys only")
    keys = tuple(_key(index, one) for index, one in enumerate(listed) if _is_meant(one))
    if not keys:
        raise UnusableKeySet("it has no RSA key for RS256 signatures, and Slurm takes no others")
    twice = next((one.kid for index, one in enumerate(keys) if one.kid in {other.kid for other in keys[:index]}), None)
    if twice is not None:
        raise UnusableKeySet(f"it has two keys with the id {_short(twice)}")
    return keys


def render(keys: Iterable[PublicKey]) -> str:
    """Write the file for the daemons; empty for no keys."""
    listed = [{"kty": "RSA", "alg": RS256, "use": "sig", "kid": one.kid, "n": one.n, "e": one.e} for one in keys]
    return json.dumps({"keys": listed}, indent=1) + "\n" if listed else ""


def has(text: str, key: PublicKey) -> bool:
    """Whether a file for the daemons has a key."""
    try:
        listed = json.loads(text)["keys"] if text else []
        return any((one["kid"], one["n"], one["e"]) == (key.kid, key.n, key.e) for one in listed)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_meant(one: Mapping[str, Any]) -> bool:
    """Whether a key is for what Slurm does with it."""
    return one.get("kty") == "RSA" and one.get("alg", RS256) == RS256 and one.get("use", "sig") == "sig"


def _key(index: int, one: Mapping[str, Any]) -> PublicKey:
    kid = one.get("kid")
    if not isinstance(kid, str) or _KID.fullmatch(kid) is None:
        raise UnusableKeySet(f"keys[{index}] has no id (kid) of 1 to 128 printable ASCII characters without blanks")
    n, e = (_number(one.get(name)) for name in ("n", "e"))
    if n is None or e is None:
        raise UnusableKeySet(f"key {_short(kid)}: its n and e must be numbers in base64url")
    if not SMALLEST_BITS <= n.bits <= BIGGEST_BITS:
        raise UnusableKeySet(f"key {_short(kid)} has {n.bits} bits, and must have {SMALLEST_BITS} to {BIGGEST_BITS}")
    if n.value % 2 == 0 or e.value % 2 == 0 or not 1 < e.value < _BIGGEST_EXPONENT:
        raise UnusableKeySet(f"key {_short(kid)}: its n and e are not those of an RSA key")
    return PublicKey(kid, n.text, e.text)


@dataclass(frozen=True, slots=True)
class _Number:
    value: int
    text: str
    """In base64url, without padding and leading zeros."""

    @property
    def bits(self) -> int:
        return self.value.bit_length()


def _number(given: object) -> _Number | None:
    if not isinstance(given, str) or len(given) > 2 * BIGGEST_BITS // 8 or _BASE64URL.fullmatch(given) is None:
        return None
    bare = given.rstrip("=")
    try:
        data = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4)).lstrip(b"\0")
    except (binascii.Error, ValueError):
        return None
    if not data:
        return None
    return _Number(int.from_bytes(data, "big"), base64.urlsafe_b64encode(data).rstrip(b"=").decode())


def _short(kid: str) -> str:
    return kid if len(kid) <= _SHOWN else f"{kid[:_SHOWN]}…"
