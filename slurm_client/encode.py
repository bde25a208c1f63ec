"""
From wishes to the bodies of requests, in the shape of the newest data parser.

The parts that another parser lacks are found by comparing with its generated types, and refused by name before anything
is sent; see :func:`fitted`. Where parsers differ in more than that, it says so here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client import errors, wire
from slurm_client.models.values import INFINITE, Infinite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from slurm_client.models import JobSpec, ReservationSpec
    from slurm_client.wire.v0_0_45 import models as wire_models

Body = TypeVar("Body", bound="Mapping[str, Any]")

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
        "memory_per_node": _set(spec.memory_per_node_mib),
        "memory_per_cpu": _set(spec.memory_per_cpu_mib),
        "tres_per_node": spec.tres_per_node,
        "constraints": spec.constraints,
        "required_nodes": _list(spec.required_nodes),
        "excluded_nodes": _list(spec.excluded_nodes),
        "licenses": spec.licenses,
        "time_limit": _minutes(spec.time_limit),
        "begin_time": _moment(spec.begin_time),
        "dependency": spec.dependency,
        "array": spec.array,
        "priority": _set(spec.priority),
        "nice": spec.nice,
        "hold": spec.hold,
        "requeue": spec.requeue,
        "environment": None
        if spec.environment is None
        else [f"{key}={value}" for key, value in spec.environment.items()],
        "current_working_directory": spec.working_directory,
        "argv": _list(spec.arguments),
        "standard_input": spec.standard_input,
        "standard_output": spec.standard_output,
        "standard_error": spec.standard_error,
        "comment": spec.comment,
        "admin_comment": spec.admin_comment,
        "extra": spec.extra,
        "wckey": spec.wckey,
        **(spec.other or {}),
    }
    body.update(_without_none(plain))  # type: ignore[typeddict-item]
    return body


def submission(spec: JobSpec) -> wire_models.JobSubmitReq:
    """Write a submission; the script goes beside the job, where all parsers look for it."""
    described = job(spec)
    script = described.pop("script", "")
    described.setdefault("environment", [f"PATH={_PATH}"])
    described.setdefault("current_working_directory", "/")
    return {"script": script, "job": described}


def reservation(spec: ReservationSpec) -> wire_models.ReservationDescMsg:
    """Write what is wished about a reservation."""
    body: wire_models.ReservationDescMsg = {}
    plain: dict[str, Any] = {
        "name": spec.name,
        "partition": spec.partition,
        "node_list": _list(spec.nodes),
        "node_count": _set(spec.node_count),
        "start_time": _moment(spec.start_time),
        "end_time": _moment(spec.end_time),
        "duration": _minutes(spec.duration),
        "users": _list(spec.users),
        "accounts": _list(spec.accounts),
        "groups": _list(spec.groups),
        "flags": _list(spec.flags),
        "features": spec.features,
        "licenses": _list(spec.licenses),
        "comment": spec.comment,
        **(spec.other or {}),
    }
    body.update(_without_none(plain))  # type: ignore[typeddict-item]
    return body


def node_update(
    *,
    state: str | list[str] | None,
    reason: str | None,
    comment: str | None,
    extra: str | None,
    features: list[str] | None,
    active_features: list[str] | None,
    gres: str | None,
    weight: int | None,
    address: str | None,
    hostname: str | None,
    topology: str | None = None,
) -> wire_models.UpdateNodeMsg:
    """Write a change of nodes, without their names."""
    body: wire_models.UpdateNodeMsg = {}
    if state is not None:
        body["state"] = [state] if isinstance(state, str) else state
    if features is not None:
        body["features"] = features
    if active_features is not None:
        body["features_act"] = active_features
    if weight is not None:
        body["weight"] = {"set": True, "infinite": False, "number": weight}
    if address is not None:
        body["address"] = [address]
    if hostname is not None:
        body["hostname"] = [hostname]
    texts = {"reason": reason, "comment": comment, "extra": extra, "gres": gres, "topology_str": topology}
    body.update(_without_none(texts))  # type: ignore[typeddict-item]
    return body


def fitted(version: str, model: str, body: Body) -> Body:
    """
    Return the body if a data parser has all of its keys.

    Raises
    ------
    NotSupported
        Names the first key it has not, and the parsers that have it: slurmrestd would drop it with a mere warning.
    """
    unknown = wire.unknown_fields(version, model, body)
    if unknown:
        key, having = next(iter(unknown.items()))
        raise errors.NotSupported(
            f"data parser {version} has no {key!r} in {model}; {', '.join(having) or 'none'} has", available_in=having
        )
    return body


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _set(number: int | None) -> dict[str, Any] | None:
    return None if number is None else {"set": True, "infinite": False, "number": number}


def _list(values: Any) -> list[str] | None:
    return None if values is None else list(values)


def _minutes(value: timedelta | Infinite | None) -> dict[str, Any] | None:
    if value is INFINITE:
        return {"set": True, "infinite": True, "number": 0}
    if isinstance(value, timedelta):
        return _set(-int(-value.total_seconds() // 60))
    return None


def _moment(value: datetime | None) -> dict[str, Any] | None:
    return None if value is None else _set(int(value.timestamp()))
