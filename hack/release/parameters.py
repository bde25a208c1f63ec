"""What a release is made with. The same parameters and the same tree give the same wheels and charts."""

from __future__ import annotations

import datetime
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.images.names import REGISTRY
from hack.release import version

ROOT: Final = version.ROOT


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a release.

    Attributes
    ----------
    version
        The project's.
    registry
        Where images and charts are to be found: the beginning of their names.
    source
        URL of the repository, empty if it is not known.
    revision
        The commit, empty without one.
    is_dirty
        Whether files differ from that commit.
    epoch
        Seconds since 1970: the time of everything in it.
    """

    version: str
    registry: str
    source: str
    revision: str
    is_dirty: bool
    epoch: int

    @property
    def created(self) -> str:
        """The time as RFC 3339 has it."""
        return datetime.datetime.fromtimestamp(self.epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def environment(self) -> dict[str, str]:
        """For programs that are to give the same files for the same input."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "PYTHONHASHSEED": "0"}


def read(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Parameters:
    """Read the parameters: ``REGISTRY``, ``SOURCE`` and ``SOURCE_DATE_EPOCH``, and what git says of the tree."""
    epoch = environ.get("SOURCE_DATE_EPOCH") or _git(root, "log", "-1", "--format=%ct") or "0"
    return Parameters(
        version.current(root),
        environ.get("REGISTRY") or REGISTRY,
        environ.get("SOURCE", ""),
        _git(root, "rev-parse", "HEAD"),
        bool(_git(root, "status", "--porcelain", "--untracked-files=no")),
        int(epoch),
    )


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
