"""Look for known vulnerabilities: ``python -m hack.release.audit python`` in pinned packages, ``… images`` in a folder.

pip-audit asks PyPI about each package of requirements/*.txt; grype looks through each image of dist/VERSION. Both need
a database of others: what they could not look up fails an audit, as a vulnerability does, since it says nothing.
Of images only what Debian has mended counts: the rest is in no hand here.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hack.release import version
from hack.release.parameters import ROOT

PIP_AUDIT: Final = ROOT / "build/audit/venv/bin/pip-audit"
"""Made by `make audit`, from requirements/audit.txt."""

GRYPE: Final = "grype"
"""On the PATH: a program of its own, which the workflow of a release brings."""

SEVERITY: Final = "high"


class NothingToAudit(Exception):
    """The program or the files are missing; an audit of nothing finds nothing."""


def of_packages(requirements: Path, program: Path = PIP_AUDIT) -> Iterator[list[str]]:
    """Commands that audit pinned packages.

    Raises
    ------
    NothingToAudit
        pip-audit is not installed, or nothing is pinned.
    """
    if not program.exists():
        raise NothingToAudit(f"{program} is missing: run `make audit`")
    files = sorted(requirements.glob("*.txt"))
    if not files:
        raise NothingToAudit(f"{requirements} has no requirements")
    for file in files:
        # Strictly: without, a package that is not found is left out, and the audit passes.
        yield [
            *(str(program), "--strict", "--require-hashes", "--disable-pip"),
            *("--progress-spinner=off", "--aliases=on", f"--requirement={file}"),
        ]


def of_images(folder: Path, program: str = GRYPE) -> Iterator[list[str]]:
    """Commands that audit images of a release.

    Raises
    ------
    NothingToAudit
        grype is not installed, or there are no images.
    """
    found = shutil.which(program)
    if found is None:
        raise NothingToAudit(f"{program} is not on the PATH: install it, https://github.com/anchore/grype")
    archives = sorted(folder.glob("*.tar"))
    if not archives:
        raise NothingToAudit(f"{folder} has no images: run `make release PARTS=images`")
    for archive in archives:
        yield [found, f"oci-archive:{archive}", "--only-fixed", f"--fail-on={SEVERITY}", "--quiet"]


def run(commands: Iterator[list[str]]) -> int:
    """Run all of them, whichever fails; returns how many have failed."""
    failed = 0
    for command in commands:
        print(" ".join(command), flush=True)
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit one of both; 1 if something was found or could not be looked up, 2 if there is nothing to audit."""
    parser = argparse.ArgumentParser(prog="python -m hack.release.audit", description=__doc__)
    parser.add_argument("what", choices=["python", "images"])
    what = parser.parse_args(arguments).what
    images = ROOT / "dist" / version.current(ROOT) / "images"
    try:
        failed = run(of_packages(ROOT / "requirements") if what == "python" else of_images(images))
    except NothingToAudit as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
