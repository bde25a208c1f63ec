"""
The keys of a job's record that lists of many jobs are read without: read from a submission, and written into a record.

A job that was arranged with :class:`~slurm_client.models.JobDetails` shows these; of one without, what it runs on
follows from its nodes and CPUs. Everything else about a job is left to :mod:`slurm_client.testing.answers.encode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import flag, number, seconds, text, words
from slurm_client.models import JobDetails, JobNode, JobResources, JobSocket

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from slurm_client.models import Job

_TEXTS = (
    ("cpus_per_tres", "cpus_per_tres"),
    ("memory_per_tres", "memory_per_tres"),
    ("tres_bind", "tres_bind"),
    ("tres_freq", "tres_freq"),
    ("batch_features", "batch_features"),
    ("cluster_constraint", "cluster_features"),
    ("mail_user", "mail_user"),
    ("network", "network"),
    ("burst_buffer", "burst_buffer"),
    ("mcs_label", "mcs_label"),
    ("selinux_context", "selinux_context"),
    ("container_type", "container_type"),
)
"""Keys of a submission that are texts, and the fields of the details."""

_NUMBERS = (
    ("cores_per_socket", "cores_per_socket"),
    ("sockets_per_node", "sockets_per_node"),
    ("threads_per_core", "threads_per_core"),
    ("tasks_per_board", "tasks_per_board"),
    ("tasks_per_core", "tasks_per_core"),
    ("tasks_per_socket", "tasks_per_socket"),
    ("ntasks_per_tres", "tasks_per_tres"),
    ("memory_update_margin", "memory_update_margin"),
)
"""Keys that are numbers, and the fields; 0 is not set."""

_WRITTEN_TEXTS = {field: field for _, field in _TEXTS} | {
    "allocating_node": "allocating_node",
    "burst_buffer_state": "burst_buffer_state",
    "cron": "cron",
    "failed_node": "failed_node",
    "federation_origin": "federation_origin",
    "het_job_ids": "het_job_id_set",
}
_FREQUENCIES = {"low": 0x80000001, "medium": 0x80000002, "high": 0x80000003, "highm1": 0x80000004}
_GOVERNORS = {
    "conservative": 0x88000000,
    "ondemand": 0x84000000,
    "performance": 0x82000000,
    "powersave": 0x81000000,
    "schedutil": 0x80400000,
    "userspace": 0x80800000,
}
_NO_SPECIALIZATION = 0x7FFE
_EMPTY = JobDetails(allocating_node="localhost", profile=frozenset({"NOT_SET"}))


def read(body: Mapping[str, Any], user: str) -> JobDetails:
    """Return what a submission says of them."""
    found: dict[str, Any] = {field: text(body[key]) for key, field in _TEXTS if body.get(key)}
    found |= {field: number(body[key]) or None for key, field in _NUMBERS if body.get(key)}
    return JobDetails(
        **{"mail_user": user, **found, **_wished_frequency(text(body.get("cpu_frequency")))},
        allocating_node=_EMPTY.allocating_node,
        mail_types=frozenset(words(body.get("mail_type"))),
        profile=frozenset(words(body.get("profile"))) or _EMPTY.profile,
        delay_boot=seconds(body.get("delay_boot")) or None,
        memory_update_delay=seconds((number(body.get("memory_update_delay")) or 0) * 60) or None,
        reboot=flag(body.get("reboot")),
    )


def _wished_frequency(wish: str) -> dict[str, Any]:
    """Read ``least-most:governor``, of which one number or word is the most, and any may be a governor alone."""
    span, _, governor = wish.lower().partition(":")
    if span in _GOVERNORS:
        return {"cpu_frequency_governor": span}
    least, _, most = span.rpartition("-")
    found: dict[str, Any] = {
        field: int(value) if value.isdecimal() else value
        for field, value in (("cpu_frequency_minimum", least), ("cpu_frequency_maximum", most))
        if value
    }
    # Slurm sets a frequency itself, unless another governor is asked for.
    return {**found, "cpu_frequency_governor": governor or "userspace"} if found else {}


def written(job: Job, version: str) -> dict[str, Any]:
    """Return the keys of a record that say them."""
    found = job.details if hasattr(job, "details") else _EMPTY
    resources = found.resources or _resources(job)
    return {
        **{key: getattr(found, field) for field, key in _WRITTEN_TEXTS.items()},
        "mail_user": found.mail_user or job.user,
        "step_id": {
            "job_id": _number(job.id),
            "sluid": found.sluid or f"s{job.id:013d}",
            "step_het_component": _number(None),
            "step_id": "entire",
        },
        "association_id": found.association_id or 0,
        "job_resources": _old(resources) if version == "v0.0.40" else _written(resources, version),
        "billable_tres": _number(found.billable_tres if found.billable_tres is not None else _billed(job)),
        "job_size_str": list(found.job_size),
        "cores_per_socket": _number(found.cores_per_socket),
        "sockets_per_node": _number(found.sockets_per_node),
        "sockets_per_board": found.sockets_per_board or 0,
        "threads_per_core": _number(found.threads_per_core),
        "tasks_per_board": _number(found.tasks_per_board or 0),
        "tasks_per_core": _most(found.tasks_per_core),
        "tasks_per_socket": _most(found.tasks_per_socket),
        "tasks_per_tres": _number(found.tasks_per_tres or 0),
        "core_spec": found.core_spec or 0,
        "thread_spec": found.thread_spec or (_NO_SPECIALIZATION if found.core_spec is None else 0),
        "cpu_frequency_minimum": _frequency(found.cpu_frequency_minimum),
        "cpu_frequency_maximum": _frequency(found.cpu_frequency_maximum),
        "cpu_frequency_governor": _governor(found.cpu_frequency_governor),
        "memory_update_margin": found.memory_update_margin or 0,
        "memory_update_delay": _length(found.memory_update_delay) // 60,
        "mail_type": sorted(found.mail_types),
        "profile": sorted(found.profile),
        "delay_boot": _number(_length(found.delay_boot)),
        "reboot": found.reboot,
        "pre_sus_time": _number(_length(found.ran_before_suspension)),
        "resize_time": _moment(found.resize_time),
        "preemptable_time": _moment(found.preemptable_time),
        "federation_siblings_active": ",".join(found.federation_siblings_active),
        "federation_siblings_viable": ",".join(found.federation_siblings_viable),
    }


def _resources(job: Job) -> JobResources | None:
    """Return what a job was given that says no more than its nodes and CPUs: cores from the first, one on a socket."""
    if not job.nodes:
        return None
    each = max(1, (job.cpus or 1) // len(job.nodes))
    sockets = tuple(JobSocket(index=index, cores=(0,)) for index in range(each))
    return JobResources(
        node_list=job.node_list,
        node_count=len(job.nodes),
        cpus=job.cpus or 0,
        nodes=tuple(JobNode(name=name, cpus=each, sockets=sockets) for name in job.nodes),
        select_type=frozenset({"CORE"}),
        node_select_type=frozenset({"ONE_ROW"}),
    )


def _written(found: JobResources | None, version: str) -> dict[str, Any] | None:
    if found is None:
        return None
    # Newer parsers call what slurmctld counts as slurm.conf does.
    kinds = sorted(found.select_type)
    return {
        "cpus": found.cpus,
        "nodes": {
            "allocation": [_node(index, node) for index, node in enumerate(found.nodes)],
            "count": found.node_count,
            "list": found.node_list,
            "select_type": sorted(found.node_select_type),
            "whole": found.whole_nodes,
        },
        "select_type": [f"CR_{kind}" if kind == "CORE" else kind for kind in kinds] if version >= "v0.0.45" else kinds,
        "threads_per_core": _number(found.threads_per_core),
    }


def _node(index: int, node: JobNode) -> dict[str, Any]:
    return {
        "cpus": {"count": node.cpus or 0, "used": node.cpus_in_use},
        "index": index,
        "memory": {"allocated": node.memory_mib, "used": node.memory_in_use_mib},
        "name": node.name,
        "sockets": [
            {
                "cores": [
                    {"index": core, "status": ["ALLOCATED", "IN_USE"] if core in socket.cores_in_use else ["ALLOCATED"]}
                    for core in socket.cores
                ],
                "index": socket.index,
            }
            for socket in node.sockets
        ],
    }


def _old(found: JobResources | None) -> dict[str, Any]:
    """Write it as v0.0.40 does."""
    if found is None:
        return {}
    return {
        "allocated_cores": found.cpus,
        "allocated_cpus": 0,
        "allocated_hosts": found.node_count,
        "allocated_nodes": [
            {
                "cpus_used": node.cpus_in_use,
                "memory_allocated": node.memory_mib,
                "memory_used": node.memory_in_use_mib,
                "nodename": node.name,
                "sockets": {
                    str(socket.index): {
                        "cores": {
                            str(core): "allocated_and_in_use" if core in socket.cores_in_use else "allocated"
                            for core in socket.cores
                        }
                    }
                    for socket in node.sockets
                },
            }
            for node in found.nodes
        ],
        "nodes": found.node_list,
    }


def _billed(job: Job) -> float | None:
    return float(job.cpus or 0) if job.nodes else None


def _number(value: float | None) -> dict[str, Any]:
    return {"infinite": False, "number": value or 0, "set": value is not None}


def _most(value: int | None) -> dict[str, Any]:
    return {"infinite": value is None, "number": value or 0, "set": value is not None}


def _moment(value: datetime | None) -> dict[str, Any]:
    return _number(int(value.timestamp()) if value else 0)


def _length(value: timedelta | None) -> int:
    return int(value.total_seconds()) if value else 0


def _frequency(value: int | str | None) -> dict[str, Any]:
    return _number(_FREQUENCIES.get(value) if isinstance(value, str) else value)


def _governor(value: str) -> dict[str, Any]:
    bits = 0
    for name in value.split(",") if value else ():
        bits |= _GOVERNORS[name]
    return _number(bits or None)
