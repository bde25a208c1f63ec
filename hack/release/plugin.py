"""Make one file of the plugin, and what krew needs: ``python -m hack.release.plugin FOLDER [--url URL]``.

The file is a zip archive that Python runs (`zipapp`): the plugin, what it imports of this repository, and pinned
libraries without their compiled parts, so that it runs on every machine with Python 3.11 or newer. shiv and pex would
do the same with a program more, and unpack the archive on each machine.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipapp
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kubectl_slurm.version import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
REQUIREMENTS: Final = ROOT / "requirements" / "plugin.txt"
PLACES: Final = (ROOT, ROOT / "api")
WHOLE: Final = ("kubectl_slurm", "slurm_client")
"""Packages that are there as a whole: the client imports by names that it puts together."""

OURS: Final = (*WHOLE, "slinky_operator", "slinky_api")
LEFT_OUT: Final = ("__pycache__", "testing", "docs", "examples", "*.so", "*.pyi", "*.toml", "*.md", "bin")
NAME: Final = "kubectl-slurm"
KREW: Final = "slurm.yaml"
START: Final = "import sys\n\nfrom kubectl_slurm.cli import main\n\nsys.exit(main())\n"

MANIFEST: Final = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: slurm
spec:
  version: v{version}
  homepage: {url}
  shortDescription: Inspect, explain and manage a Slurm cluster that runs in Kubernetes
  description: |
    Shows on one screen what a Slurm in Kubernetes is doing, explains why a job waits or a node takes none, drains
    nodes, and collects a report without secrets. It needs the rights of an ordinary editor of a namespace.
  caveats: |
    Needs Python 3.11 or newer on the PATH.
  platforms:
    - selector:
        matchExpressions:
          - {{key: os, operator: In, values: [linux, darwin]}}
      uri: {url}/{archive}
      sha256: {digest}
      files:
        - {{from: {name}, to: .}}
        - {{from: LICENSE, to: .}}
      bin: {name}
"""


def modules() -> list[Path]:
    """Files of this repository that the plugin imports, found by their import statements."""
    found: set[Path] = set()
    waiting = list((ROOT / "kubectl_slurm").rglob("*.py"))
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += files(imported(path))
    return sorted(found)


def imported(path: Path) -> Iterable[str]:
    """Names that a module imports, with those that it takes from packages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)


def files(names: Iterable[str]) -> list[Path]:
    """The modules of this repository that names stand for, and the packages around them."""
    found = []
    for name in names:
        parts = name.split(".")
        if parts[0] not in OURS:
            continue
        for end in range(1, len(parts) + 1):
            for place in PLACES:
                stem = place.joinpath(*parts[:end])
                found += [path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()]
    return found


def fill(folder: Path) -> None:
    """Put all that the plugin imports into a folder."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([*pip, "--no-deps", f"--target={folder}", f"--requirement={REQUIREMENTS}"], check=True)
    for pattern in LEFT_OUT:
        for path in sorted(folder.rglob(pattern), reverse=True):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for package in WHOLE:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for path in modules():
        place = next(place for place in reversed(PLACES) if path.is_relative_to(place))
        target = folder / path.relative_to(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def make(folder: Path, url: str) -> Path:
    """Make the file, an archive of it and, where it is known where that will be, the manifest for krew.

    Returns the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / NAME
    with tempfile.TemporaryDirectory() as scratch:
        fill(Path(scratch))
        # zipapp's own start would lose the exit code.
        (Path(scratch) / "__main__.py").write_text(START)
        # Beside each module what Python makes of it, for those who have the release that made the file: others take the
        # module itself, and start slower.
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(scratch, quiet=1, legacy=True, invalidation_mode=unchecked)
        zipapp.create_archive(scratch, target, interpreter="/usr/bin/env python3", compressed=True)
    target.chmod(0o755)
    archive = folder / f"{NAME}-{__version__}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for path in (target, ROOT / "LICENSE"):
            packed.add(path, arcname=path.name)
    manifest = folder / KREW
    manifest.unlink(missing_ok=True)
    if url:
        manifest.write_text(described(archive, url))
    return target


def described(archive: Path, url: str) -> str:
    """The manifest for krew of an archive below a URL."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return MANIFEST.format(version=__version__, url=url, archive=archive.name, digest=digest, name=NAME)


def main() -> None:
    """Make the file in the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default="", help="where the archive will be; without it there is no manifest for krew")
    given = parser.parse_args()
    target = make(given.folder, given.url)
    krew = f"; manifest for krew: {target.parent / KREW}" if given.url else ""
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB{krew}")


if __name__ == "__main__":
    main()
