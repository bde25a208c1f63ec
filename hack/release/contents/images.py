"""Images of a release as OCI archives, one each, with the release in their labels.

They are taken from the cache of images as they were built. Only what an image says of itself is written again: layers
stay as they are, whatever a release is called.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.images import build as cache
from hack.images.names import REGISTRY, SETS, TEST_IMAGES
from hack.images.tools import contents
from hack.images.tools.archive import CONTAINERD_NAME, LAYOUT_NAME
from hack.machine.progress import say
from hack.release.parameters import Parameters

NOT_SHIPPED: Final = frozenset({"busybox", "slapd", *TEST_IMAGES})
"""Images for tests and for the local Kubernetes."""

OPERATOR: Final = "slurm-operator"


@dataclass(frozen=True, slots=True)
class Shipped:
    """An image of a release.

    Attributes
    ----------
    name
        Without registry and tag.
    version
        What the image is of: the project's for the operator, Slurm's or the database's for the others.
    tags
        All tags.
    source
        The archive that it is in.
    image
        Its place there.
    """

    name: str
    version: str
    tags: tuple[str, ...]
    source: Path
    image: contents.Image

    @property
    def file(self) -> str:
        """The beginning of the names of its files."""
        return f"{self.name}-{self.version}-{self.image.architecture}"


def shipped(parameters: Parameters) -> list[Shipped]:
    """Return the images of a release, built if need be."""
    archives = cache.ensure([name for name in SETS if name != "busybox"], say)
    return [one for (archive,) in archives.values() for one in _in(archive, parameters)]


def _in(archive: Path, parameters: Parameters) -> Iterator[Shipped]:
    with contents.opened(archive) as opened:
        for image in opened.images():
            name = image.names[0].removeprefix(f"{REGISTRY}/").partition(":")[0]
            tags = [full.rpartition(":")[2] for full in image.names]
            if name == OPERATOR:
                tags = [parameters.version]
            if name not in NOT_SHIPPED:
                # The longest is the full version.
                yield Shipped(name, max(tags, key=len), tuple(tags), archive, image)


def build(parameters: Parameters, target: Path) -> list[tuple[Shipped, Path]]:
    """Write all archives into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for one in shipped(parameters):
        path = target / f"{one.file}.oci.tar"
        with tarfile.open(one.source) as source, tarfile.open(path, "w") as archive:
            write(one, source, archive, parameters)
        made.append((one, path))
    return made


def labels(one: Shipped, parameters: Parameters) -> dict[str, str]:
    """What an image says of the release that it is of."""
    found = {
        "version": one.version,
        "revision": parameters.revision,
        "created": parameters.created,
        "source": parameters.source,
    }
    return {f"org.opencontainers.image.{key}": value for key, value in found.items() if value}


def write(one: Shipped, source: tarfile.TarFile, archive: tarfile.TarFile, parameters: Parameters) -> None:
    """Copy an image from one archive to another, with the names and labels of a release."""
    said = labels(one, parameters)
    manifest = json.loads(_blob(source, one.image.digest))
    config = json.loads(_blob(source, manifest["config"]["digest"]))
    config["config"]["Labels"] = {**config["config"].get("Labels", {}), **said}
    config["created"] = parameters.created
    blobs: dict[str, bytes] = {}
    manifest["config"] = {**manifest["config"], **_put(blobs, config)}
    manifest["annotations"] = said
    entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", **_put(blobs, manifest)}
    names = [f"{parameters.registry}/{one.name}:{tag}" for tag in one.tags]
    # One entry: skopeo takes an archive with several only by the name of one. Charts name the series.
    tag = min(one.tags, key=len)
    named = {CONTAINERD_NAME: f"{parameters.registry}/{one.name}:{tag}", LAYOUT_NAME: tag}
    index = [{**entry, "annotations": named}]
    paths = [f"blobs/{digest.replace(':', '/')}" for digest in one.image.layers]
    docker = [{"Config": _path(manifest["config"]["digest"]), "RepoTags": names, "Layers": paths}]
    for name, content in (
        ("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        ("index.json", _json({"schemaVersion": 2, "manifests": index})),
        ("manifest.json", _json(docker)),
        *((_path(digest), content) for digest, content in blobs.items()),
    ):
        _add(archive, name, len(content), io.BytesIO(content))
    for path in paths:
        member = source.getmember(path)
        _add(archive, path, member.size, source.extractfile(member))


def _add(archive: tarfile.TarFile, name: str, size: int, content: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    archive.addfile(info, content)


def _put(blobs: dict[str, bytes], content: Mapping[str, Any]) -> dict[str, Any]:
    raw = _json(content)
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    blobs[digest] = raw
    return {"digest": digest, "size": len(raw)}


def _blob(source: tarfile.TarFile, digest: str) -> bytes:
    file = source.extractfile(_path(digest))
    if file is None:
        raise KeyError(digest)
    return file.read()


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
