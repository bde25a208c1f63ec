"""Why a job waits that no node is large enough for, in numbers: Slurm says PartitionConfig, and no more. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from slurm_client.models import Node
from slurm_client.notation import gres

_GRES: Final = re.compile(r"gres/([^=,]+)=([0-9]{1,9})")


def different(nodes: Iterable[Node], word: str) -> tuple[Node, ...]:
    """One node of each size, of those that pods may have."""
    found: dict[tuple[int, int, str], Node] = {}
    for node in nodes:
        if node.is_external and word in node.features:
            _ = found.setdefault((node.cpus, node.real_memory_mib, node.gres), node)
    return tuple(found.values())


def too_large(parts: Iterable[Mapping[str, Any]], nodes: Sequence[Node]) -> str:
    """What a pod asks for and no node has; empty if some node has it.

    Parameters
    ----------
    parts
        The spec of the SlurmJob, or of each of its components.
    nodes
        One of each size.
    """
    for part in parts:
        given = part.get("parameters") or {}
        cpus, per_cpu = part.get("cpusPerTask"), given.get("memory_per_cpu")
        cpus, memory = (cpus, cpus * per_cpu) if isinstance(cpus, int) and isinstance(per_cpu, int) else (1, 0)
        counts = {name: int(count) for name, count in _GRES.findall(str(given.get("tres_per_task") or ""))}
        if nodes and not any(_has(one, cpus, memory, counts) for one in nodes):
            largest = max(nodes, key=lambda one: (one.cpus, one.real_memory_mib))
            asked = _words(cpus, memory, [f"{name}:{count}" for name, count in counts.items()])
            has = _words(largest.cpus, largest.real_memory_mib, [largest.gres] if largest.gres else [])
            return f"a pod asks for {asked}, and no node has all of that: the largest, {largest.name}, has {has}"
    return ""


def _has(node: Node, cpus: int, memory: int, counts: Mapping[str, int]) -> bool:
    there: dict[str, int] = {}
    for one in _parsed(node.gres):
        for name in {one.name, f"{one.name}:{one.type}"}:
            there[name] = there.get(name, 0) + one.count
    enough = all(there.get(name, 0) >= count for name, count in counts.items())
    return node.cpus >= cpus and node.real_memory_mib >= memory and enough


def _parsed(text: str) -> tuple[Any, ...]:
    try:
        return gres.parse(text)
    except ValueError:
        return ()


def _words(cpus: int, memory: int, more: Sequence[str]) -> str:
    return ", ".join((f"{cpus} CPUs", f"{memory} MiB", *(one[:100] for one in more)))
