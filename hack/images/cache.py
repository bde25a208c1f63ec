"""Where images are kept, under which key, and how several builds at once stay out of each other's way.

Layout, below ``${XDG_CACHE_HOME:-~/.cache}/slurm-operator/images``::

    <set>/<key>/<set>.tar     the archive          <set>/<key>/meta.json    what is in it
    <set>/<key>/rootfs/       Slurm sets: a tree with all daemons; mariadb: its tree
    storage/<suite>/          buildah's layers, the Debian base among them; may be deleted at any time
    locks/  logs/  epoch      one lock per storage, the output of the last build, which month's Debian this is

A key is a hash over everything that goes in. A folder appears under its key by one rename, so it is always complete.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.images.errors import NoDiskSpace

#: Finished builds kept per set: the newest, and those somebody may still be using.
KEEP = 3
NEEDED_BYTES = 3_000_000_000


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder of all that is kept, by the XDG rule."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "slurm-operator" / "images"


def fingerprint(parts: Iterable[str | bytes]) -> str:
    """Hash texts so that neither their order nor where one ends and the next begins can be mistaken."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()[:16]


def fingerprint_files(root: Path, paths: Iterable[Path]) -> str:
    """Hash files and the files in folders, with their names relative to `root` and whether they are executable.

    A path that does not exist counts as such. Compiled Python is left out.
    """
    parts: list[str | bytes] = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" in file.parts or file.is_dir():
                continue
            parts.append(str(file.relative_to(root)))
            if file.is_file():
                parts.append("x" if os.access(file, os.X_OK) else "-")
                parts.append(file.read_bytes())
            else:
                parts.append("absent")
    return fingerprint(parts)


@dataclass(frozen=True)
class Cache:
    """The cache folder.

    Attributes
    ----------
    root
        See the module's text for what is below it.
    """

    root: Path

    def entry(self, name: str, key: str) -> Path:
        """Folder of one finished build. It exists only if it is complete."""
        return self.root / name / key

    def storage(self, name: str) -> Path:
        """Folder of buildah's layers."""
        return self.root / "storage" / name

    def log(self, name: str) -> Path:
        """File for the output of a build."""
        path = self.root / "logs" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def epoch(self, today: datetime.date) -> str:
        """Which state of Debian is meant: the month, or the moment of the last refresh in it.

        Packages of a suite change daily; without this a base image would be used forever, or never.
        """
        month = today.strftime("%Y-%m")
        path = self.root / "epoch"
        stored = path.read_text().strip() if path.exists() else ""
        return stored if stored.startswith(month) else month

    def refresh(self, now: datetime.datetime) -> None:
        """Begin a new epoch, so that everything based on Debian is built again from today's packages."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "epoch").write_text(now.strftime("%Y-%m-%dT%H:%M:%S"))

    @contextmanager
    def lock(self, name: str, progress: Callable[[str], None]) -> Iterator[None]:
        """Hold a lock among all processes; say so if another one has it. The kernel frees it if its holder dies."""
        path = self.root / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                start = time.monotonic()
                progress(f"  ...  waiting for another build of {name}")
                fcntl.flock(file, fcntl.LOCK_EX)
                progress(f"  ok   waited {time.monotonic() - start:.1f} s for another build of {name}")
            yield

    def require_space(self) -> None:
        """Check the room left.

        Raises
        ------
        NoDiskSpace
            Less than a build needs.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.root).free
        if free < NEEDED_BYTES:
            raise NoDiskSpace(self.root, free, NEEDED_BYTES)

    @contextmanager
    def publishing(self, name: str, key: str) -> Iterator[Path]:
        """Give an empty folder, and make it the entry of `key` if the block succeeds. Call with the lock held.

        What a killed build left behind is removed first; old entries are removed at the end.
        """
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(".tmp-*"):
            remove_tree(leftover)
        temporary = folder / f".tmp-{key}"
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(self.entry(name, key))
        except BaseException:
            remove_tree(temporary)
            raise
        entries = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for old in entries[:-KEEP]:
            # Under another name first: nobody may find half an entry.
            doomed = old.rename(folder / f".tmp-{old.name}")
            remove_tree(doomed)


def mounts_below(path: Path, mountinfo: str) -> list[Path]:
    """Mount points at or below a folder, the deepest first, from the text of ``/proc/self/mountinfo``."""
    points = [
        Path(line.split()[4].encode().decode("unicode_escape")) for line in mountinfo.splitlines() if line.strip()
    ]
    below = [point for point in points if point == path or path in point.parents]
    return sorted(below, key=lambda point: len(point.parts), reverse=True)


def remove_tree(path: Path) -> None:
    """Delete a folder of a build, unmounting first what a killed build left mounted in it.

    Deleting through a mount would delete what belongs to the host.
    """
    for point in mounts_below(path.absolute(), Path("/proc/self/mountinfo").read_text()):
        subprocess.run(["umount", "--lazy", str(point)], check=True)
    if path.exists():
        shutil.rmtree(path)
