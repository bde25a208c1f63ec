"""Keys that tokens are signed with.

auth/jwt takes two kinds (https://slurm.schedmd.com/jwt.html): one secret that slurmctld has too (HS256, ``jwt_key=``),
and RSA keys of which it has the public halves (RS256, ``jwks=``). It finds the latter by the id in the token's header,
so there may be several: a key can be replaced without a moment in which one of both is refused. The id is the key's
thumbprint (RFC 7638): the same key has the same id everywhere, and no two keys share one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import load_pem_private_key

HS256: Final = "HS256"
RS256: Final = "RS256"

SMALLEST_BITS: Final = 2048
"""Of an RSA key: RFC 7518 demands as many for RS256. slurmctld would take fewer."""

BIGGEST_BITS: Final = 4096
"""Of a private key: more costs the operator 50 ms and more for each signature."""

LONGEST_PEM: Final = 8192
"""Bytes of a private key of `BIGGEST_BITS` in PEM form, with room for words around it."""


class UnusableKey(Exception):
    """A key that no token can be signed with; the text says why, and never contains the key."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs tokens."""

    value: bytes = field(repr=False)
    """The secret, or the private key in PEM form."""

    algorithm: str = HS256
    key_id: str = ""
    """For the header of tokens (``kid``); empty for HS256."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of an RSA key, as in RFC 7517."""

    kid: str
    n: str
    """Modulus, in base64url without padding."""

    e: str
    """Exponent, written the same way."""


def private(pem: bytes) -> SigningKey:
    """Take an RSA private key in PEM form.

    Raises
    ------
    UnusableKey
        It is none, or one of another kind or size, or it is encrypted.
    """
    return SigningKey(pem, RS256, public_of(pem).kid)


def public_of(pem: bytes) -> PublicKey:
    """The public half of a private key; raises `UnusableKey` as `private` does."""
    numbers = _loaded(pem).public_key().public_numbers()
    return _public(numbers)


def sign(claims: dict[str, str | int], key: SigningKey) -> str:
    """Sign a token.

    Raises
    ------
    UnusableKey
        The key cannot be used for its algorithm.
    """
    with_key: RSAPrivateKey | bytes = _loaded(key.value) if key.algorithm == RS256 else key.value
    headers = {"kid": key.key_id} if key.key_id else None
    try:
        return jwt.encode(claims, with_key, algorithm=key.algorithm, headers=headers)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise UnusableKey(str(error) or type(error).__name__) from error


def verify(token: bytes | str, key: SigningKey) -> dict[str, object]:
    """The claims of a token that a key has signed, whether it has ended or not.

    Raises
    ------
    UnusableKey
        It was not signed with this key, or is no token.
    """
    with_key = _loaded(key.value).public_key() if key.algorithm == RS256 else key.value
    unchecked = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False}
    try:
        found: dict[str, object] = jwt.decode(token, with_key, algorithms=[key.algorithm], options=unchecked)  # type: ignore[arg-type]
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise UnusableKey(type(error).__name__) from error
    return found


def thumbprint(n: str, e: str) -> str:
    """Id of an RSA key, 43 characters (RFC 7638)."""
    said = json.dumps({"e": e, "kty": "RSA", "n": n}, sort_keys=True, separators=(",", ":"))
    return _encoded(hashlib.sha256(said.encode()).digest())


def _public(numbers: RSAPublicNumbers) -> PublicKey:
    n, e = (_encoded(one.to_bytes((one.bit_length() + 7) // 8, "big")) for one in (numbers.n, numbers.e))
    return PublicKey(thumbprint(n, e), n, e)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _loaded(pem: bytes) -> RSAPrivateKey:
    found = _read(pem)
    if isinstance(found, str):
        raise UnusableKey(found)
    return found


@lru_cache(maxsize=256)
def _read(pem: bytes) -> RSAPrivateKey | str:
    """The key, or why it cannot be used; kept, since it takes milliseconds to check, and many Tokens share it."""
    if len(pem) > LONGEST_PEM:
        return f"it has {len(pem)} bytes, and a key of {BIGGEST_BITS} bits has fewer than {LONGEST_PEM}"
    if b"PRIVATE KEY" not in pem or b"ENCRYPTED" in pem:
        return "it must be a private key in PEM form, neither public nor encrypted"
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "its private key cannot be read"
    if not isinstance(key, RSAPrivateKey):
        return "it is a private key of another kind than RSA, and Slurm takes RS256 only"
    if not SMALLEST_BITS <= key.key_size <= BIGGEST_BITS:
        return f"it has {key.key_size} bits, and must have {SMALLEST_BITS} to {BIGGEST_BITS}"
    return key
