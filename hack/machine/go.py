"""Where Go is: on the PATH, or where its archive from go.dev is unpacked, which sudo's PATH leaves out."""

from __future__ import annotations

import shutil


def find() -> str | None:
    """Return the path of ``go``, or None."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
