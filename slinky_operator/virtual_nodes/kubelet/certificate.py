"""The certificate of the kubelet API, and the authority that client certificates are verified with.

A pair that the administrator has mounted is read again when it changes, and so is the authority. Without a pair, one is
made at each start: it is good for API servers that do not verify certificates of kubelets, which is their default.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import secrets
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

logger = logging.getLogger(__name__)

CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
"""Names of the files, as in Secrets of type kubernetes.io/tls."""

MAX_BYTES: Final = 256 * 1024
"""Of a file."""

SELF_SIGNED_FOR: Final = timedelta(days=365)
ENDS_SOON: Final = timedelta(days=7)
"""From when on it is said that a certificate is about to end, and a self-signed one is made again."""

COMMON_NAME: Final = "slurm-virtual-nodes"


class UnusableCertificate(Exception):
    """A pair or an authority cannot be used; the text names the file and the reason, and nothing of a key."""


class UnusableAuthority(UnusableCertificate):
    """The authority of client certificates cannot be used."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key.

    Parameters
    ----------
    certificate, key
        PEM.
    ends
        When the certificate ends.
    is_own
        Whether this process has made it.
    """

    certificate: bytes
    key: bytes
    ends: datetime
    is_own: bool

    @property
    def digest(self) -> str:
        """Tells pairs apart."""
        return hashlib.sha256(self.certificate + self.key).hexdigest()


def read_pair(folder: Path) -> Pair:
    """Read a pair from a mounted Secret.

    Raises
    ------
    UnusableCertificate
        A file is missing, or is none.
    """
    certificate, key = read_file(folder / CERTIFICATE_FILE), read_file(folder / KEY_FILE)
    try:
        ends = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError as error:
        raise UnusableCertificate(f"{folder / CERTIFICATE_FILE} is no certificate: {error}") from error
    return Pair(certificate, key, ends, is_own=False)


def self_signed(addresses: tuple[str, ...], now: datetime) -> Pair:
    """Make a pair.

    Parameters
    ----------
    addresses
        Addresses of this pod.
    now
        The time.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)])
    alternatives: list[x509.GeneralName] = [x509.DNSName(COMMON_NAME)]
    alternatives += [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
    ends = now + SELF_SIGNED_FOR
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(secrets.randbits(120) + 1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(made.public_bytes(Encoding.PEM), private, ends, is_own=True)


def read_file(path: Path) -> bytes:
    """Read a small file.

    Raises
    ------
    UnusableCertificate
        It is missing, or too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnusableCertificate(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise UnusableCertificate(f"{path} has more than {MAX_BYTES // 1024} KiB")
    return content


def context(pair: Pair, client_ca: str) -> ssl.SSLContext:
    """Make what connections are accepted with.

    Parameters
    ----------
    pair
        The certificate.
    client_ca
        PEM of the authorities of client certificates; empty if there are none, then only tokens count.

    Raises
    ------
    UnusableCertificate
        Key and certificate do not fit, or one of them is none; `UnusableAuthority` if only the authority is not one.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        with _in_memory(pair.certificate + b"\n" + pair.key) as path:
            made.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        # Of a file that is no key at all, OpenSSL gives no reason.
        why = getattr(error, "reason", None) or (f"{KEY_FILE} is no key" if isinstance(error, ssl.SSLError) else error)
        raise UnusableCertificate(f"the certificate and its key cannot be used: {why}") from error
    if client_ca:
        try:
            made.load_verify_locations(cadata=client_ca)
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or str(error)
            raise UnusableAuthority(f"the authority of client certificates cannot be used: {why}") from error
        made.verify_mode = ssl.CERT_OPTIONAL
    return made


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A path to bytes that are on no disk: OpenSSL reads keys from files only."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            _ = file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
