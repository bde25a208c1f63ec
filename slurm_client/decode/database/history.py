"""Decoders of jobs and steps as slurmdbd keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.database.read import span, tres
from slurm_client.decode.jobs import exit_code
from slurm_client.decode.names import Nameless
from slurm_client.decode.read import (
    count,
    flag,
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
from slurm_client.models.database.history import JobRecord, StepRecord
from slurm_client.models.database.usage import Usages
from slurm_client.models.job import JobState

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from slurm_client.models.database.usage import StepUsage

_state = shared(JobState.from_words, 256)
_flags: Callable[[tuple[str, ...]], frozenset[str]] = shared(frozenset, 256)


_STEPS = 16
"""Steps that are decoded before others may have their turn."""


def job(raw: Mapping[str, Any]) -> JobRecord:
    """Decode one entry of ``jobs``."""
    work = job_in_slices(raw)
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: JobRecord = end.value
            return found


def job_in_slices(raw: Mapping[str, Any]) -> Generator[None, None, JobRecord]:
    """Decode one entry of ``jobs``, which may have thousands of steps, and yield now and then."""
    get = raw.get
    job_id = number(get("job_id"))
    if job_id is None:
        raise Nameless
    steps = []
    for entry in items(get("steps")):
        if isinstance(entry, dict):
            steps.append(step(entry))
            if len(steps) % _STEPS == 0:
                yield
    state, time, comment = mapping(get("state")), mapping(get("time")), mapping(get("comment"))
    array, het = mapping(get("array")), mapping(get("het"))
    required, reservation, resources = mapping(get("required")), mapping(get("reservation")), mapping(get("tres"))
    # 0 is how Slurm says that a job belongs to no array, heterogeneous job, reservation or association.
    array_job_id, het_job_id = number(array.get("job_id")) or None, number(het.get("job_id")) or None
    running = mapping(mapping(mapping(array.get("limits")).get("max")).get("running"))
    return JobRecord(
        id=job_id,
        cluster=text(get("cluster")),
        name=text(get("name")),
        user=text(get("user")),
        group=text(get("group")),
        account=text(get("account")),
        partition=text(get("partition")),
        qos=text(get("qos")),
        qos_requested=text(get("qosreq")),
        wckey=text(mapping(get("wckey")).get("wckey")),
        association_id=number(mapping(get("association")).get("id")) or None,
        reservation=text(reservation.get("name")),
        reservation_id=number(reservation.get("id")) or None,
        state=_state(words(state.get("current"))),
        state_reason=text(state.get("reason")),
        exit_code=exit_code(get("exit_code")),
        derived_exit_code=exit_code(get("derived_exit_code")),
        submit_time=timestamp(time.get("submission")),
        eligible_time=timestamp(time.get("eligible")),
        start_time=timestamp(time.get("start")),
        end_time=timestamp(time.get("end")),
        elapsed=seconds(time.get("elapsed")),
        suspended=seconds(time.get("suspended")),
        planned=seconds(time.get("planned")),
        user_time=span(time.get("user")),
        system_time=span(time.get("system")),
        total_time=span(time.get("total")),
        time_limit=minutes(time.get("limit")),
        node_list=_node_list(get("nodes")),
        node_count=count(get("allocation_nodes")),
        tres_requested=tres(resources.get("requested")),
        tres_allocated=tres(resources.get("allocated")),
        used_gres=text(get("used_gres")),
        required_cpus=count(required.get("CPUs")),
        memory_per_cpu_mib=number(required.get("memory_per_cpu")),
        memory_per_node_mib=number(required.get("memory_per_node")),
        array_job_id=array_job_id,
        array_task_id=number(array.get("task_id")) if array_job_id else None,
        array_tasks=text(array.get("task")),
        array_max_tasks=number(running.get("tasks")) or None,
        het_job_id=het_job_id,
        het_job_offset=number(het.get("job_offset")) if het_job_id else None,
        constraints=text(get("constraints")),
        licenses=text(get("licenses")),
        priority=limit(get("priority")),
        hold=flag(get("hold")),
        flags=_flags(words(get("flags"))),
        killed_by=text(get("kill_request_user")),
        failed_node=text(get("failed_node")),
        restarts=count(get("restart_cnt")),
        block=text(get("block")),
        mcs_label=text(mapping(get("mcs")).get("label")),
        container=text(get("container")),
        extra=text(get("extra")),
        comment=text(comment.get("job")),
        admin_comment=text(comment.get("administrator")),
        system_comment=text(comment.get("system")),
        submit_line=text(get("submit_line")),
        working_directory=text(get("working_directory")),
        standard_input=text(get("stdin")),
        standard_output=text(get("stdout")),
        standard_error=text(get("stderr")),
        standard_input_expanded=text(get("stdin_expanded")),
        standard_output_expanded=text(get("stdout_expanded")),
        standard_error_expanded=text(get("stderr_expanded")),
        script=text(get("script")),
        sluid=text(get("sluid")),
        steps=tuple(steps),
    )


def step(raw: Mapping[str, Any]) -> StepRecord:
    """Decode one entry of a job's ``steps``; one without an id is kept, as it belongs to the job."""
    get = raw.get
    names, time, nodes = mapping(get("step")), mapping(get("time")), mapping(get("nodes"))
    resources = mapping(get("tres"))
    energy = mapping(mapping(get("statistics")).get("energy"))
    return StepRecord(
        id=_step_id(names.get("id")),
        name=text(names.get("name")),
        state=_state(words(get("state"))),
        exit_code=exit_code(get("exit_code")),
        killed_by=text(get("kill_request_user")),
        start_time=timestamp(time.get("start")),
        end_time=timestamp(time.get("end")),
        elapsed=seconds(time.get("elapsed")),
        suspended=seconds(time.get("suspended")),
        user_time=span(time.get("user")),
        system_time=span(time.get("system")),
        total_time=span(time.get("total")),
        node_list=_node_list(nodes.get("range")),
        node_count=count(nodes.get("count")),
        tasks=count(mapping(get("tasks")).get("count")),
        task_distribution=text(mapping(get("task")).get("distribution")),
        tres_allocated=tres(resources.get("allocated")),
        read=_usage(resources.get("requested")),
        written=_usage(resources.get("consumed")),
        energy_joules=number(energy.get("consumed")),
        submit_line=text(get("submit_line")),
    )


def _node_list(value: Any) -> str:
    """Read a hostlist; Slurm has a sentence where there are no nodes."""
    found = text(value)
    return "" if found == "None assigned" else found


def _step_id(value: Any) -> str:
    """Read a text, or the object that some parsers have."""
    raw = mapping(value)
    if not raw:
        return text(value)
    return f"{text(raw.get('job_id'))}.{text(raw.get('step_id'))}"


def _usage(value: Any) -> Sequence[StepUsage]:
    """Join the lists of averages, sums and maxima of the same resources."""
    raw = mapping(value)
    average, total, most = (_by_resource(raw.get(key)) for key in ("average", "total", "max"))
    rows = []
    for kind, name in dict.fromkeys([*average, *total, *most]):
        place = kind, name
        largest = mapping(most.get(place))
        rows.append(
            (
                kind,
                name,
                number(mapping(average.get(place)).get("count")),
                number(mapping(total.get(place)).get("count")),
                number(largest.get("count")),
                text(largest.get("node")),
                number(largest.get("task")),
            )
        )
    return Usages(rows) if rows else ()


def _by_resource(value: Any) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (text(raw.get("type")), text(raw.get("name"))): raw
        for raw in map(mapping, items(value))
        if text(raw.get("type"))
    }
