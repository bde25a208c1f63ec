"""Reads archives of images: what each image is called, says of itself, and weighs when it is unpacked.

`archive` writes them. Nothing is unpacked here, and root is not needed: layers are read as they lie in the archive.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hack.images.tools.archive import CONTAINERD_NAME

_WHITEOUT = ".wh."
"""Before the name of a file that a layer takes away."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image of an archive.

    Attributes
    ----------
    names
        Full names, with tags.
    digest
        Of its manifest.
    architecture
        As Go spells it, ``amd64``.
    user
        Who its program runs as, empty for root.
    labels
        What it says of itself.
    layers
        Digests, from the lowest.
    packed
        Size of its layers in the archive, in bytes.
    """

    names: tuple[str, ...]
    digest: str
    architecture: str
    user: str
    labels: Mapping[str, str]
    layers: tuple[str, ...]
    packed: int


@dataclass(frozen=True)
class Archive:
    """An open archive of images."""

    tar: tarfile.TarFile

    def images(self) -> list[Image]:
        """Return its images, each once."""
        names: dict[str, list[str]] = {}
        for entry in self._json("index.json")["manifests"]:
            names.setdefault(entry["digest"], []).append(entry["annotations"][CONTAINERD_NAME])
        return [self._image(digest, found) for digest, found in names.items()]

    def files(self, image: Image) -> dict[str, int]:
        """Return the files of an image with their sizes, as they are above all its layers."""
        found: dict[str, int] = {}
        for digest in image.layers:
            with self.layer(digest) as layer:
                for member in layer:
                    path = PurePosixPath(member.name)
                    if path.name.startswith(_WHITEOUT):
                        found.pop(str(path.with_name(path.name.removeprefix(_WHITEOUT))), None)
                    else:
                        found[str(path)] = member.size if member.isreg() else 0
        return found

    @contextmanager
    def layer(self, digest: str) -> Iterator[tarfile.TarFile]:
        """Open a layer."""
        with tarfile.open(fileobj=self._blob(digest)) as layer:
            yield layer

    def _image(self, digest: str, names: Sequence[str]) -> Image:
        manifest = json.load(self._blob(digest))
        config = json.load(self._blob(manifest["config"]["digest"]))
        return Image(
            tuple(names),
            digest,
            config["architecture"],
            config["config"].get("User", ""),
            config["config"].get("Labels") or {},
            tuple(layer["digest"] for layer in manifest["layers"]),
            sum(layer["size"] for layer in manifest["layers"]),
        )

    def _json(self, name: str) -> Any:
        return json.load(self._open(name))

    def _blob(self, digest: str) -> IO[bytes]:
        return self._open(f"blobs/{digest.replace(':', '/')}")

    def _open(self, name: str) -> IO[bytes]:
        file = self.tar.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive for as long as the block lasts."""
    with tarfile.open(path) as tar:
        yield Archive(tar)
