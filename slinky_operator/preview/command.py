"""The command `slurm-operator preview`: a file in, lines for the pod's log out.

Both are compressed JSON. A ConfigMap holds a mebibyte, and a log is cut at long lines; the lines have a mark, since a
library may write to the same log.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from slinky_operator.preview import configuration

MARK: Final = "preview: "
"""In front of each line of the answer."""

_LINE: Final = 8000
"""Characters of a line."""

LARGEST: Final = 64 << 20
"""Bytes of the input, unpacked."""

UNUSABLE: Final = 2


def main(arguments: Sequence[str]) -> int:
    """Preview, print, and return the exit status.

    Parameters
    ----------
    arguments
        The command line after `preview`.
    """
    made = argparse.ArgumentParser(
        prog="slurm-operator preview",
        description="Render a changed Cluster and build the trial of it; kubectl slurm preflight runs this in a pod.",
    )
    made.add_argument("filename", metavar="FILE", type=Path, help="what is known of the Cluster, as gzip of JSON")
    try:
        given = unpacked(made.parse_args(arguments).filename.read_bytes())
        answer = configuration.preview(given)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"slurm-operator preview: the input cannot be used: {type(error).__name__}: {error}\n")
        return UNUSABLE
    sys.stdout.writelines(f"{line}\n" for line in lines(answer))
    return 0


def unpacked(data: bytes) -> Mapping[str, Any]:
    """The input.

    Raises
    ------
    ValueError
        It is larger than `LARGEST`, or no JSON object.
    """
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    text = reader.decompress(data, LARGEST)
    if reader.unconsumed_tail:
        raise ValueError(f"it is larger than {LARGEST} bytes")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - of the file, not of an argument
    return found


def lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer as lines of a log."""
    text = base64.b64encode(gzip.compress(json.dumps(answer).encode(), mtime=0)).decode()
    for begin in range(0, len(text), _LINE):
        yield f"{MARK}{text[begin : begin + _LINE]}"
