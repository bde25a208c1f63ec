"""Decoders of jobs: of their records, and of the cheap list of their states."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slurm_client.decode.names import Nameless, named
from slurm_client.decode.read import (
    count,
    flag,
    is_short,
    items,
    limit,
    mapping,
    minutes,
    number,
    seconds,
    shared,
    text,
    timestamp,
    words,
)
from slurm_client.models.job import ExitCode, Job, JobState, JobStateEntry, PartitionPriority
from slurm_client.notation.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurm_client.models.job_details import JobDetails

_state = shared(JobState.from_words, 1024)
_flags: Callable[[tuple[str, ...]], frozenset[str]] = shared(frozenset, 1024)


def job(raw: Mapping[str, Any]) -> Job:
    """Decode one entry of ``jobs``; the rest of its keys is read in :mod:`slurm_client.decode.job_details`."""
    return job_with(raw, None)


def job_with(raw: Mapping[str, Any], details: JobDetails | None) -> Job:
    """Decode one entry of ``jobs`` whose details were decoded before, or are not asked for."""
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
        group_id=number(get("group_id")),
        account=text(get("account")),
        partition=text(get("partition")),
        qos=text(get("qos")),
        reservation=text(get("resv_name")),
        state=_state(words(get("job_state"))),
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
        exit_code=exit_code(get("exit_code")),
        derived_exit_code=exit_code(get("derived_exit_code")),
        flags=_flags(words(get("flags"))),
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
        # 0 is how Slurm says that nothing was asked for.
        max_nodes=number(get("max_nodes")) or None,
        max_cpus=number(get("max_cpus")) or None,
        minimum_cpus_per_node=number(get("minimum_cpus_per_node")) or None,
        minimum_tmp_disk_mib=number(get("minimum_tmp_disk_per_node")) or None,
        tasks_per_node=number(get("tasks_per_node")) or None,
        tres_per_job=text(get("tres_per_job")),
        tres_per_node=text(get("tres_per_node")),
        tres_per_socket=text(get("tres_per_socket")),
        tres_per_task=text(get("tres_per_task")),
        prefer=text(get("prefer")),
        contiguous=flag(get("contiguous")),
        segment_size=number(get("segment_size")) or None,
        # Parsers before v0.0.42 have the older name.
        switches=number(get("required_switches", get("minimum_switches"))) or None,
        switches_wait=seconds(get("maximum_switch_wait_time")) or None,
        time_minimum=minutes(get("time_minimum")) or None,
        accrue_time=timestamp(get("accrue_time")),
        last_sched_evaluation=timestamp(get("last_sched_evaluation")),
        priority_by_partition=_priorities(get("priority_by_partition")),
        array_max_tasks=number(get("array_max_tasks")) or None,
        # Parsers without these keys have expanded the others already.
        standard_input_expanded=text(get("stdin_expanded", get("standard_input"))),
        standard_output_expanded=text(get("stdout_expanded", get("standard_output"))),
        standard_error_expanded=text(get("stderr_expanded", get("standard_error"))),
        submit_line=text(get("submit_line")),
        container=text(get("container")),
        container_id=text(get("container_id")),
        licenses_allocated=text(get("licenses_allocated")),
        _details=details,
    )


def _priorities(value: Any) -> tuple[PartitionPriority, ...]:
    return tuple(
        PartitionPriority(text(entry.get("partition")), count(entry.get("priority")))
        for entry in map(mapping, items(value))
        if entry
    )


def job_state(raw: Mapping[str, Any]) -> JobStateEntry:
    """Decode one entry of the cheap listing of job states."""
    return JobStateEntry(named(raw.get("job_id")), _state(words(raw.get("state"))))


def job_state_by_array(raw: Mapping[str, Any]) -> JobStateEntry:
    """Decode one entry of that listing from v0.0.40, where a task has the number of its array."""
    entry = job_state(raw)
    return entry if entry.task is None else replace(entry, array_job_id=entry.number)


def exit_code(value: Any) -> ExitCode | None:
    """Decode how a job or a step ended."""
    if not isinstance(value, dict):
        return None
    signal = mapping(value.get("signal"))
    # Older parsers call the number of the signal `signal_id`.
    signal_id = number(signal.get("id", signal.get("signal_id")))
    status, name = words(value.get("status")), text(signal.get("name"))
    made = _exit_code if is_short((*status, name)) else ExitCode
    return made(status, number(value.get("return_code")), signal_id or None, name)


_exit_code = functools.lru_cache(maxsize=1024)(ExitCode)
"""Most jobs end alike: shared, thousands of them are one object, also for the garbage collector."""
