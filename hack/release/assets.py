"""What is attached to a published release: the files of its folder side by side, with checksums by these names.

A page of releases has no folders. What lies deeper, the bundle for OLM, is attached as its archive.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from hack.release.contents import provenance


class AssetsFailed(Exception):
    """The files of a release cannot lie side by side."""


def build(folder: Path, target: Path) -> list[Path]:
    """Put the files of a release side by side into a new folder; returns them.

    Raises
    ------
    AssetsFailed
        Two files have one name, the folder is no release, or the new folder is there.
    """
    if not (folder / provenance.STATEMENT).exists():
        raise AssetsFailed(f"{folder} has no {provenance.STATEMENT}: run `make release`")
    if target.exists():
        raise AssetsFailed(f"{target} exists: remove it")
    found: dict[str, Path] = {}
    for path in (folder / provenance.STATEMENT, *sorted(folder.glob("*/*"))):
        if path.is_dir():
            continue
        if path.name in found:
            raise AssetsFailed(f"two files have the name {path.name}: {found[path.name]} and {path}")
        found[path.name] = path
    target.mkdir(parents=True)
    for name, path in found.items():
        try:
            (target / name).hardlink_to(path)
        except OSError:
            # On another file system.
            shutil.copyfile(path, target / name)
    checksums = target / provenance.CHECKSUMS
    checksums.write_text(
        provenance.lines({name: provenance.digest(path) for name, path in found.items()}), encoding="utf-8"
    )
    return [*(target / name for name in found), checksums]
