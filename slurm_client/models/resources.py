"""Licenses, shares and the layout of what a job was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from datetime import datetime

    from slurm_client.models.values import Infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class License(Entry):
    """
    Licenses of one name.

    Parameters
    ----------
    total, used, free, reserved
        How many there are, in use by jobs, left, and in reservations.
    is_remote
        Whether slurmdbd hands them out to several clusters; ``last_consumed``, ``last_deficit`` and ``last_update`` are
        then what the licence manager said last, and when.
    nodes
        Nodes of a hierarchical resource, in Slurm's notation (v0.0.44 and newer).
    """

    name: str
    total: int = 0
    used: int = 0
    free: int = 0
    reserved: int = 0
    is_remote: bool = False
    last_consumed: int = 0
    last_deficit: int = 0
    last_update: datetime | None = None
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class ShareTres:
    """
    What an association has used of one TRES.

    Parameters
    ----------
    name
        E.g. ``cpu``, ``mem`` or ``gres/gpu``.
    usage
        TRES seconds so far, which decay as all usage does; memory counts in MiB.
    run_seconds
        TRES seconds that its running jobs may still use.
    group_minutes
        Its ``GrpTRESMins``: ``INFINITE`` for no limit, ``None`` if not set.
    """

    name: str
    usage: float = 0.0
    run_seconds: int = 0
    group_minutes: int | Infinite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Entry):
    """
    Share of one association in the fair-share tree.

    Parameters
    ----------
    name, parent
        User or account, and the account above it.
    kind
        ``USER`` or ``ASSOCIATION``, as Slurm says it.
    shares
        Raw shares given; ``None`` where they follow the parent.
    shares_normalized, usage_normalized, effective_usage
        Between 0 and 1.
    usage
        Raw usage in weighted TRES seconds.
    tres
        Usage, running jobs and limits by TRES.
    fairshare_factor, fairshare_level
        What priorities are made of.
    """

    name: str
    parent: str = ""
    id: int = 0
    cluster: str = ""
    partition: str = ""
    kind: tuple[str, ...] = ()
    shares: int | None = None
    shares_normalized: float | None = None
    usage: int = 0
    usage_normalized: float | None = None
    effective_usage: float | None = None
    fairshare_factor: float | None = None
    fairshare_level: float | None = None
    tres: tuple[ShareTres, ...] = ()


@dataclass(frozen=True, slots=True)
class GresAllocation:
    """Generic resources on one node: how many, and which (``index`` as Slurm writes it, e.g. ``0-1``)."""

    name: str
    type: str = ""
    count: int = 0
    index: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResources(Entry):
    """What a job was given on one node: cores as a bitmap, memory in MiB, generic resources, IMEX channel."""

    node: str
    sockets: int = 0
    cores_per_socket: int = 0
    core_bitmap: str = ""
    memory_mib: int = 0
    channel: int | None = None
    gres: tuple[GresAllocation, ...] = ()
