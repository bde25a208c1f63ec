"""What a node shows of the jobs on it: its base state, CPUs, TRES and devices in use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slurm_client.models import NodeState
from slurm_client.testing.slurmctld import external, gres

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job, Node

_IN_USE_OR_NOT = frozenset({"IDLE", "MIXED", "ALLOCATED"})


def has_nodes(job: Job) -> bool:
    """Whether a job runs on its nodes."""
    return job.state.base == "RUNNING" and "COMPLETING" not in job.state.flags


def shown(node: Node, on_it: Iterable[Job]) -> Node:
    """Return a node as it is with these jobs on it."""
    jobs = list(on_it)
    running = [job for job in jobs if has_nodes(job)]
    used = min(node.cpus, sum(external.cpus_on(job, node.name) for job in running))
    completing = any("COMPLETING" in job.state.flags for job in jobs)
    base = node.state.base
    if base in _IN_USE_OR_NOT:
        base = "IDLE" if not used else "ALLOCATED" if used == node.cpus else "MIXED"
    flags = node.state.flags | {"COMPLETING"} if completing else node.state.flags - {"COMPLETING"}
    tres = {"cpu": used} if used else {}
    devices: dict[str, Any] = {}
    if node.gres:
        devices["gres_used"] = text = gres.shown_used(node, running)
        tres |= {key: count for key, count in gres.as_tres([text]).items() if count}
    return replace(
        node,
        state=NodeState(base, flags),
        alloc_cpus=used,
        tres_used=",".join(f"{key}={count}" for key, count in tres.items()),
        **devices,
    )
