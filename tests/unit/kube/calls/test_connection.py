"""Credentials are found, and found again when they were renewed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import incluster_config

from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import PODS
from tests.unit.kube.fake_api import FakeApi, running


def kubeconfig(folder: Path, fake: FakeApi) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": fake.url}}],
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
    }
    path.write_text(json.dumps(document))
    (folder / "token").write_text("first")
    return path


async def test_a_401_makes_us_read_the_credentials_again_once(tmp_path: Path) -> None:
    async with running() as fake, await Connection.connect(kubeconfig(tmp_path, fake)) as connection:
        client = KubeClient(connection, fence=OpenFence(), field_manager="test")
        await client.list(PODS, "default")
        (tmp_path / "token").write_text("second")
        fake.list_faults.append(401)
        await client.list(PODS, "default")
        assert fake.tokens == ["Bearer first", "Bearer first", "Bearer second"]
        fake.list_faults.extend([401, 401])
        with pytest.raises(errors.Unauthorized):
            await client.list(PODS, "default")


async def test_in_a_pod_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("of the pod")
    (tmp_path / "ca.crt").write_text("certificate")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    async with await Connection.connect() as connection:
        assert connection.host == "https://[fd00::1]:443"
        assert (await connection._headers(None))["Authorization"] == "bearer of the pod"
        assert (await connection.credentials())["token"] == "of the pod"


async def test_the_other_client_gets_the_token_of_a_kubeconfig_without_its_scheme(tmp_path: Path) -> None:
    async with running() as fake, await Connection.connect(kubeconfig(tmp_path, fake)) as connection:
        assert (await connection.credentials())["token"] == "first"


async def test_the_proxy_of_the_environment_is_used_but_for_hosts_it_excepts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    hosts = ("https://outside.example:6443", "https://inside.example:6443", "http://outside.example")
    routes = [Connection(Configuration(host=host))._route() for host in hosts]
    assert routes == [{"proxy": "http://proxy:3128"}, {}, {}]
    configured = Configuration(host=hosts[0], proxy="http://other:3128")
    assert Connection(configured)._route()["proxy"] == "http://other:3128", "a kubeconfig says more"


async def test_that_the_api_server_is_away_is_said_once_and_that_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name.startswith("slinky_operator")]

    async with running() as fake:
        file = kubeconfig(tmp_path, fake)
        async with await Connection.connect(file) as connection:
            client = KubeClient(connection, fence=OpenFence(), field_manager="test")
            await client.list(PODS, "default")
            assert said() == []
            there, connection._base = connection._base, "http://127.0.0.1:1"
            for _ in range(3):
                with pytest.raises(errors.Unavailable):
                    await client.list(PODS, "default")
            assert len(said()) == 1
            assert said()[0].startswith("the API server does not answer, waiting for it: ClientConnector")
            connection._base = there
            await client.list(PODS, "default")
            # What it says is an answer, whatever it is.
            fake.list_faults.append(403)
            with pytest.raises(errors.Forbidden):
                await client.list(PODS, "default")
    assert len(said()) == 2
    assert "answers again" in said()[1]
