"""The CRDs on a real API server, and a small client that returns its answers unchanged."""

import base64
import json
import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from slinky_api.v1alpha1 import KINDS
from tests.support.control_plane import ControlPlane

ROOT = Path(__file__).parents[3]
PLURALS = {kind.kind: kind.plural for kind, _ in KINDS}


class Api:
    """Objects of our group in one namespace; every answer is returned, whatever its status."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def path(self, kind: str, name: str = "") -> str:
        path = f"/apis/slinky.slurm.net/v1alpha1/namespaces/{self.namespace}/{PLURALS[kind]}"
        return f"{path}/{name}" if name else path

    def create(self, obj: dict[str, Any], *, dry_run: bool = False) -> httpx.Response:
        parameters = {"dryRun": "All"} if dry_run else {}
        return self.client.post(self.path(obj["kind"]), json=obj, params=parameters)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.client.get(self.path(kind, name)).raise_for_status().json()  # type: ignore[no-any-return]

    def patch(self, kind: str, name: str, change: dict[str, Any], subresource: str = "") -> httpx.Response:
        path = self.path(kind, name) + (f"/{subresource}" if subresource else "")
        return self.client.patch(path, json=change, headers={"Content-Type": "application/merge-patch+json"})

    def apply(self, obj: dict[str, Any]) -> httpx.Response:
        """Server-side apply."""
        return self.client.patch(
            self.path(obj["kind"], obj["metadata"]["name"]),
            content=json.dumps(obj),
            params={"fieldManager": "test"},
            headers={"Content-Type": "application/apply-patch+yaml"},
        )


@pytest.fixture(scope="session")
def crds(control_plane: ControlPlane) -> dict[str, dict[str, Any]]:
    """The CRDs, as they are committed and served, by kind."""
    loaded = [yaml.safe_load(path.read_text()) for path in (ROOT / "config/crd").glob("slinky*.yaml")]
    return {crd["spec"]["names"]["kind"]: crd for crd in loaded}


@pytest.fixture(scope="session")
def client(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    pair = tmp_path_factory.mktemp("admin") / "pair.pem"
    pair.write_bytes(
        base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
    )
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(pair)
    with httpx.Client(base_url=cluster["server"], verify=context, timeout=120) as client:
        yield client


@pytest.fixture
def api(crds: dict[str, dict[str, Any]], client: httpx.Client) -> Api:
    """A namespace of its own."""
    name = f"api-{uuid.uuid4().hex[:10]}"
    client.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    return Api(client, name)
