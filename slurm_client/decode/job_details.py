"""
Decoders of the keys of a job that lists leave out: each has its field in :class:`~slurm_client.models.JobDetails`.

Keys without a field are in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from slurm_client.decode.jobs import job_with
from slurm_client.decode.read import (
    count,
    decimal,
    flag,
    items,
    mapping,
    number,
    seconds,
    shared,
    text,
    timestamp,
    words,
)
from slurm_client.models.job_details import JobDetails, JobNode, JobResources, JobSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from datetime import timedelta

    from slurm_client.models.job import Job

__all__ = ["LEFT_OUT", "detailed_job", "detailed_job_in_slices"]

LEFT_OUT: Mapping[str, str] = {
    "exclusive": "what `shared` says, in v0.0.40 and v0.0.41",
    "oversubscribe": "what `shared` says, in v0.0.40 and v0.0.41",
    "power": "always empty: no supported Slurm manages power for jobs",
    "show_flags": "how the list was asked for, and nothing about a job",
}
"""Keys of a job's record that neither a job nor its details have."""

_Socket = tuple[int, tuple[int, ...], tuple[int, ...]]

_FEW = 64
"""Sockets and cores of one node, up to which equal ones are shared: what is shared outlives the answer it was in."""

_NODES = 32
"""Nodes that are decoded before others may have their turn."""

_NO_SPECIALIZATION = 0x7FFE
"""Written as ``thread_spec`` where neither threads nor cores are left to the system."""

_FREQUENCIES = {0x80000001: "low", 0x80000002: "medium", 0x80000003: "high", 0x80000004: "highm1"}
_GOVERNORS = {
    0x08000000: "conservative",
    0x04000000: "ondemand",
    0x02000000: "performance",
    0x01000000: "powersave",
    0x00400000: "schedutil",
    0x00800000: "userspace",
}
_NO_FREQUENCY = frozenset({0, 0xFFFFFFFE, 0xFFFFFFFF})

_set: Callable[[tuple[str, ...]], frozenset[str]] = shared(frozenset, 1024)


def detailed_job(raw: Mapping[str, Any]) -> Job:
    """Decode one entry of ``jobs`` with all its keys."""
    work = detailed_job_in_slices(raw)
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: Job = end.value
            return found


def detailed_job_in_slices(raw: Mapping[str, Any]) -> Generator[None, None, Job]:
    """Decode one entry of ``jobs`` with all its keys, and yield now and then: it may have thousands of nodes."""
    resources = yield from _resources(raw.get("job_resources"))
    return job_with(raw, _details(raw, resources))


def _details(raw: Mapping[str, Any], resources: JobResources | None) -> JobDetails:
    get = raw.get
    core_spec, thread_spec = _specialization(get("core_spec"), get("thread_spec"))
    # 0 is how Slurm says that nothing was asked for, and that something has not happened.
    return JobDetails(
        sluid=text(mapping(get("step_id")).get("sluid")),
        association_id=number(get("association_id")) or None,
        allocating_node=text(get("allocating_node")),
        resources=resources,
        billable_tres=decimal(get("billable_tres")),
        job_size=words(get("job_size_str")),
        cores_per_socket=number(get("cores_per_socket")) or None,
        sockets_per_node=number(get("sockets_per_node")) or None,
        sockets_per_board=number(get("sockets_per_board")) or None,
        threads_per_core=number(get("threads_per_core")) or None,
        tasks_per_board=number(get("tasks_per_board")) or None,
        tasks_per_core=number(get("tasks_per_core")) or None,
        tasks_per_socket=number(get("tasks_per_socket")) or None,
        tasks_per_tres=number(get("tasks_per_tres")) or None,
        core_spec=core_spec,
        thread_spec=thread_spec,
        cpus_per_tres=text(get("cpus_per_tres")),
        memory_per_tres=text(get("memory_per_tres")),
        tres_bind=text(get("tres_bind")),
        tres_freq=text(get("tres_freq")),
        cpu_frequency_minimum=_frequency(get("cpu_frequency_minimum")),
        cpu_frequency_maximum=_frequency(get("cpu_frequency_maximum")),
        cpu_frequency_governor=_governor(get("cpu_frequency_governor")),
        memory_update_margin=number(get("memory_update_margin")) or None,
        memory_update_delay=_minutes(get("memory_update_delay")),
        batch_features=text(get("batch_features")),
        cluster_features=text(get("cluster_features")),
        mail_types=_set(words(get("mail_type"))),
        mail_user=text(get("mail_user")),
        profile=_set(words(get("profile"))),
        delay_boot=seconds(get("delay_boot")) or None,
        reboot=flag(get("reboot")),
        ran_before_suspension=seconds(get("pre_sus_time")) or None,
        resize_time=timestamp(get("resize_time")),
        preemptable_time=timestamp(get("preemptable_time")),
        failed_node=text(get("failed_node")),
        network=text(get("network")),
        burst_buffer=text(get("burst_buffer")),
        burst_buffer_state=text(get("burst_buffer_state")),
        mcs_label=text(get("mcs_label")),
        selinux_context=text(get("selinux_context")),
        container_type=text(get("container_type")),
        cron=text(get("cron")),
        het_job_ids=text(get("het_job_id_set")),
        federation_origin=text(get("federation_origin")),
        federation_siblings_active=words(get("federation_siblings_active")),
        federation_siblings_viable=words(get("federation_siblings_viable")),
    )


