"""buildah, with its layers in the cache: base images from trees, Dockerfile targets, OCI layouts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.images.cache import remove_tree
from hack.images.errors import StepFailed
from hack.images.tools.run import Runner


def _overlay_works(folder: Path) -> bool:
    """Try an overlay mount there: it needs a kernel and a file system that allow it."""
    probe = folder / "probe"
    names = ("lower", "upper", "work", "merged")
    for name in names:
        (probe / name).mkdir(parents=True, exist_ok=True)
    lower, upper, work, merged = (str(probe / name) for name in names)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mount = ["mount", "-t", "overlay", "overlay", "-o", options, merged]
    works = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    remove_tree(probe)
    return works


@dataclass(frozen=True)
class Buildah:
    """One storage of layers.

    Attributes
    ----------
    folder
        Where the layers are kept. Not used by two processes at once (the caller holds a lock).
    driver
        ``overlay``, or ``vfs`` (a whole copy per layer) where overlay mounts are not possible.
    runner
        Runs buildah.
    """

    folder: Path
    driver: str
    runner: Runner

    @property
    def _env(self) -> dict[str, str]:
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        return {
            **os.environ,
            "BUILDAH_ISOLATION": "chroot",
            "STORAGE_DRIVER": self.driver,
            "TMPDIR": str(scratch),
        }

    def _command(self, *arguments: str) -> list[str]:
        return ["buildah", "--root", str(self.folder / "root"), "--runroot", str(self.folder / "run"), *arguments]

    def has(self, image: str) -> bool:
        """Whether an image is in the storage."""
        command = self._command("inspect", "--type", "image", image)
        return subprocess.run(command, capture_output=True, env=self._env, check=False).returncode == 0

    def import_tree(self, tree: Path, image: str) -> None:
        """Make an image of one layer from a tree."""
        title = f"import {image}"
        container = self.runner.output(title, self._command("from", "scratch"), self._env).strip()
        self.runner.run(title, self._command("add", "--quiet", container, str(tree), "/"), self._env)
        self.runner.run(title, self._command("config", "--cmd", '["bash"]', container), self._env)
        self.runner.run(title, self._command("commit", "--quiet", "--rm", container, image), self._env)

    def build(
        self,
        image: str,
        dockerfile: Path,
        context: Path,
        *,
        target: str | None = None,
        arguments: Mapping[str, str] | None = None,
        secrets: Mapping[str, Path] | None = None,
        images: Mapping[str, str] | None = None,
        contexts: Mapping[str, Path] | None = None,
    ) -> None:
        """Build one target of a Dockerfile. Steps done before are not repeated, and nothing is pulled.

        Parameters
        ----------
        image
            Full name the result gets.
        dockerfile
            The Dockerfile.
        context
            Folder its COPY lines read.
        target
            The stage to build, None for the last one.
        arguments
            Build arguments.
        secrets
            Files that steps may read, by id.
        images
            Images of the storage that replace stages, by stage name.
        contexts
            Folders that replace stages, by stage name.

        Raises
        ------
        StepFailed
            The build failed.
        """
        options = ["--layers", "--force-rm", "--pull-never", "--file", str(dockerfile), "--tag", image]
        if target is not None:
            options += ["--target", target]
        for name, value in (arguments or {}).items():
            options += ["--build-arg", f"{name}={value}"]
        for name, path in (secrets or {}).items():
            options += ["--secret", f"id={name},src={path}"]
        for name, source in (images or {}).items():
            options += ["--build-context", f"{name}=docker-image://{source}"]
        for name, place in (contexts or {}).items():
            options += ["--build-context", f"{name}={place}"]
        self.runner.run(f"build {image}", self._command("bud", *options, str(context)), self._env)

    def push_layout(self, images: Sequence[str], layout: Path) -> None:
        """Write images into one OCI layout folder, each under its own name; layers they share are written once."""
        for image in images:
            self.runner.run(
                f"pack {image}", self._command("push", "--quiet", image, f"oci:{layout}:{image}"), self._env
            )

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """Give the tree of an image as long as the block lasts."""
        title = f"open {image}"
        container = self.runner.output(title, self._command("from", "--pull-never", image), self._env).strip()
        path = self.runner.output(title, self._command("mount", container), self._env).strip()
        try:
            yield Path(path)
        finally:
            self.runner.run(title, self._command("umount", container), self._env)
            self.runner.run(title, self._command("rm", container), self._env)


@contextmanager
def opened(folder: Path, runner: Runner, *, fresh: bool) -> Iterator[Buildah]:
    """Open a storage, emptying it first if asked to, or if a build in it was killed.

    Parameters
    ----------
    folder
        The storage. The caller holds its lock.
    runner
        Runs buildah.
    fresh
        Begin with an empty one.
    """
    dirty = folder / "in-use"
    if fresh or dirty.exists():
        remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    driver = folder / "driver"
    if not driver.exists():
        driver.write_text("overlay" if _overlay_works(folder) else "vfs")
    dirty.touch()
    try:
        yield Buildah(folder, driver.read_text(), runner)
    except StepFailed:
        # buildah exited and left its storage consistent. After anything else that is unknown.
        dirty.unlink()
        raise
    dirty.unlink()
