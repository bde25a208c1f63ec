"""Archives of a release are pushed to a real registry as they are, and several architectures get one name."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from hack.release import publish
from hack.release.publish import Crane, PublishFailed


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def crane() -> Crane:
    return Crane.built(plain=True)


@pytest.fixture
def registry(crane: Crane, tmp_path: Path) -> Iterator[str]:
    """A registry on this machine; its address."""
    address = f"127.0.0.1:{free_port()}"
    command = [crane.program, "registry", "serve", f"--address={address}", f"--disk={tmp_path}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for("the registry", lambda: listens(address), 60)
            yield address
        finally:
            server.terminate()


def listens(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as one:
        return one.connect_ex((host, int(port))) == 0


def blob(archive: tarfile.TarFile, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    add(archive, f"blobs/sha256/{digest}", content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def release(folder: Path, registry: str, architecture: str) -> str:
    """A release folder with one image of two tags, as `make release` writes it; the digest of its manifest."""
    images = folder / "images"
    images.mkdir(parents=True)
    with tarfile.open(images / f"slurmd-26.05.5-{architecture}.oci.tar", "w") as archive:
        layer_file = io.BytesIO()
        with tarfile.open(fileobj=layer_file, mode="w") as layer:
            add(layer, "hello", architecture.encode())
        diff = f"sha256:{hashlib.sha256(layer_file.getvalue()).hexdigest()}"
        layer_at = {"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(archive, layer_file.getvalue())}
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [diff]},
        }
        config_at = {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            **blob(archive, json.dumps(config).encode()),
        }
        manifest_type = "application/vnd.oci.image.manifest.v1+json"
        manifest = {"schemaVersion": 2, "mediaType": manifest_type, "config": config_at, "layers": [layer_at]}
        at = blob(archive, json.dumps(manifest).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        index = {"schemaVersion": 2, "manifests": [{"mediaType": manifest_type, **at}]}
        add(archive, "index.json", json.dumps(index).encode())
        names = [f"{registry}/lab/slurmd:{tag}" for tag in ("26.05", "26.05.5")]
        add(archive, "manifest.json", json.dumps([{"RepoTags": names}]).encode())
    return str(at["digest"])


def test_users_pull_the_archives_that_were_checked(crane: Crane, registry: str, tmp_path: Path) -> None:
    digests = {one: release(tmp_path / one, registry, one) for one in ("amd64", "arm64")}
    for architecture, digest in digests.items():
        assert list(publish.push(tmp_path / architecture, crane)) == [f"{registry}/lab/slurmd@{digest}"]

    signed = list(publish.index(tmp_path / "amd64", ("amd64", "arm64"), crane))
    assert signed[:2] == [f"{registry}/lab/slurmd@{digest}" for digest in digests.values()]
    for tag in ("26.05", "26.05.5"):
        name = f"{registry}/lab/slurmd:{tag}"
        manifests = json.loads(crane.run("manifest", name))["manifests"]
        found = {one["platform"]["architecture"]: one["digest"] for one in manifests}
        assert found == digests
        assert signed[2] == f"{registry}/lab/slurmd@{crane.run('digest', name)}"


def test_an_architecture_that_was_not_pushed_is_named(crane: Crane, registry: str, tmp_path: Path) -> None:
    release(tmp_path / "amd64", registry, "amd64")
    list(publish.push(tmp_path / "amd64", crane))
    with pytest.raises(PublishFailed, match=r"slurmd:26\.05-arm64"):
        list(publish.index(tmp_path / "amd64", ("amd64", "arm64"), crane))
    with pytest.raises(PublishFailed, match="has no images"):
        list(publish.push(tmp_path, crane))
