"""
Canonical models as slurmrestd writes them.

Records start from real ones, recorded from Slurm and kept in ``records.json``, so that nothing a reader might look at
is missing; which of their keys a data parser has comes from the generated wire types.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from datetime import timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any

from slurm_client import wire
from slurm_client.models.values import INFINITE
from slurm_client.notation import gres
from slurm_client.testing.answers import details, wishes

if TYPE_CHECKING:
    from datetime import datetime

    from slurm_client.models import ExitCode, Job, JobNode, License, Node, Partition, Reservation, State


_INDICES = re.compile(r"\(IDX:([^)]*)\)")


@functools.cache
def records() -> dict[str, Any]:
    """Return the recorded objects, by kind."""
    found: dict[str, Any] = json.loads(resources.files(__package__ or __name__).joinpath("records.json").read_text())
    return found


def number(value: object) -> dict[str, Any]:
    """Write a number with its marks for unset and infinite."""
    return {
        "set": isinstance(value, int | float),
        "infinite": value is INFINITE,
        "number": value if isinstance(value, int | float) else 0,
    }


def moment(value: datetime | None) -> dict[str, Any]:
    """Write a time."""
    return {"set": True, "infinite": False, "number": int(value.timestamp()) if value else 0}


def span(value: object) -> dict[str, Any]:
    """Write a limit of time in minutes."""
    return number(int(value.total_seconds() // 60) if isinstance(value, timedelta) else value)


def words(state: State) -> list[str]:
    """Write a state, base word first."""
    return [state.base, *sorted(state.flags)]


def _kept(record: dict[str, Any], version: str, model: str) -> dict[str, Any]:
    known = wire.fields(version, model)
    return {key: value for key, value in record.items() if key in known}


def node(value: Node, version: str) -> dict[str, Any]:
    """Write an entry of ``nodes``."""
    record = copy.deepcopy(records()["node"])
    record |= {
        "name": value.name,
        "state": words(value.state),
        "reason": value.reason,
        "reason_set_by_user": value.reason_set_by,
        "reason_changed_at": moment(value.reason_changed_at),
        "resume_after": moment(value.resume_after),
        "comment": value.comment,
        "extra": value.extra,
        "instance_id": value.instance_id,
        "instance_type": value.instance_type,
        "address": value.address,
        "hostname": value.hostname,
        "port": value.port or 0,
        "architecture": value.architecture,
        "operating_system": value.operating_system,
        "cluster_name": value.cluster,
        "cpus": value.cpus,
        "effective_cpus": value.effective_cpus,
        "alloc_cpus": value.alloc_cpus,
        "alloc_idle_cpus": value.alloc_idle_cpus,
        "boards": value.boards,
        "sockets": value.sockets,
        "cores": value.cores,
        "threads": value.threads,
        "real_memory": value.real_memory_mib,
        "alloc_memory": value.alloc_memory_mib,
        "specialized_memory": value.specialized_memory_mib,
        "temporary_disk": value.temporary_disk_mib,
        "weight": value.weight,
        "features": list(value.features),
        "active_features": list(value.active_features),
        "gres": value.gres,
        "gres_used": value.gres_used,
        "gres_drained": value.gres_drained,
        "tres": value.tres,
        "tres_used": value.tres_used,
        "partitions": list(value.partitions),
        "reservation": value.reservation,
        "topology": value.topology,
        "owner": value.owner,
        "mcs_label": value.mcs_label,
        "version": value.version,
        "boot_time": moment(value.boot_time),
        "slurmd_start_time": moment(value.slurmd_start_time),
        "last_busy": moment(value.last_busy),
        "next_state_after_reboot": list(value.next_state_after_reboot),
        "cpu_load": round((value.cpu_load or 0) * 100),
        "free_mem": number(value.free_memory_mib),
    }
    record["energy"]["current_watts"] = number(value.current_watts)
    return _kept(record, version, "Node")


def job(value: Job, version: str) -> dict[str, Any]:
    """Write an entry of ``jobs``."""
    record = copy.deepcopy(records()["job"])
    record |= {
        "job_id": value.id,
        "name": value.name,
        "user_name": value.user,
        "user_id": value.user_id or 0,
        "group_name": value.group,
        "group_id": value.group_id or 0,
        "account": value.account,
        "partition": value.partition,
        "qos": value.qos,
        "resv_name": value.reservation,
        "job_state": words(value.state),
        "state_reason": value.state_reason,
        "state_description": value.state_description,
        "nodes": value.node_list,
        "batch_host": value.batch_host,
        "scheduled_nodes": value.scheduled_nodes,
        "required_nodes": value.required_nodes,
        "excluded_nodes": value.excluded_nodes,
        "node_count": number(value.node_count),
        "cpus": number(value.cpus),
        "tasks": number(value.tasks),
        "cpus_per_task": number(value.cpus_per_task),
        "memory_per_node": number(value.memory_per_node_mib),
        "memory_per_cpu": number(value.memory_per_cpu_mib),
        "gres_detail": list(value.gres_detail),
        "tres_req_str": value.tres_requested,
        "tres_alloc_str": value.tres_allocated,
        "features": value.features,
        "licenses": value.licenses,
        "submit_time": moment(value.submit_time),
        "eligible_time": moment(value.eligible_time),
        "start_time": moment(value.start_time),
        "end_time": moment(value.end_time),
        "suspend_time": moment(value.suspend_time),
        "deadline": moment(value.deadline),
        "preempt_time": moment(value.preempt_time),
        "time_limit": span(value.time_limit),
        "batch_flag": value.batch,
        "requeue": value.requeue,
        "restart_cnt": value.restarts,
        "hold": value.hold,
        "priority": number(value.priority),
        "nice": value.nice or 0,
        "dependency": value.dependency,
        "array_job_id": number(value.array_job_id or 0),
        "array_task_id": number(value.array_task_id),
        "array_task_string": value.array_tasks,
        "het_job_id": number(value.het_job_id or 0),
        "het_job_offset": number(value.het_job_offset or 0),
        "exit_code": _exit_code(value.exit_code),
        "derived_exit_code": _exit_code(value.derived_exit_code),
        "flags": sorted(value.flags),
        "shared": list(value.shared),
        "comment": value.comment,
        "admin_comment": value.admin_comment,
        "system_comment": value.system_comment,
        "extra": value.extra,
        "cluster": value.cluster,
        "command": value.command,
        "current_working_directory": value.working_directory,
        "standard_input": value.standard_input,
        "standard_output": value.standard_output,
        "standard_error": value.standard_error,
        "wckey": value.wckey,
        **wishes.written(value, version),
        **details.written(value, version),
    }
    return _kept(record, version, "JobInfo")


def _exit_code(value: ExitCode | None) -> dict[str, Any]:
    return {
        "status": list(value.status) if value else ["SUCCESS"],
        "return_code": number((value.return_code if value else 0) or 0),
        "signal": {"id": number(value.signal if value else None), "name": value.signal_name if value else ""},
    }


def partition(value: Partition, nodes: list[Node], version: str) -> dict[str, Any]:
    """Write an entry of ``partitions``; its nodes are those that name it."""
    record = copy.deepcopy(records()["partition"])
    members = [each for each in nodes if value.name in each.partitions]
    cpus = sum(each.cpus for each in members)
    record |= {
        "name": value.name,
        "node_sets": value.node_sets,
        "flags": sorted(value.flags),
        "alternate": value.alternate,
        "grace_time": int(value.grace_time.total_seconds()) if value.grace_time else 0,
        "preempt_mode": list(value.preempt_modes),
    }
    record["nodes"] |= {
        "configured": value.node_list or ",".join(each.name for each in members),
        "total": value.total_nodes or len(members),
    }
    record["cpus"]["total"] = value.total_cpus or cpus
    record["partition"]["state"] = words(value.state)
    record["tres"]["configured"] = value.tres or f"cpu={cpus},node={len(members)},billing={cpus}"
    record["maximums"] |= {
        "time": span(value.max_time),
        "nodes": number(value.max_nodes),
        "cpus_per_node": number(value.max_cpus_per_node),
    }
    record["defaults"] |= {
        "time": span(value.default_time),
        "partition_memory_per_cpu": number(value.default_memory_per_cpu_mib),
        "partition_memory_per_node": number(value.default_memory_per_node_mib),
    }
    record["minimums"]["nodes"] = value.min_nodes
    record["priority"] |= {"job_factor": value.priority_job_factor, "tier": value.priority_tier}
    record["qos"] |= {"assigned": value.qos, "allowed": value.allowed_qos}
    record["accounts"] |= {"allowed": value.allowed_accounts, "deny": value.denied_accounts}
    record["groups"]["allowed"] = value.allowed_groups
    if version < "v0.0.45":
        record["cpus"]["task_binding"] = 0
        del record["partition"]["exclusive"], record["partition"]["oversubscribe"]
    return _kept(record, version, "PartitionInfo")


def ping(hostname: str, responding: bool, version: str) -> dict[str, Any]:
    """Write an entry of ``pings``; the key ``pinged`` ends with v0.0.44."""
    record: dict[str, Any] = {"hostname": hostname, "latency": 1000}
    if version < "v0.0.45":
        record |= {"pinged": "UP" if responding else "DOWN", "mode": "primary"}
    else:
        record["status"] = "No error" if responding else "Unable to contact slurm controller"
    if version >= "v0.0.42":
        record |= {"responding": responding, "primary": True}
    return record


def statistics(now: datetime, counts: dict[str, int], version: str) -> dict[str, Any]:
    """Write ``statistics``."""
    record = copy.deepcopy(records()["statistics"])
    record |= {"req_time": moment(now), "job_states_ts": moment(now), **counts}
    if version == "v0.0.40":
        for entry in (*record["rpcs_by_message_type"], *record["rpcs_by_user"]):
            entry["average_time"] = entry["average_time"]["number"]
            for key in ("queued", "dropped", "cycle_last", "cycle_max"):
                entry.pop(key, None)
    return _kept(record, version, "StatsMsg")


def reservation(value: Reservation) -> dict[str, Any]:
    """Write an entry of ``reservations``."""
    return {
        "accounts": ",".join(value.accounts),
        "burst_buffer": value.burst_buffer,
        "core_count": value.core_count,
        "core_specializations": [],
        "end_time": moment(value.end_time),
        "features": value.features,
        "flags": sorted(value.flags),
        "groups": ",".join(value.groups),
        "licenses": value.licenses,
        "max_start_delay": int(value.max_start_delay.total_seconds()) if value.max_start_delay else 0,
        "name": value.name,
        "node_count": value.node_count,
        "node_list": value.node_list,
        "partition": value.partition,
        "purge_completed": {"time": number(None)},
        "start_time": moment(value.start_time),
        "tres": value.tres,
        "users": ",".join(value.users),
    }


def license_(value: License, version: str) -> dict[str, Any]:
    """Write an entry of ``licenses``."""
    record = {
        "Nodes": value.nodes,
        "LicenseName": value.name,
        "Total": value.total,
        "Used": value.used,
        "Free": value.free,
        "Remote": value.is_remote,
        "Reserved": value.reserved,
        "LastConsumed": value.last_consumed,
        "LastDeficit": value.last_deficit,
        "LastUpdate": int(value.last_update.timestamp()) if value.last_update else 0,
    }
    return _kept(record, version, "License")


def layout(value: Node, given: JobNode | None = None, devices: str = "") -> dict[str, Any]:
    """
    Write what a job was given on a node.

    Parameters
    ----------
    value
        The node.
    given
        CPUs and memory of the job there; ``None`` if it has all of the node.
    devices
        Its generic resources there, as in ``gres_detail``.
    """
    cores = [core for socket in given.sockets for core in socket.cores] if given is not None else range(value.cpus)
    return {
        "node": value.name,
        "sockets_per_node": value.sockets,
        "cores_per_socket": value.cores,
        "mem_alloc": given.memory_mib if given is not None else value.alloc_memory_mib,
        "core_bitmap": hex(sum(1 << core for core in cores)),
        "channel": number(None),
        "gres": [
            {"name": entry.name, "type": entry.type, "count": entry.count, "index": index}
            for entry, index in zip(gres.parse(devices), _INDICES.findall(devices), strict=True)
        ],
    }
