"""Jobs that are submitted or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.encode.values import listed, minutes, moment, set_number, without_none

if TYPE_CHECKING:
    from slurm_client.models import JobSpec
    from slurm_client.wire.v0_0_45 import models as wire_models

_PATH = "/usr/local/bin:/usr/bin:/bin"


def job(spec: JobSpec) -> wire_models.JobDescMsg:
    """Write what is wished about a job."""
    body: wire_models.JobDescMsg = {}
    plain: dict[str, Any] = {
        "script": spec.script,
        "name": spec.name,
        "partition": spec.partition,
        "account": spec.account,
        "qos": spec.qos,
        "reservation": spec.reservation,
        "nodes": spec.nodes,
        "tasks": spec.tasks,
        "tasks_per_node": spec.tasks_per_node,
        "cpus_per_task": spec.cpus_per_task,
        "memory_per_node": set_number(spec.memory_per_node_mib),
        "memory_per_cpu": set_number(spec.memory_per_cpu_mib),
        "tres_per_node": spec.tres_per_node,
        "constraints": spec.constraints,
        "required_nodes": listed(spec.required_nodes),
        "excluded_nodes": listed(spec.excluded_nodes),
        "licenses": spec.licenses,
        "time_limit": minutes(spec.time_limit),
        "begin_time": moment(spec.begin_time),
        "dependency": spec.dependency,
        "array": spec.array,
        "priority": set_number(spec.priority),
        "nice": spec.nice,
        "hold": spec.hold,
        "requeue": spec.requeue,
        "environment": None
        if spec.environment is None
        else [f"{key}={value}" for key, value in spec.environment.items()],
        "current_working_directory": spec.working_directory,
        "argv": listed(spec.arguments),
        "standard_input": spec.standard_input,
        "standard_output": spec.standard_output,
        "standard_error": spec.standard_error,
        "comment": spec.comment,
        "admin_comment": spec.admin_comment,
        "extra": spec.extra,
        "wckey": spec.wckey,
        **(spec.other or {}),
    }
    body.update(without_none(plain))  # type: ignore[typeddict-item]
    return body


def submission(spec: JobSpec) -> wire_models.JobSubmitReq:
    """Write a submission; the script goes beside the job, where all parsers look for it."""
    described = job(spec)
    script = described.pop("script", "")
    described.setdefault("environment", [f"PATH={_PATH}"])
    described.setdefault("current_working_directory", "/")
    return {"script": script, "job": described}
