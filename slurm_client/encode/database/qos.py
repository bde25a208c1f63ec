"""QOS that are made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.encode.database.limits import add_limits
from slurm_client.encode.values import listed, seconds, set_number, without_none

if TYPE_CHECKING:
    from slurm_client.models import QosSpec


def qos(spec: QosSpec) -> dict[str, Any]:
    """Write what is wished about a QOS."""
    preempt = without_none({"list": listed(spec.preempts), "mode": listed(spec.preempt_modes)})
    body = without_none(
        {
            "name": spec.name,
            "description": spec.description,
            "flags": listed(spec.flags),
            "priority": set_number(spec.priority),
            "preempt": preempt or None,
            "usage_factor": _decimal(spec.usage_factor),
            "usage_threshold": _decimal(spec.usage_threshold),
        }
    )
    if spec.grace_time is not None:
        body["limits"] = {"grace_time": seconds(spec.grace_time)}
    add_limits(body, spec.limits)
    return body


def _decimal(value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"set": True, "infinite": False, "number": float(value)}
