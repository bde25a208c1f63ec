"""A list of what is in an image, as CycloneDX: Debian's packages with their licences, and Python's.

debsbom reads dpkg's records in the image's tree; Python's packages are found by what they say of themselves. debsbom
merges both, which checks each.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from hack.images.tools import contents
from hack.release.contents.images import Shipped
from hack.release.parameters import ROOT, Parameters

PROGRAM: Final = ROOT / "build/release/venv/bin/debsbom"
"""Made by `make release`, from requirements/release.txt."""

SUFFIX: Final = ".cdx.json"

_WANTED: Final = ("var/lib/dpkg/", "usr/share/doc/", "etc/os-release", "usr/lib/os-release", "etc/debian_version")
_METADATA: Final = ".dist-info/METADATA"


class SbomFailed(Exception):
    """debsbom ended with an error; the text has its words."""


def build(
    parameters: Parameters, made: list[tuple[Shipped, Path]], target: Path, program: Path = PROGRAM
) -> list[Path]:
    """Write a list for each archive of an image into a folder.

    Raises
    ------
    SbomFailed
        debsbom is missing, or ended with an error.
    """
    if not program.exists():
        raise SbomFailed(f"{program} is missing: run `make release`, which installs it from requirements/release.txt")
    target.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda pair: _build(parameters, pair[0], pair[1], target, program), made))


def _build(parameters: Parameters, one: Shipped, archive: Path, target: Path, program: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="sbom-") as scratch:
        tree = Path(scratch) / "tree"
        extract(archive, tree)
        common = [
            f"--timestamp={parameters.created}",
            # The same image has the same number.
            f"--cdx-serialnumber={uuid.uuid5(uuid.NAMESPACE_OID, one.image.digest)}",
        ]
        debian, python = Path(scratch) / "debian", Path(scratch) / f"python{SUFFIX}"
        kinds = ["--sbom-type=cdx", f"--distro-arch={one.image.architecture}"]
        _run(program, "generate", f"--root={tree}", *kinds, "--with-licenses", *common, f"--out={debian}")
        named = [f"--distro-name={one.name}", f"--distro-version={one.version}"]
        python.write_text(json.dumps(python_packages(tree)), encoding="utf-8")
        sources = ["--sbom-type=cdx", f"{debian}{SUFFIX}", str(python)]
        _run(program, "merge", *named, *common, f"--out={target / one.file}", *sources)
    return target / f"{one.file}{SUFFIX}"


def extract(archive: Path, tree: Path) -> None:
    """Lay out the files of an image that say what is in it."""
    with contents.opened(archive) as opened:
        (image,) = opened.images()
        for digest in image.layers:
            with opened.layer(digest) as layer:
                members = [member for member in layer if _is_wanted(member.name)]
                layer.extractall(tree, members, filter="data")


def _is_wanted(name: str) -> bool:
    return name.removeprefix("./").startswith(_WANTED) or name.endswith(_METADATA)


def python_packages(tree: Path) -> dict[str, Any]:
    """Return the Python packages of a tree as CycloneDX."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "python-packages", "name": "python-packages"}},
        "components": sorted(_components(tree), key=lambda component: component["bom-ref"]),
    }


def _components(tree: Path) -> Iterator[dict[str, Any]]:
    for folder in sorted({path.parents[1] for path in tree.rglob(f"*{_METADATA}")}):
        for package in metadata.distributions(path=[str(folder)]):
            name = package.metadata["Name"].lower().replace("_", "-")
            purl = f"pkg:pypi/{name}@{package.version}"
            said = package.metadata.get_all("License-Expression") or []
            licences = {"licenses": [{"expression": one} for one in said]} if said else {}
            yield {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": package.version,
                "purl": purl,
                **licences,
            }


def _run(program: Path, *arguments: str) -> None:
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SbomFailed(f"debsbom {arguments[0]}: {done.stderr.strip()}")
