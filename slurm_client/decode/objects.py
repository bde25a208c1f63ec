"""Decoders of nodes, jobs and partitions; the rest is in :mod:`slurm_client.decode.service`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client.decode.read import (
    count,
    flag,
    is_short,
    limit,
    mapping,
    minutes,
    number,
    seconds,
    text,
    timestamp,
    words,
)
from slurm_client.models.job import ExitCode, Job, JobState, JobStateEntry
from slurm_client.models.node import Node, NodeState
from slurm_client.models.partition import Partition, PartitionState
from slurm_client.notation.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

S = TypeVar("S")


def _shared(make: Callable[[tuple[str, ...]], S], most: int) -> Callable[[tuple[str, ...]], S]:
    """Let equal states be one object, as long as they are short: they outlive the answer that they were in."""
    known = functools.lru_cache(maxsize=most)(make)
    return lambda found: known(found) if is_short(found) else make(found)


_node_state = _shared(NodeState.from_words, 1024)
_job_state = _shared(JobState.from_words, 1024)
_partition_state = _shared(PartitionState.from_words, 64)


class Nameless(ValueError):
    """An object of a list has no name or number by which it could be known."""


def named(value: Any) -> str:
    """Return the name of an object; Nameless if it has none."""
    name = text(value)
    if not name:
        raise Nameless
    return name


def node(raw: Mapping[str, Any]) -> Node:
    """Decode one entry of ``nodes``."""
    get = raw.get
    load = number(get("cpu_load"))
    return Node(
        name=named(get("name")),
        state=_node_state(words(get("state"))),
        reason=text(get("reason")),
        reason_set_by=text(get("reason_set_by_user")),
        reason_changed_at=timestamp(get("reason_changed_at")),
        resume_after=timestamp(get("resume_after")),
        comment=text(get("comment")),
        extra=text(get("extra")),
        instance_id=text(get("instance_id")),
        instance_type=text(get("instance_type")),
        address=text(get("address")),
        hostname=text(get("hostname")),
        port=number(get("port")),
        architecture=text(get("architecture")),
        operating_system=text(get("operating_system")),
        cluster=text(get("cluster_name")),
        cpus=count(get("cpus")),
        effective_cpus=count(get("effective_cpus")),
        alloc_cpus=count(get("alloc_cpus")),
        alloc_idle_cpus=count(get("alloc_idle_cpus")),
        boards=count(get("boards")),
        sockets=count(get("sockets")),
        cores=count(get("cores")),
        threads=count(get("threads")),
        real_memory_mib=count(get("real_memory")),
        alloc_memory_mib=count(get("alloc_memory")),
        specialized_memory_mib=count(get("specialized_memory")),
        temporary_disk_mib=count(get("temporary_disk")),
        weight=count(get("weight")),
        features=words(get("features")),
        active_features=words(get("active_features")),
        gres=text(get("gres")),
        gres_used=text(get("gres_used")),
        gres_drained=text(get("gres_drained")),
        tres=text(get("tres")),
        tres_used=text(get("tres_used")),
        partitions=words(get("partitions")),
        reservation=text(get("reservation")),
        topology=text(get("topology")),
        owner=text(get("owner")),
        mcs_label=text(get("mcs_label")),
        version=text(get("version")),
        boot_time=timestamp(get("boot_time")),
        slurmd_start_time=timestamp(get("slurmd_start_time")),
        next_state_after_reboot=words(get("next_state_after_reboot")),
        # Slurm counts hundredths.
        cpu_load=None if load is None else load / 100,
        free_memory_mib=number(get("free_mem")),
        last_busy=timestamp(get("last_busy")),
        current_watts=number(mapping(get("energy")).get("current_watts")),
    )


def job(raw: Mapping[str, Any]) -> Job:
    """Decode one entry of ``jobs``."""
    get = raw.get
    job_id = number(get("job_id"))
    if job_id is None:
        raise Nameless
    node_list = text(get("nodes"))
    # 0 is how Slurm says that a job belongs to no array and to no heterogeneous job.
    array_job_id = number(get("array_job_id")) or None
    het_job_id = number(get("het_job_id")) or None
    priority = limit(get("priority"))
    return Job(
        id=job_id,
        name=text(get("name")),
        user=text(get("user_name")),
        user_id=number(get("user_id")),
        group=text(get("group_name")),
        account=text(get("account")),
        partition=text(get("partition")),
        qos=text(get("qos")),
        reservation=text(get("resv_name")),
        state=_job_state(words(get("job_state"))),
        state_reason=text(get("state_reason")),
        state_description=text(get("state_description")),
        node_list=node_list,
        nodes=expand(node_list) if node_list else (),
        batch_host=text(get("batch_host")),
        scheduled_nodes=text(get("scheduled_nodes")),
        required_nodes=text(get("required_nodes")),
        excluded_nodes=text(get("excluded_nodes")),
        node_count=number(get("node_count")),
        cpus=number(get("cpus")),
        tasks=number(get("tasks")),
        cpus_per_task=number(get("cpus_per_task")),
        memory_per_node_mib=number(get("memory_per_node")),
        memory_per_cpu_mib=number(get("memory_per_cpu")),
        gres_detail=words(get("gres_detail")),
        tres_requested=text(get("tres_req_str")),
        tres_allocated=text(get("tres_alloc_str")),
        features=text(get("features")),
        licenses=text(get("licenses")),
        submit_time=timestamp(get("submit_time")),
        eligible_time=timestamp(get("eligible_time")),
        start_time=timestamp(get("start_time")),
        end_time=timestamp(get("end_time")),
        suspend_time=timestamp(get("suspend_time")),
        deadline=timestamp(get("deadline")),
        preempt_time=timestamp(get("preempt_time")),
        time_limit=minutes(get("time_limit")),
        batch=flag(get("batch_flag")),
        requeue=flag(get("requeue")),
        restarts=count(get("restart_cnt")),
        hold=flag(get("hold")),
        priority=priority,
        nice=number(get("nice")),
        dependency=text(get("dependency")),
        array_job_id=array_job_id,
        array_task_id=number(get("array_task_id")),
        array_tasks=text(get("array_task_string")),
        het_job_id=het_job_id,
        het_job_offset=number(get("het_job_offset")) if het_job_id else None,
        exit_code=_exit_code(get("exit_code")),
        derived_exit_code=_exit_code(get("derived_exit_code")),
        flags=frozenset(words(get("flags"))),
        shared=words(get("shared")),
        comment=text(get("comment")),
        admin_comment=text(get("admin_comment")),
        system_comment=text(get("system_comment")),
        extra=text(get("extra")),
        cluster=text(get("cluster")),
        command=text(get("command")),
        working_directory=text(get("current_working_directory")),
        standard_input=text(get("standard_input")),
        standard_output=text(get("standard_output")),
        standard_error=text(get("standard_error")),
        wckey=text(get("wckey")),
    )


def job_state(raw: Mapping[str, Any]) -> JobStateEntry:
    """Decode one entry of the cheap listing of job states."""
    return JobStateEntry(named(raw.get("job_id")), _job_state(words(raw.get("state"))))


def _exit_code(value: Any) -> ExitCode | None:
    if not isinstance(value, dict):
        return None
    signal = mapping(value.get("signal"))
    # Older parsers call the number of the signal `signal_id`.
    signal_id = number(signal.get("id", signal.get("signal_id")))
    return ExitCode(
        status=words(value.get("status")),
        return_code=number(value.get("return_code")),
        signal=signal_id or None,
        signal_name=text(signal.get("name")),
    )


def partition(raw: Mapping[str, Any]) -> Partition:
    """Decode one entry of ``partitions``."""
    get = raw.get
    nodes, maximums, defaults = mapping(get("nodes")), mapping(get("maximums")), mapping(get("defaults"))
    qos, accounts, priority = mapping(get("qos")), mapping(get("accounts")), mapping(get("priority"))
    node_list = text(nodes.get("configured"))
    return Partition(
        name=named(get("name")),
        state=_partition_state(words(mapping(get("partition")).get("state"))),
        node_list=node_list,
        nodes=expand(node_list) if node_list else (),
        node_sets=text(get("node_sets")),
        total_nodes=count(nodes.get("total")),
        total_cpus=count(mapping(get("cpus")).get("total")),
        tres=text(mapping(get("tres")).get("configured")),
        max_time=minutes(maximums.get("time")),
        default_time=minutes(defaults.get("time")),
        max_nodes=limit(maximums.get("nodes")),
        min_nodes=count(mapping(get("minimums")).get("nodes")),
        max_cpus_per_node=limit(maximums.get("cpus_per_node")),
        default_memory_per_cpu_mib=number(defaults.get("partition_memory_per_cpu")),
        default_memory_per_node_mib=number(defaults.get("partition_memory_per_node")),
        priority_job_factor=count(priority.get("job_factor")),
        priority_tier=count(priority.get("tier")),
        grace_time=seconds(get("grace_time")),
        qos=text(qos.get("assigned")),
        allowed_qos=text(qos.get("allowed")),
        allowed_accounts=text(accounts.get("allowed")),
        denied_accounts=text(accounts.get("deny")),
        allowed_groups=text(mapping(get("groups")).get("allowed")),
        alternate=text(get("alternate")),
        flags=frozenset(words(get("flags"))),
    )
