"""Charts of a release: their defaults name its images, and each is an archive for helm and one for registries.

helm packs the chart. The archive is written again with one time and one owner, so that the same chart gives the same
file. A registry stores a chart as a manifest with two blobs: what Chart.yaml says, and the archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from hack.images.names import REGISTRY
from hack.packaging import values_table
from hack.packaging.errors import RenderFailed
from hack.packaging.render import helm
from hack.release.contents import artifacthub
from hack.release.parameters import ROOT, Parameters

TAG: Final = re.compile(r"(?m)(^  tag: |/slurm-operator:)dev\b")
"""The tag of the operator's image in values and templates, on a line of its own or after the name."""

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def build(parameters: Parameters, target: Path, root: Path = ROOT) -> list[Path]:
    """Pack all charts into a folder, each twice.

    Raises
    ------
    RenderFailed
        helm refuses to pack a chart.
    """
    target.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="charts-") as scratch:
        for chart in sorted(path.parent for path in (root / "helm").glob("*/Chart.yaml")):
            staged = stage(chart, Path(scratch), parameters)
            _describe(staged, parameters, root)
            made += _pack(staged, target, parameters)
    return made


def stage(chart: Path, scratch: Path, parameters: Parameters) -> Path:
    """Copy a chart, with the registry and the tag of a release as its defaults."""
    staged = scratch / chart.name
    shutil.copytree(chart, staged)
    for path in (staged / "values.yaml", *staged.glob("templates/**/*.*")):
        text = path.read_text(encoding="utf-8").replace(REGISTRY, parameters.registry)
        path.write_text(TAG.sub(rf"\g<1>{parameters.version}", text), encoding="utf-8")
    readme = staged / "README.md"
    if readme.exists():
        # Its table has the defaults.
        (page,) = values_table.readmes((staged,)).values()
        readme.write_text(page, encoding="utf-8")
    return staged


def _describe(chart: Path, parameters: Parameters, root: Path) -> None:
    """Put annotations into Chart.yaml."""
    file = chart / "Chart.yaml"
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    said["annotations"] = {**said.get("annotations", {}), **artifacthub.described(chart, parameters, root)}
    if parameters.source:
        said |= {"home": parameters.source, "sources": [parameters.source]}
    file.write_text(yaml.safe_dump(said, sort_keys=False, width=200), encoding="utf-8")


def _pack(chart: Path, target: Path, parameters: Parameters) -> Iterator[Path]:
    done = helm("package", str(chart), f"--destination={chart.parent}")
    if done.returncode != 0:
        raise RenderFailed(chart, done.stderr)
    name = f"{chart.name}-{parameters.version}"
    packed = target / f"{name}.tgz"
    packed.write_bytes(_again((chart.parent / f"{name}.tgz").read_bytes(), parameters.epoch))
    yield packed
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    archive = target / f"{name}.oci.tar"
    archive.write_bytes(_registry_archive(metadata, packed.read_bytes(), parameters))
    yield archive


def _again(packed: bytes, epoch: int) -> bytes:
    """Write a compressed archive again, with one time, one owner, and its files in order."""
    result = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as old,
        gzip.GzipFile(fileobj=result, mode="wb", mtime=epoch, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w") as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            new.addfile(member, old.extractfile(member))
    return result.getvalue()


def _registry_archive(metadata: dict[str, Any], packed: bytes, parameters: Parameters) -> bytes:
    """Lay a chart out as registries have it, in one archive."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    annotations = {
        "org.opencontainers.image.title": metadata["name"],
        "org.opencontainers.image.version": metadata["version"],
        "org.opencontainers.image.description": metadata["description"],
        "org.opencontainers.image.created": parameters.created,
        "org.opencontainers.image.revision": parameters.revision,
        "org.opencontainers.image.source": parameters.source,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(_json(metadata), CONFIG),
        "layers": [blob(packed, CONTENT)],
        "annotations": {key: value for key, value in annotations.items() if value},
    }
    named = {"org.opencontainers.image.ref.name": metadata["version"]}
    entry = {**blob(_json(manifest), MANIFEST), "annotations": named}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
        **{f"blobs/sha256/{digest}": content for digest, content in blobs.items()},
    }
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), parameters.epoch, 0o644
            archive.addfile(info, io.BytesIO(content))
    return result.getvalue()


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
