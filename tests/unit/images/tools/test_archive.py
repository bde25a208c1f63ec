"""Several images in one archive, with shared layers stored once."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.images.tools.archive import drop_unused, write_archive


def _put(layout: Path, content: bytes) -> dict[str, Any]:
    name = hashlib.sha256(content).hexdigest()
    folder = layout / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return {"digest": f"sha256:{name}", "size": len(content)}


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    layout = tmp_path / "layout"
    shared = _put(layout, b"shared layer")
    manifests = []
    for name in ("one", "two"):
        own = _put(layout, f"layer of {name}".encode())
        config = _put(layout, f"config of {name}".encode())
        manifest = _put(layout, json.dumps({"config": config, "layers": [shared, own]}).encode())
        manifests.append({**manifest, "annotations": {"org.opencontainers.image.ref.name": name}})
    (layout / "index.json").write_text(json.dumps({"manifests": manifests}))
    return layout


def _read(archive: Path, name: str) -> Any:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return json.loads(file.read())


def test_every_name_is_in_both_indexes(layout: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    write_archive(layout, {"one": ["r/one:1", "r/one:1.2"], "two": ["r/two:1"]}, target)
    index = _read(target, "index.json")["manifests"]
    names = [entry["annotations"]["io.containerd.image.name"] for entry in index]
    assert names == ["r/one:1", "r/one:1.2", "r/two:1"]
    assert index[0]["digest"] == index[1]["digest"] != index[2]["digest"]
    assert [each["RepoTags"] for each in _read(target, "manifest.json")] == [["r/one:1", "r/one:1.2"], ["r/two:1"]]


def test_a_shared_layer_is_stored_once(layout: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    write_archive(layout, {"one": ["r/one:1"], "two": ["r/two:1"]}, target)
    with tarfile.open(target) as tar:
        names = tar.getnames()
    assert len(names) == len(set(names))
    # One shared layer, and a layer, a configuration and a manifest for each image.
    assert sum(name.startswith("blobs/sha256/") for name in names) == 7


def test_only_the_images_asked_for_are_packed(layout: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.tar"
    write_archive(layout, {"one": ["r/one:1"]}, target)
    with tarfile.open(target) as tar:
        assert sum(name.startswith("blobs/") for name in tar.getnames()) == 4


def test_blobs_nobody_refers_to_are_dropped(layout: Path) -> None:
    _put(layout, b"of an earlier build")
    drop_unused(layout)
    assert len(list((layout / "blobs/sha256").iterdir())) == 7


def test_an_image_whose_name_another_has_taken_is_dropped(layout: Path) -> None:
    index = json.loads((layout / "index.json").read_text())
    del index["manifests"][0]["annotations"]
    (layout / "index.json").write_text(json.dumps(index))
    drop_unused(layout)
    # A configuration, a manifest and two layers are left.
    assert len(list((layout / "blobs/sha256").iterdir())) == 4
    assert [entry["digest"] for entry in json.loads((layout / "index.json").read_text())["manifests"]] == [
        index["manifests"][1]["digest"]
    ]
