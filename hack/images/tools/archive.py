"""Packs images of an OCI layout folder into one archive that containerd, Docker and buildah load.

buildah writes one image per archive; sharing the layers of a set between its images is worth more than half of the
size. The names under which containerd lists an image are annotations in the index, the ones Docker reads are in
``manifest.json``: both are written.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CONTAINERD_NAME = "io.containerd.image.name"
LAYOUT_NAME = "org.opencontainers.image.ref.name"


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, name = digest.partition(":")
    return layout / "blobs" / algorithm / name


def _index_entries(layout: Path) -> dict[str, dict[str, Any]]:
    """Entries by name. An image that another of its name has replaced stays in the index, without a name."""
    index = json.loads((layout / "index.json").read_text())
    named = ((entry.get("annotations", {}).get(LAYOUT_NAME), entry) for entry in index["manifests"])
    return {name: entry for name, entry in named if name is not None}


def write_archive(layout: Path, images: Mapping[str, Sequence[str]], target: Path) -> None:
    """Write the archive.

    Parameters
    ----------
    layout
        An OCI layout folder.
    images
        Which of its images to take, and the full names (with tag) each gets.
    target
        The file to write.
    """
    entries = _index_entries(layout)
    digests: list[str] = []
    index: list[dict[str, Any]] = []
    docker: list[dict[str, Any]] = []
    for image, names in images.items():
        descriptor = entries[image]
        manifest = json.loads(_blob(layout, descriptor["digest"]).read_text())
        layers = [layer["digest"] for layer in manifest["layers"]]
        config = manifest["config"]["digest"]
        digests += [descriptor["digest"], config, *layers]
        for name in names:
            annotations = {CONTAINERD_NAME: name, LAYOUT_NAME: name.rpartition(":")[2]}
            index.append({**descriptor, "annotations": annotations})
        inside = [str(_blob(Path(), digest)) for digest in (config, *layers)]
        docker.append({"Config": inside[0], "RepoTags": list(names), "Layers": inside[1:]})
    with tarfile.open(target, "w") as archive:
        _add_json(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
        _add_json(archive, "index.json", {"schemaVersion": 2, "manifests": index})
        _add_json(archive, "manifest.json", docker)
        for digest in dict.fromkeys(digests):
            archive.add(_blob(layout, digest), str(_blob(Path(), digest)), filter=_anonymous)


def drop_unused(layout: Path) -> None:
    """Delete what no named image of the layout refers to any more: entries without a name, then blobs."""
    used: set[str] = set()
    entries = _index_entries(layout)
    path = layout / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "manifests": list(entries.values())}))
    for entry in entries.values():
        manifest = json.loads(_blob(layout, entry["digest"]).read_text())
        used |= {entry["digest"], manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}
    for blob in (layout / "blobs").glob("*/*"):
        if f"{blob.parent.name}:{blob.name}" not in used:
            blob.unlink()


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who built it and when: the same images give the same archive."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


def _add_json(archive: tarfile.TarFile, name: str, content: Any) -> None:
    raw = json.dumps(content).encode()
    info = _anonymous(tarfile.TarInfo(name))
    info.size = len(raw)
    archive.addfile(info, io.BytesIO(raw))
