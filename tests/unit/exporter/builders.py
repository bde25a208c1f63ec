"""Nodes, jobs and snapshots for tests of the exporter."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from slurm_client.models import Job, JobState, Node, NodeState
from slurm_exporter.samples.family import Family, Labels, Samples

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def node(name: str, state: str = "IDLE", **values: Any) -> Node:
    """A node of one partition with 8 CPUs and 1 GiB."""
    defaults: dict[str, Any] = {"cpus": 8, "real_memory_mib": 1024, "partitions": ("all",)}
    return Node(name=name, state=NodeState.from_words(state.split("+")), **(defaults | values))


def job(number: int, state: str = "PENDING", **values: Any) -> Job:
    """A job of one CPU."""
    defaults: dict[str, Any] = {
        "partition": "all", "cpus": 1, "node_count": 1, "user": "alice", "account": "physics", "qos": "normal",
        "state_reason": "Resources" if state == "PENDING" else "None", "eligible_time": NOW,
    }  # fmt: skip
    return Job(id=number, state=JobState.from_words(state.split("+")), **(defaults | values))


def by_family(samples: Iterable[Samples]) -> dict[Family, dict[Labels, float]]:
    """Values by family."""
    return {each.family: dict(each.values) for each in samples}
