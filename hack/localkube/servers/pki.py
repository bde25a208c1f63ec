"""The certificates of one cluster and the kubeconfigs that carry them.

A cluster lives for hours, so everything is made afresh at each start, is valid for a month, and is never reused.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The files of one certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """The cluster's certificate authority, its key held in memory only."""

    def __init__(self, folder: Path, now: datetime.datetime) -> None:
        self._folder = folder
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localkube")])
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, file: str, name: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> KeyPair:
        """Issue a certificate for a client (`name` is the user) and, if it has hosts, for a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(subject, key.public_key()).add_extension(_key_usage(authority=False), critical=True)
        if hosts:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(h) for h in hosts]), critical=False
            )
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            # An hour of slack: the clocks of virtual machines jump.
            .not_valid_before(self._now - datetime.timedelta(hours=1))
            .not_valid_after(self._now + VALID_FOR)
        )


def service_account_key(folder: Path) -> KeyPair:
    """Make the key pair that signs service account tokens; the "certificate" file holds the public key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pair = KeyPair(folder / "sa.pub", folder / "sa.key")
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pair.certificate.write_bytes(public)
    _write_key(pair.key, key)
    return pair


def write_kubeconfig(target: Path, server: str, authority: Path, client: KeyPair) -> Path:
    """Write a kubeconfig that holds everything it needs (JSON, which is YAML), readable by its owner only."""

    def inline(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    name = "localkube"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": inline(authority)}}],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": inline(client.certificate),
                    "client-key-data": inline(client.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    target.touch(mode=0o600)
    target.write_text(json.dumps(config, indent=1) + "\n")
    return target


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        key_encipherment=not authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(target: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    target.touch(mode=0o600)
    target.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
