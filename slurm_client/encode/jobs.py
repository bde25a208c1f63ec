"""Jobs that are submitted or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.encode.values import listed, minutes, moment, seconds, set_number, without_none

if TYPE_CHECKING:
    from slurm_client.models import JobSpec
    from slurm_client.wire.v0_0_45 import models as wire_models

PATH = "/usr/local/bin:/usr/bin:/bin"
"""``PATH`` of a job that has none."""

DIRECTORY = "/tmp"  # noqa: S108 - every user may write there, on every node
"""Working directory of a job that has none."""

EXTERNAL = "EXTERNAL_JOB"
"""Flag of a job without a script: Slurm gives it nodes, and starts nothing there."""

_PLAIN = (
    "name", "partition", "account", "qos", "reservation", "nodes", "tasks", "tasks_per_node", "tasks_per_core",
    "tasks_per_socket", "cpus_per_task", "minimum_cpus", "minimum_cpus_per_node", "minimum_nodes", "sockets_per_node",
    "cores_per_socket", "threads_per_core", "cpus_per_tres", "memory_per_tres", "tres_per_job", "tres_per_node",
    "tres_per_socket", "tres_per_task", "tres_bind", "tres_freq", "constraints", "prefer", "batch_features",
    "cluster_constraint", "core_specification", "thread_specification", "licenses", "dependency", "array", "nice",
    "hold", "requeue", "standard_input", "standard_output", "standard_error", "comment", "admin_comment", "extra",
    "wckey", "script", "account_gather_frequency", "burst_buffer", "container", "container_id", "container_type",
    "contiguous", "cpu_frequency", "distribution", "kill_on_node_fail", "mail_user", "mcs_label", "memory_binding",
    "memory_update_margin", "memory_update_delay", "network", "oom_kill_step", "overcommit", "reboot",
    "selinux_context", "wait_all_nodes",
)  # fmt: skip
"""Fields that the data parsers call the same, and take as they are."""


def job(spec: JobSpec) -> wire_models.JobDescMsg:
    """Write what is wished about a job."""
    body: wire_models.JobDescMsg = {}
    plain: dict[str, Any] = {
        **{name: getattr(spec, name) for name in _PLAIN},
        "memory_per_node": set_number(spec.memory_per_node_mib),
        "memory_per_cpu": set_number(spec.memory_per_cpu_mib),
        "temporary_disk_per_node": spec.temporary_disk_mib,
        "ntasks_per_tres": spec.tasks_per_gpu,
        "required_nodes": listed(spec.required_nodes),
        "excluded_nodes": listed(spec.excluded_nodes),
        "time_limit": minutes(spec.time_limit),
        "time_minimum": minutes(spec.time_minimum),
        "begin_time": moment(spec.begin_time),
        # Alone among times, it is a plain number.
        "deadline": None if spec.deadline is None else int(spec.deadline.timestamp()),
        "delay_boot": seconds(spec.delay_boot),
        "priority": set_number(spec.priority),
        "kill_warning_signal": spec.warning_signal,
        "kill_warning_delay": set_number(seconds(spec.warning_time)),
        "kill_warning_flags": listed(spec.warning_flags),
        "flags": listed(spec.flags),
        "mail_type": listed(spec.mail_type),
        "memory_binding_type": listed(spec.memory_binding_type),
        "profile": listed(spec.profile),
        "open_mode": None if spec.open_mode is None else [spec.open_mode],
        "shared": None if spec.shared is None else [spec.shared],
        "segment_size": set_number(spec.segment_size),
        "required_switches": set_number(spec.switches),
        "wait_for_switch": seconds(spec.switch_wait),
        "environment": None
        if spec.environment is None
        else [f"{key}={value}" for key, value in spec.environment.items()],
        "current_working_directory": spec.working_directory,
        "argv": listed(spec.arguments),
        **(spec.other or {}),
    }
    body.update(without_none(plain))  # type: ignore[typeddict-item]
    return body


def is_external(spec: JobSpec) -> bool:
    """Whether a job has no script, and nothing of it runs on its nodes."""
    return EXTERNAL in (spec.flags or ())


def submission(spec: JobSpec, call: str = "submit_job", where: str = "") -> wire_models.JobSubmitReq:
    """
    Write a submission; the script goes beside the job, where all parsers look for it.

    An external job has none, and what only serves a script is left out: variables and a working directory.

    Parameters
    ----------
    spec
        What is wished.
    call, where
        The call, and where in its arguments this job is, for what is said of a fault.

    Raises
    ------
    InvalidArgument
        For a script or an array of an external job.
    """
    described = job(spec)
    if is_external(spec):
        for field in ("script", "array"):
            if getattr(spec, field) is not None:
                words = f"{call}: {where}{field} is set, and a job with the flag {EXTERNAL} has none; nothing was sent"
                raise errors.InvalidArgument(words, field=f"{where}{field}")
        return {"job": described}
    script = described.pop("script", "")
    given = spec.environment or {}
    if "environment" not in (spec.other or {}) and "PATH" not in given and "SLURM_GET_USER_ENV" not in given:
        described["environment"] = [f"PATH={PATH}", *described.get("environment", ())]
    described.setdefault("current_working_directory", DIRECTORY)
    return {"script": script, "job": described}
