"""SSH host keys: generated ones, and the fingerprints of any. A private key never leaves its Secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

NAME: Final = re.compile(r"ssh_host_[a-z0-9]{1,32}_key", re.ASCII)
"""Names of host keys within a Secret, as in /etc/ssh."""

MOST: Final = 8
"""Maximum number of host keys that are used."""

_RSA_BITS: Final = 3072


class UnusableKeyError(ValueError):
    """A host key that sshd cannot use; the text names it, and discloses nothing of it."""


def generate(comment: str) -> dict[str, bytes]:
    """Generate an ED25519 and an RSA key; takes up to a second.

    Parameters
    ----------
    comment
        Shown beside public keys.

    Returns
    -------
    dict
        Private keys in OpenSSH's format, and public ones, by the file names of /etc/ssh.
    """
    pairs: dict[str, ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey] = {
        "ssh_host_ed25519_key": ed25519.Ed25519PrivateKey.generate(),
        "ssh_host_rsa_key": rsa.generate_private_key(65537, _RSA_BITS),
    }
    made = {}
    for name, key in pairs.items():
        made[name] = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        made[f"{name}.pub"] = public + f" {comment}\n".encode()
    return made


def names(data: Mapping[str, bytes]) -> tuple[str, ...]:
    """Names of the private host keys in a Secret, in order."""
    return tuple(sorted(name for name in data if NAME.fullmatch(name)))[:MOST]


def fingerprints(data: Mapping[str, bytes]) -> tuple[str, ...]:
    """Fingerprints of the host keys in a Secret, as `ssh-keygen -l` shows them.

    Raises
    ------
    UnusableKeyError
        One of them is not a private key, or needs a passphrase.
    """
    return tuple(_fingerprint(name, data[name]) for name in names(data))


@lru_cache(maxsize=256)
def _fingerprint(name: str, private: bytes) -> str:
    try:
        public = load_ssh_private_key(private, None).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        blob = base64.b64decode(public.split()[1])
    except (ValueError, TypeError, binascii.Error, IndexError) as error:
        raise UnusableKeyError(f"{name} is not an OpenSSH private key without a passphrase") from error
    except Exception as error:
        raise UnusableKeyError(f"{name} has an unsupported key type") from error
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"
