"""
What a pending job wants: read from a submission, and written into a record.

Paths of its output are expanded here as slurmctld does it; which record a job is in belongs to
:mod:`slurm_client.testing.answers.encode`, and what becomes of it to :mod:`slurm_client.testing.world`.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import minutes, number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.models import Job

_TEXTS = (
    ("tres_per_job", "tres_per_job"),
    ("tres_per_node", "tres_per_node"),
    ("tres_per_socket", "tres_per_socket"),
    ("tres_per_task", "tres_per_task"),
    ("prefer", "prefer"),
    ("container", "container"),
    ("licenses", "licenses"),
    ("standard_input", "standard_input"),
    ("standard_output", "standard_output"),
    ("standard_error", "standard_error"),
    ("current_working_directory", "working_directory"),
)
"""Keys of a submission that are texts, and the fields of a job."""

_NUMBERS = (
    ("maximum_nodes", "max_nodes"),
    ("maximum_cpus", "max_cpus"),
    ("minimum_cpus_per_node", "minimum_cpus_per_node"),
    ("temporary_disk_per_node", "minimum_tmp_disk_mib"),
    ("tasks_per_node", "tasks_per_node"),
    ("segment_size", "segment_size"),
    ("required_switches", "switches"),
)
"""Keys that are numbers, and the fields of a job; 0 is not set."""

_EXPANDED = frozenset({"v0.0.40", "v0.0.41", "v0.0.42"})
"""Data parsers that write the paths of a job expanded, and have no other keys for them."""


def read(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job that a submission sets."""
    found: dict[str, Any] = {field: text(body[key]) for key, field in _TEXTS if body.get(key)}
    found |= {field: number(body[key]) or None for key, field in _NUMBERS if body.get(key)}
    first, dash, last = text(body.get("nodes")).partition("-")
    if first:
        found |= {"node_count": int(first), "max_nodes": int(last) if dash else int(first)}
    if body.get("contiguous"):
        found["contiguous"] = True
    if body.get("time_minimum"):
        found["time_minimum"] = minutes(body["time_minimum"])
    if body.get("wait_for_switch"):
        found["switches_wait"] = timedelta(seconds=number(body["wait_for_switch"]) or 0)
    return found


def written(job: Job, version: str) -> dict[str, Any]:
    """Return the keys of a record that say what a job wants."""
    expanded = {
        "input": job.standard_input_expanded or _path(job, job.standard_input),
        "output": job.standard_output_expanded or _path(job, job.standard_output),
        "error": job.standard_error_expanded or _path(job, job.standard_error),
    }
    least = job.time_minimum
    record: dict[str, Any] = {
        "max_nodes": _set(job.max_nodes),
        "max_cpus": _set(job.max_cpus),
        "minimum_cpus_per_node": _set(job.minimum_cpus_per_node),
        "minimum_tmp_disk_per_node": _set(job.minimum_tmp_disk_mib),
        "tasks_per_node": _set(job.tasks_per_node),
        "array_max_tasks": _set(job.array_max_tasks),
        "tres_per_job": job.tres_per_job,
        "tres_per_node": job.tres_per_node,
        "tres_per_socket": job.tres_per_socket,
        "tres_per_task": job.tres_per_task,
        "prefer": job.prefer,
        "contiguous": job.contiguous,
        "segment_size": job.segment_size or 0,
        "required_switches": job.switches or 0,
        "minimum_switches": job.switches or 0,
        "maximum_switch_wait_time": int(job.switches_wait.total_seconds()) if job.switches_wait else 0,
        "time_minimum": _set(int(least.total_seconds() // 60) if isinstance(least, timedelta) else 0),
        "accrue_time": _set(int(job.accrue_time.timestamp()) if job.accrue_time else 0),
        "last_sched_evaluation": _set(int(job.last_sched_evaluation.timestamp()) if job.last_sched_evaluation else 0),
        "priority_by_partition": [
            {"partition": each.partition, "priority": each.priority} for each in job.priority_by_partition
        ],
        "submit_line": job.submit_line,
        "container": job.container,
        "container_id": job.container_id,
        "licenses_allocated": job.licenses_allocated,
    }
    if version in _EXPANDED:
        return record | {f"standard_{stream}": path for stream, path in expanded.items()}
    return record | {f"std{key}_expanded": expanded[stream] for key, stream in _STREAMS}


_STREAMS = (("in", "input"), ("out", "output"), ("err", "error"))


def _set(value: int | None) -> dict[str, Any]:
    """Write a number of which 0 stands for nothing."""
    return {"set": True, "infinite": False, "number": value or 0}


def _path(job: Job, pattern: str) -> str:
    """Return a path with the number, the name and the user of the job in it."""
    known = {"j": str(job.id), "A": str(job.array_job_id or job.id), "x": job.name, "u": job.user, "%": "%"}
    known["a"] = "4294967294" if job.array_task_id is None else str(job.array_task_id)
    return re.sub(r"%([jAaxu%])", lambda found: known[found[1]], pattern)
