"""Qualities of service as slurmdbd keeps them, and what is to be created or changed of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from slurm_client.models.database.limits import QosLimits
from slurm_client.models.entry import Entry
from slurm_client.models.values import Delay, Infinite

__all__ = ["Qos", "QosSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos(Entry):
    """
    A quality of service.

    Parameters
    ----------
    priority
        Added to that of its jobs.
    preempts, preempt_modes, preempt_exempt_time
        QOS whose jobs give way to those of this one; how; and for how long a job of this one is safe.
    grace_time
        Time that a job of this QOS is left when it is preempted.
    limit_factor, usage_factor, usage_threshold
        Multiplies limits of associations; multiplies what usage counts; least share of fair share to run.
    """

    name: str
    id: int | None = None
    description: str = ""
    flags: frozenset[str] = frozenset()
    priority: int | Infinite | None = None
    preempts: tuple[str, ...] = ()
    preempt_modes: tuple[str, ...] = ()
    preempt_exempt_time: timedelta | None = None
    grace_time: timedelta | None = None
    limit_factor: float | None = None
    usage_factor: float | None = None
    usage_threshold: float | None = None
    limits: QosLimits = field(default_factory=QosLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class QosSpec:
    """
    What a QOS is to be; ``None`` leaves a thing as it is.

    Parameters
    ----------
    flags, preempts, preempt_modes
        All of them: others are taken away.
    grace_time
        Zero for none.
    limits
        Those to set; INFINITE takes one away.
    """

    name: str
    description: str | None = None
    flags: Sequence[str] | None = None
    priority: int | None = None
    preempts: Sequence[str] | None = None
    preempt_modes: Sequence[str] | None = None
    grace_time: Delay | None = None
    usage_factor: float | None = None
    usage_threshold: float | None = None
    limits: QosLimits | None = None
