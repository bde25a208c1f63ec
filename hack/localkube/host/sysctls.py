"""Settings of the whole machine that every kubelet changes, and how they are put back when the last cluster ends.

A cluster that comes up beside another finds the kubelets' values, not the machine's: what is to be put back stands in
the records of the clusters that were there before it, also of one that was killed and never ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

NAMES: Final = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
PROC: Final = Path("/proc/sys")


def originals(records: Iterable[Path], proc: Path = PROC) -> dict[str, str]:
    """Return the machine's own values: as another cluster's record has them, or as they are if there is none."""
    for record in records:
        known: dict[str, str] = json.loads(record.read_text())["sysctls"]
        return known
    return {name: (proc / name).read_text().strip() for name in NAMES}


def put_back(values: Mapping[str, str], proc: Path = PROC) -> None:
    """Give the machine its own values again."""
    for name, value in values.items():
        (proc / name).write_text(value)
