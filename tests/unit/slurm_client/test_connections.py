"""TLS with a private CA bundle, client certificates, and unix sockets."""

from __future__ import annotations

import datetime
import ipaddress
import os
import pwd
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from slurm_client import SlurmClient, errors
from slurm_client.connection.session import RetryPolicy
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from pathlib import Path

ONCE = RetryPolicy(attempts=1)


class Authority:
    """A certificate authority that lives as long as a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._signed(self.name, self.key.public_key(), authority=True)
        self.bundle = folder / "ca.pem"
        self.bundle.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return files of a certificate for 127.0.0.1 and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), authority=False)
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
        )
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def server_context(authority: Authority, *, ask_for_certificates: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    if ask_for_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.bundle)
    return context


async def test_a_server_of_our_own_authority_is_trusted_and_others_are_not(authority: Authority) -> None:
    async with FakeSlurmrestd(ssl_context=server_context(authority)) as fake:
        assert fake.url.startswith("https://")
        async with SlurmClient(fake.url, "token", ca_bundle=authority.bundle) as slurm:
            assert await slurm.connect() == "v0.0.45"
        async with SlurmClient(fake.url, "token", retry=ONCE) as slurm:
            with pytest.raises(errors.Unreachable, match="certificate"):
                await slurm.connect()


async def test_a_client_certificate_is_shown(authority: Authority) -> None:
    async with FakeSlurmrestd(ssl_context=server_context(authority, ask_for_certificates=True)) as fake:
        pair = authority.issue("client")
        async with SlurmClient(fake.url, "token", ca_bundle=authority.bundle, client_certificate=pair) as slurm:
            await slurm.connect()
        async with SlurmClient(fake.url, "token", ca_bundle=authority.bundle, retry=ONCE) as slurm:
            with pytest.raises(errors.Unreachable):
                await slurm.connect()


async def test_a_unix_socket_is_spoken_to(tmp_path: Path) -> None:
    path = tmp_path / "slurmrestd.sock"
    async with FakeSlurmrestd(unix_socket=path) as fake:
        fake.add_node("w-0")
        async with SlurmClient("http://slurm", "token", unix_socket=path) as slurm:
            assert [node.name for node in await slurm.nodes()] == ["w-0"]


async def test_who_asks_by_the_socket_of_rest_auth_local_is_the_user_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "slurmrestd.sock"
    me = pwd.getpwuid(os.getuid()).pw_name
    async with FakeSlurmrestd(unix_socket=path, local=True) as fake, SlurmClient("http://x", unix_socket=path) as slurm:
        made = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))
        assert (await slurm.job(made.id)).user == me
        # Over TCP, and where only rest_auth/jwt is played, a token is needed.
        async with SlurmClient(fake.url) as tokenless:
            with pytest.raises(errors.Unauthorized):
                await tokenless.nodes()
    async with FakeSlurmrestd(unix_socket=path), SlurmClient("http://x", unix_socket=path) as slurm:
        with pytest.raises(errors.Unauthorized):
            await slurm.nodes()


@pytest.mark.parametrize("url", ["", "slurm:6820", "ftp://slurm", "http://"])
def test_a_useless_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        SlurmClient(url, "token")
