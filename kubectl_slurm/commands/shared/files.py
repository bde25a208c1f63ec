"""Files that the user names, read as text up to a limit; what is wrong with one is said in a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from kubectl_slurm.errors import Refused

LARGEST: Final = 4 << 20
"""Bytes of a file."""


def read(filename: str) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises
    ------
    Refused
        It cannot be read, is too large, or is no text.
    """
    name = "standard input" if filename == "-" else filename
    try:
        if filename == "-":
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(filename).open("rb") as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        raise Refused(f"cannot read {name}: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise Refused(f"{name} is larger than {LARGEST >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not in UTF-8: byte {error.start + 1} is no text") from error