def _specialization(cores: Any, threads: Any) -> tuple[int | None, int | None]:
    """Return the cores, or the threads, that are left to the system: one number of Slurm's, under two keys."""
    spec = number(threads)
    if spec == _NO_SPECIALIZATION:
        return None, None
    return (None, spec) if spec else (number(cores), None)


def _minutes(value: Any) -> timedelta | None:
    found = number(value)
    return seconds(found * 60) if found else None


def _frequency(value: Any) -> int | str | None:
    found = number(value)
    if found is None or found in _NO_FREQUENCY:
        return None
    return _FREQUENCIES.get(found, found)


def _governor(value: Any) -> str:
    found = number(value)
    if found is None or found in _NO_FREQUENCY:
        return ""
    return ",".join(name for bit, name in _GOVERNORS.items() if found & bit)


def _resources(value: Any) -> Generator[None, None, JobResources | None]:
    raw = mapping(value)
    listed = raw.get("nodes")
    if not listed:
        return None
    nodes = mapping(listed)
    read, entries = _node, items(nodes.get("allocation"))
    if isinstance(listed, str):  # v0.0.40
        read, entries = _old_node, items(raw.get("allocated_nodes"))
    found: list[JobNode] = []
    for entry in entries:
        found.append(read(mapping(entry)))
        if len(found) % _NODES == 0:
            yield
    if isinstance(listed, str):
        # It writes the same number under one of two keys, by what Slurm counts.
        cpus = count(raw.get("allocated_cpus")) or count(raw.get("allocated_cores"))
        return JobResources(
            node_list=listed, node_count=count(raw.get("allocated_hosts")), cpus=cpus, nodes=tuple(found)
        )
    return JobResources(
        node_list=text(nodes.get("list")),
        node_count=count(nodes.get("count")),
        cpus=count(raw.get("cpus")),
        nodes=tuple(found),
        whole_nodes=flag(nodes.get("whole")),
        threads_per_core=number(raw.get("threads_per_core")) or None,
        select_type=_set(words(raw.get("select_type"))),
        node_select_type=_set(words(nodes.get("select_type"))),
    )


def _node(raw: Mapping[str, Any]) -> JobNode:
    cpus, memory = mapping(raw.get("cpus")), mapping(raw.get("memory"))
    return JobNode(
        name=text(raw.get("name")),
        cpus=number(cpus.get("count")),
        cpus_in_use=count(cpus.get("used")),
        memory_mib=count(memory.get("allocated")),
        memory_in_use_mib=count(memory.get("used")),
        sockets=_sockets([_socket(mapping(entry)) for entry in items(raw.get("sockets"))]),
    )


def _socket(raw: Mapping[str, Any]) -> _Socket:
    """Return the number of a socket, its cores that the job was given, and those in use."""
    cores = [(count(core.get("index")), words(core.get("status"))) for core in map(mapping, items(raw.get("cores")))]
    return (
        count(raw.get("index")),
        tuple([index for index, status in cores if "ALLOCATED" in status or "IN_USE" in status]),
        tuple([index for index, status in cores if "IN_USE" in status]),
    )


def _sockets(found: list[_Socket]) -> tuple[JobSocket, ...]:
    """Return sockets; of short lists, equal ones are one object for all jobs that have them."""
    few = len(found) <= _FEW and sum(len(cores) for _, cores, _ in found) <= _FEW
    return (_equal_sockets if few else _equal_sockets.__wrapped__)(tuple(found))


@functools.lru_cache(maxsize=4096)
def _equal_sockets(found: tuple[_Socket, ...]) -> tuple[JobSocket, ...]:
    return tuple([JobSocket(index=index, cores=cores, cores_in_use=used) for index, cores, used in found])


def _old_node(raw: Mapping[str, Any]) -> JobNode:
    return JobNode(
        name=text(raw.get("nodename")),
        cpus_in_use=count(raw.get("cpus_used")),
        memory_mib=count(raw.get("memory_allocated")),
        memory_in_use_mib=count(raw.get("memory_used")),
        sockets=_sockets(
            [
                _old_socket(count(index), mapping(mapping(socket).get("cores")))
                for index, socket in mapping(raw.get("sockets")).items()
            ]
        ),
    )


def _old_socket(index: int, cores: Mapping[str, Any]) -> _Socket:
    used = (core for core, status in cores.items() if status == "allocated_and_in_use")
    return index, _indices(cores), _indices(used)


def _indices(cores: Iterable[str]) -> tuple[int, ...]:
    return tuple(count(core) for core in cores)
