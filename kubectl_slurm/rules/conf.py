"""The configuration: what slurmctld runs with, what the operator has rendered, and what differs. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

MOST_LINES: Final = 5000
LIVE: Final = "-config-good"
"""What follows a Cluster's name in the ConfigMap with the last configuration that slurmctld has loaded."""

RENDERED: Final = "-config"
"""The same of the one that the operator has written last."""


def texts(files: Mapping[str, str], only: str = "") -> Iterator[str]:
    """Lines of all files, each under its name, or of one of them without it."""
    for name in sorted(files):
        if only and name != only:
            continue
        if not only:
            yield f"# ==> {name} <=="
        yield from files[name].splitlines()
        if not only:
            yield ""


def difference(live: Mapping[str, str], rendered: Mapping[str, str], only: str = "") -> Iterator[str]:
    """What of the live files the rendered ones change, as a unified diff; nothing if they are alike."""
    for name in sorted({*live, *rendered}):
        if only and name != only:
            continue
        before, after = live.get(name, "").splitlines(), rendered.get(name, "").splitlines()
        yield from difflib.unified_diff(before, after, f"live/{name}", f"rendered/{name}", lineterm="")
