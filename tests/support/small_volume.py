"""A file system of some MiB, in the place of a folder, that tests fill. Needs root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slinky_operator.pod_programs.agent.volumes import room


@contextmanager
def small(folder: Path, size: int, *, inodes: int = 0) -> Iterator[None]:
    """A file system of so many MiB instead of a folder; with so many inodes, if it matters."""
    owner = folder.stat()
    options = f"size={size}m,mode={owner.st_mode & 0o7777:o},uid={owner.st_uid},gid={owner.st_gid},nr_inodes={inodes}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves so many bytes; its path."""
    path = folder / "ballast"
    with path.open("ab") as file:
        file.write(b"\0" * max(0, room(folder)["free"] - left))
    return path
