"""Decoder of QOS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.database.limits import limits
from slurm_client.decode.names import named
from slurm_client.decode.read import decimal, limit, mapping, number, seconds, text, words
from slurm_client.models.database.limits import QosLimits
from slurm_client.models.database.qos import Qos

if TYPE_CHECKING:
    from collections.abc import Mapping


def qos(raw: Mapping[str, Any]) -> Qos:
    """Decode one entry of ``qos``."""
    get = raw.get
    preempt, of_limits = mapping(get("preempt")), mapping(get("limits"))
    return Qos(
        name=named(get("name")),
        id=number(get("id")),
        description=text(get("description")),
        flags=frozenset(words(get("flags"))),
        priority=limit(get("priority")),
        preempts=words(preempt.get("list")),
        preempt_modes=words(preempt.get("mode")),
        preempt_exempt_time=seconds(preempt.get("exempt_time")),
        grace_time=seconds(of_limits.get("grace_time")),
        limit_factor=decimal(of_limits.get("factor")),
        usage_factor=decimal(get("usage_factor")),
        usage_threshold=decimal(get("usage_threshold")),
        limits=limits(QosLimits, raw),
    )
