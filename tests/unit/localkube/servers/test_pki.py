"""The certificates of a cluster."""

from __future__ import annotations

import datetime
import json
import ssl
import stat
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from hack.localkube.servers import pki

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def load(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_a_client_certificate_carries_user_and_groups(tmp_path: Path) -> None:
    pair = pki.Authority(tmp_path, NOW).issue("node", "system:node:node-1", groups=["system:nodes"])
    subject = load(pair.certificate).subject.rfc4514_string()
    assert "CN=system:node:node-1" in subject
    assert "O=system:nodes" in subject


def test_only_a_certificate_with_hosts_may_serve(tmp_path: Path) -> None:
    authority = pki.Authority(tmp_path, NOW)

    def usages(pair: pki.KeyPair) -> set[x509.ObjectIdentifier]:
        return set(load(pair.certificate).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)

    assert ExtendedKeyUsageOID.SERVER_AUTH not in usages(authority.issue("client", "admin"))
    assert ExtendedKeyUsageOID.SERVER_AUTH in usages(authority.issue("server", "api", hosts=["localhost", "10.0.0.1"]))


def test_the_certificates_load_where_they_are_used(tmp_path: Path) -> None:
    authority = pki.Authority(tmp_path, NOW)
    pair = authority.issue("server", "api", hosts=["localhost"])
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(pair.certificate, pair.key)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    authority = pki.Authority(tmp_path / "pki", NOW)
    pair = authority.issue("admin", "admin")
    kubeconfig = pki.write_kubeconfig(tmp_path / "config", "https://x", authority.certificate, pair)
    for file in (pair.key, kubeconfig):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == "https://x"
