"""Keys that sign tokens: which are taken, and that what they sign says who has signed it."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey, UnusableKey
from tests.support.rsa_keys import rsa_key

CLAIMS: dict[str, str | int] = {"sun": "alice", "iat": 1, "exp": 2}


def test_a_token_of_a_private_key_names_it_and_is_read_with_it_alone() -> None:
    one, other = (signing_keys.private(rsa_key(name)) for name in ("one", "other"))
    token = signing_keys.sign(CLAIMS, one)
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "kid": one.key_id, "typ": "JWT"}
    assert signing_keys.verify(token, one) == CLAIMS
    for wrong in (other, SigningKey(b"k" * 32), SigningKey(rsa_key("one"))):
        with pytest.raises(UnusableKey):
            signing_keys.verify(token, wrong)


def test_the_id_is_the_thumbprint_of_the_standard() -> None:
    # RFC 7638, section 3.1.
    n = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3okn"
        "jhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qM"
        "QvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJz"
        "KnqDKgw"
    )
    assert signing_keys.thumbprint(n, "AQAB") == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_a_secret_signs_as_before() -> None:
    token = signing_keys.sign(CLAIMS, SigningKey(b"k" * 32))
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert signing_keys.verify(token, SigningKey(b"k" * 32)) == CLAIMS


def _elliptic() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _encrypted() -> bytes:
    key = load_pem_private_key(rsa_key("one"), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def _public() -> bytes:
    key = load_pem_private_key(rsa_key("one"), None).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: b"x" * 32, "neither public nor encrypted"),
        (_public, "neither public nor encrypted"),
        (_encrypted, "neither public nor encrypted"),
        (_elliptic, "another kind than RSA"),
        (lambda: rsa_key("short", 1024), "it has 1024 bits, and must have 2048 to 4096"),
        (lambda: rsa_key("one")[:-200], "cannot be read"),
        (lambda: rsa_key("one") * 9, "bytes, and a key of 4096 bits"),
    ],
)
def test_a_key_that_cannot_sign_is_refused_without_being_told(make: object, why: str) -> None:
    assert callable(make)
    pem = make()
    with pytest.raises(UnusableKey, match=why) as refused:
        signing_keys.private(pem)
    assert pem[30:60].decode() not in str(refused.value)
    assert "PRIVATE" not in repr(SigningKey(rsa_key("one"), "RS256", "a"))
