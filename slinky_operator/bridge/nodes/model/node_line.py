"""The line by which Slurm makes nodes: of slurm.conf, as `POST new/node/` takes it (Slurm 26.05). Pure.

Nobody checks such a line but this module: slurmctld takes a node without CPUs, or with a semicolon in its name
(measured). So every word in it is made of letters, digits, dots and dashes.

- `NodeAddr` is an address: slurmctld would look a name up under its locks, for ten seconds at each allocation. It is
  slurmctld's own, with its port. slurmctld speaks to a node when a job is signalled or suspended. Where nobody answers
  the node is NOT_RESPONDING for ever; where slurmctld itself refuses, it is for a minute at most.
- One socket with as many cores as the node has CPUs: `CPUs` alone would be so many sockets of one core.
- `GresConf` names a file for each device, though there is none: Slurm knows only then which one a job has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from slinky_operator.bridge.nodes.model.sizes import Size

ADDRESS: Final = "127.0.0.1"
"""slurmctld itself."""

MOST_FILES: Final = 256
"""Devices of a kind that have an index; of more only the number counts."""

LONGEST_NAME: Final = 253

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_KIND: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(:[A-Za-z0-9_.-]+)?", re.ASCII)
_FEATURE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)

_TAKEN: Final = frozenset({"all", "default"})
"""Slurm takes these for all nodes, and for the values of other lines."""


def is_name(name: str) -> bool:
    """Whether Slurm can have a node of this name."""
    return _NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME and name not in _TAKEN


def node_line(name: str, size: Size, features: Sequence[str], port: int) -> str:
    """The line of one node: slurmctld refuses several in a line that has addresses (error 22, measured).

    Parameters
    ----------
    port
        Where slurmctld listens.

    Raises
    ------
    ValueError
        A word could not be told from what is around it.
    """
    kinds = [kind for kind, _ in size.gres]
    for words, shape in (([name], _NAME), (features, _FEATURE), (kinds, _KIND)):
        wrong = [word for word in words if shape.fullmatch(word) is None]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no word of a node's line")
    line = (
        f"NodeName={name} NodeAddr={ADDRESS} Port={port} Sockets=1 CoresPerSocket={size.cpus} "
        f"ThreadsPerCore=1 CPUs={size.cpus} RealMemory={size.memory_mib} State=EXTERNAL Feature={','.join(features)}"
    )
    if not size.gres:
        return line
    counts = ",".join(f"{kind}:{count}" for kind, count in size.gres)
    return f'{line} Gres={counts} GresConf="{"+".join(_record(kind, count) for kind, count in size.gres)}"'


def _record(kind: str, count: int) -> str:
    name, _, of_type = kind.partition(":")
    words = [f"name={name}", *([f"type={of_type}"] if of_type else []), f"count={count}"]
    files = (f"file={name}-{of_type or 'any'}-{number}" for number in range(count))
    return ",".join([*words, *files] if count <= MOST_FILES else words)
