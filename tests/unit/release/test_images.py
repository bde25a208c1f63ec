"""An image of a release is the image of the cache, with other names and labels, and with the same layers."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from hack.images.tools import contents
from hack.images.tools.archive import write_archive
from hack.release.contents.images import Shipped, write
from hack.release.parameters import Parameters

GIVEN = Parameters("1.2.3", "registry.example.com/slurm", "https://git.example.com/s", "abc", is_dirty=False, epoch=0)


def put(layout: Path, content: bytes) -> dict[str, Any]:
    name = hashlib.sha256(content).hexdigest()
    folder = layout / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return {"digest": f"sha256:{name}", "size": len(content)}


def layer(files: dict[str, bytes]) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return result.getvalue()


def cached(tmp_path: Path) -> Path:
    layout = tmp_path / "layout"
    layers = [
        put(layout, layer({"./etc/a": b"12345", "etc/b": b"1"})),
        put(layout, layer({"etc/.wh.b": b"", "etc/c": b"22"})),
    ]
    config = {"architecture": "amd64", "config": {"User": "65532", "Labels": {"x": "y"}}, "created": "now"}
    manifest = {"config": put(layout, json.dumps(config).encode()), "layers": layers}
    entry = {
        **put(layout, json.dumps(manifest).encode()),
        "annotations": {"org.opencontainers.image.ref.name": "localhost/slinky/slurm-operator:dev"},
    }
    (layout / "index.json").write_text(json.dumps({"manifests": [entry]}))
    name = "localhost/slinky/slurm-operator:dev"
    write_archive(layout, {name: [name]}, tmp_path / "cached.tar")
    return tmp_path / "cached.tar"


def test_files_are_counted_as_they_are_above_all_layers(tmp_path: Path) -> None:
    with contents.opened(cached(tmp_path)) as opened:
        (image,) = opened.images()
        assert opened.files(image) == {"etc/a": 5, "etc/c": 2}
    assert (image.user, image.architecture, dict(image.labels)) == ("65532", "amd64", {"x": "y"})
    assert image.names == ("localhost/slinky/slurm-operator:dev",)


def test_a_release_writes_names_and_labels_and_keeps_layers(tmp_path: Path) -> None:
    source = cached(tmp_path)
    with contents.opened(source) as opened:
        (image,) = opened.images()
    one = Shipped("slurm-operator", "1.2.3", ("1.2.3", "1.2"), source, image)
    with tarfile.open(source) as old, tarfile.open(tmp_path / "new.tar", "w") as new:
        write(one, old, new, GIVEN)
    with contents.opened(tmp_path / "new.tar") as opened:
        (made,) = opened.images()
        assert opened.files(made) == {"etc/a": 5, "etc/c": 2}
    with tarfile.open(tmp_path / "new.tar") as new:
        (docker,) = json.load(new.extractfile("manifest.json") or io.BytesIO())
        (entry,) = json.load(new.extractfile("index.json") or io.BytesIO())["manifests"]
    assert docker["RepoTags"] == [f"registry.example.com/slurm/slurm-operator:{tag}" for tag in one.tags]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "1.2"
    assert made.names == ("registry.example.com/slurm/slurm-operator:1.2",)
    assert made.layers == image.layers
    assert made.labels == {
        "x": "y",
        "org.opencontainers.image.version": "1.2.3",
        "org.opencontainers.image.revision": "abc",
        "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
        "org.opencontainers.image.source": "https://git.example.com/s",
    }
    assert one.file == "slurm-operator-1.2.3-amd64"
