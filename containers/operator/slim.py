"""Copy what the operator needs of a Debian into an empty folder: packages, those that they need, and nothing else.

It runs in a stage of the Dockerfile beside it, with the Python that it copies. dpkg's list of packages comes along, for
scanners. Left out are apt, dpkg, Perl and the programs that Debian calls essential: busybox stands in for the last.
Called as ``python3 slim.py FOLDER PACKAGE...``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

DPKG = Path("/var/lib/dpkg")
#: Packages that others name and an image that nobody installs into does not need.
LEFT_OUT = {"debconf", "dpkg", "debianutils", "tar"}
#: Files of packages that nothing here reads: converters between character sets, of which Python has its own.
UNUSED = re.compile(
    r"/usr/lib/[^/]+/gconv/|/usr/lib/python3[.]\d+/(pydoc_data|__phello__)/|/usr/share/doc/.*(?<!/copyright)$"
)
#: Files that belong to no package, or that packages make when they are installed.
MADE = ("/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/localtime")


def read_status() -> dict[str, dict[str, str]]:
    """Records of dpkg by package, each with its whole text under an empty name."""
    records = {}
    for text in (DPKG / "status").read_text().strip().split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", text, re.MULTILINE))
        records[fields["Package"]] = {**fields, "": text}
    return records


def closure(records: dict[str, dict[str, str]], wanted: list[str]) -> list[str]:
    """Packages, and all that they depend on."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in found or name in LEFT_OUT:
            continue
        found.add(name)
        needs = ",".join(records[name].get(field, "") for field in ("Pre-Depends", "Depends"))
        for need in filter(str.strip, needs.split(",")):
            either = [re.split(r"[ (:]", one.strip())[0] for one in need.split("|")]
            waiting += [one for one in either if one in records][:1]
    return sorted(found)


def copy(path: Path, root: Path) -> None:
    """Copy a file, a link or an empty folder, with its rights, to the same place below `root`."""
    target = root / str(path).lstrip("/")
    if path.is_dir() and not path.is_symlink():
        target.mkdir(parents=True, exist_ok=True)
        shutil.copystat(path, target)
    elif os.path.lexists(path) and not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def main(root: Path, wanted: list[str]) -> None:
    """Copy packages and dpkg's records of them."""
    records = read_status()
    names = closure(records, wanted)
    for link in ("bin", "lib", "lib64", "sbin"):
        if Path("/", link).is_symlink():
            copy(Path("/", link), root)
    for name in names:
        (files,) = (path for path in DPKG.glob(f"info/{name}*.list") if path.stem.partition(":")[0] == name)
        for line in files.read_text().splitlines():
            path = Path(os.path.normpath(line))
            # A list names files as they were before /bin became a link.
            if not UNUSED.search(line) and path != Path("/"):
                copy(path.parent.resolve() / path.name, root)
        copy(files, root)
    for made in MADE:
        copy(Path(made), root)
    (root / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").write_text("\n\n".join(records[name][""] for name in names) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
