"""RSA keys for tests, made once: to make one takes a tenth of a second and more."""

from __future__ import annotations

from functools import cache

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@cache
def rsa_key(name: str, bits: int = 2048) -> bytes:
    """A private key in PEM form; the same for the same name."""
    assert name
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
