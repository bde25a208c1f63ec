"""Command line: write what follows from other code, or check that it is up to date."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from hack.client.package import blocking, coverage, reference
from hack.client.package.signatures import ROOT


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.client.package", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["write", "check"], default="write")
    what = parser.parse_args(arguments).what
    wanted = texts()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    kept = {blocking.TARGET / name for name in blocking.KEPT}
    gone = [path for path in sorted(blocking.TARGET.rglob("*.py")) if path not in wanted and path not in kept]
    if what == "check":
        for path in [*stale, *gone]:
            print(f"{path.relative_to(ROOT)} is out of date: run python -m hack.client.package", file=sys.stderr)
        return 1 if stale or gone else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in gone:
        path.unlink()
    return 0


def texts() -> dict[Path, str]:
    """Return every file that follows from other code."""
    pages = {coverage.TARGET: coverage.text(), reference.TARGET: reference.text()}
    return {path: formatted(path, text) for path, text in blocking.files().items()} | pages


def formatted(path: Path, text: str) -> str:
    """Return Python source as ruff writes it, imports sorted."""
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path), "-"]
    # Unused imports go too: a name may be used in a body only.
    fix = [*ruff, "check", "--fix-only", "--quiet", "--select=I,F401,UP037,TC005", *name]
    for command in (fix, [*ruff, "format", "--quiet", *name]):
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
