"""Push the images of a release folder to its registry as they are, and put those of several machines under one name.

Each archive goes to ``REGISTRY/NAME:TAG-ARCHITECTURE``. `index` then makes ``REGISTRY/NAME:TAG`` of what is there for
all architectures, for every tag of the image. So what users pull is what `make release-check` has run, byte for byte; a
machine of each architecture makes and checks its own, and nothing but the registry is between them.

skopeo and oras would push the archives as well; crane is there already, and makes the index too.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from hack.developing.tools import CRANE
from hack.localkube.programs import build

ARCHIVES: Final = "*.oci.tar"


class PublishFailed(Exception):
    """An image cannot be pushed, or is missing for an architecture."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An image of a release folder.

    Attributes
    ----------
    names
        Full names with all tags, that of the file's registry.
    architecture
        As in the name of the file.
    """

    path: Path
    names: tuple[str, ...]
    architecture: str

    @property
    def repository(self) -> str:
        """Its name without a tag."""
        return self.names[0].rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Crane:
    """crane.

    Attributes
    ----------
    program
        Its path.
    plain
        Whether the registry speaks HTTP, as one on this machine does.
    """

    program: str
    plain: bool = False

    @classmethod
    def built(cls, *, plain: bool = False) -> Self:
        """The pinned one, built if need be."""
        build.ensure(CRANE)
        return cls(str(build.tool(CRANE.name)), plain)

    def run(self, *arguments: str) -> str:
        """Run a command, and return what it prints; PublishFailed if it fails."""
        command = [self.program, *arguments, *(["--insecure"] if self.plain else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PublishFailed(f"crane {' '.join(arguments[:2])} failed: {done.stderr.strip()[-500:]}")
        return done.stdout.strip()


def archives(folder: Path) -> list[Archive]:
    """The images of a release folder.

    Raises
    ------
    PublishFailed
        There are none.
    """
    found = [_read(path) for path in sorted((folder / "images").glob(ARCHIVES))]
    if not found:
        raise PublishFailed(f"{folder} has no images: run `make release`")
    return found


def push(folder: Path, crane: Crane) -> Iterator[str]:
    """Push all images under the tags of their architecture; yields each by its digest."""
    for one in archives(folder):
        with tempfile.TemporaryDirectory() as layout:
            with tarfile.open(one.path) as archive:
                archive.extractall(layout, filter="data")
            yield [crane.run("push", layout, f"{name}-{one.architecture}") for name in one.names][-1]


def index(folder: Path, architectures: Sequence[str], crane: Crane) -> Iterator[str]:
    """Make the names that users pull, of the images that were pushed for all architectures.

    Yields each index, and each image in it, by its digest: these are what is signed.

    Raises
    ------
    PublishFailed
        The registry lacks one for an architecture.
    """
    for one in archives(folder):
        images = [
            f"{one.repository}@{crane.run('digest', f'{one.names[0]}-{architecture}')}"
            for architecture in architectures
        ]
        yield from images
        manifests = [word for image in images for word in ("--manifest", image)]
        for number, name in enumerate(one.names):
            crane.run("index", "append", *manifests, "--tag", name)
            if not number:
                yield f"{one.repository}@{crane.run('digest', name)}"


def _read(path: Path) -> Archive:
    architecture = path.name.removesuffix(".oci.tar").rpartition("-")[2]
    with tarfile.open(path) as archive:
        file = archive.extractfile("manifest.json")
        if file is None:
            raise PublishFailed(f"{path} has no manifest.json")
        (entry,) = json.load(file)
    return Archive(path, tuple(entry["RepoTags"]), architecture)
