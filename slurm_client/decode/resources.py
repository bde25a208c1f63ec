"""Decoders of reservations, licenses, shares and layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.names import named
from slurm_client.decode.read import (
    count,
    decimal,
    flag,
    items,
    limit,
    mapping,
    number,
    seconds,
    text,
    timestamp,
    words,
)
from slurm_client.models.reservation import Reservation
from slurm_client.models.resources import GresAllocation, License, NodeResources, Share, ShareTres
from slurm_client.notation.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Mapping


def reservation(raw: Mapping[str, Any]) -> Reservation:
    """Decode one entry of ``reservations``."""
    get = raw.get
    node_list = text(get("node_list"))
    return Reservation(
        name=named(get("name")),
        partition=text(get("partition")),
        node_list=node_list,
        nodes=expand(node_list) if node_list else (),
        node_count=count(get("node_count")),
        core_count=count(get("core_count")),
        start_time=timestamp(get("start_time")),
        end_time=timestamp(get("end_time")),
        users=words(get("users")),
        accounts=words(get("accounts")),
        groups=words(get("groups")),
        flags=frozenset(words(get("flags"))),
        features=text(get("features")),
        licenses=text(get("licenses")),
        tres=text(get("tres")),
        burst_buffer=text(get("burst_buffer")),
        max_start_delay=seconds(get("max_start_delay")) or None,
    )


def license_(raw: Mapping[str, Any]) -> License:
    """Decode one entry of ``licenses``."""
    get = raw.get
    return License(
        name=named(get("LicenseName")),
        total=count(get("Total")),
        used=count(get("Used")),
        free=count(get("Free")),
        reserved=count(get("Reserved")),
        is_remote=flag(get("Remote")),
        last_consumed=count(get("LastConsumed")),
        last_deficit=count(get("LastDeficit")),
        last_update=timestamp(get("LastUpdate")),
        nodes=text(get("Nodes")),
    )


def shares(raw: Mapping[str, Any]) -> list[Share]:
    """Decode ``shares``, an object around the list of that name."""
    return [_share(mapping(entry)) for entry in items(raw.get("shares"))]


def _share(raw: Mapping[str, Any]) -> Share:
    get = raw.get
    fairshare = mapping(get("fairshare"))
    return Share(
        name=named(get("name")),
        parent=text(get("parent")),
        id=count(get("id")),
        cluster=text(get("cluster")),
        partition=text(get("partition")),
        kind=words(get("type")),
        shares=number(get("shares")),
        shares_normalized=decimal(get("shares_normalized")),
        usage=count(get("usage")),
        usage_normalized=decimal(get("usage_normalized")),
        effective_usage=decimal(get("effective_usage")),
        fairshare_factor=decimal(fairshare.get("factor")),
        fairshare_level=decimal(fairshare.get("level")),
        tres=_tres(mapping(get("tres"))),
    )


def _tres(raw: Mapping[str, Any]) -> tuple[ShareTres, ...]:
    """Join three lists of names and values, in which not every TRES need be everywhere."""
    usage, run_seconds, limits = (_by_name(raw.get(key)) for key in ("usage", "run_seconds", "group_minutes"))
    return tuple(
        ShareTres(
            name,
            usage=decimal(usage.get(name)) or 0.0,
            run_seconds=count(run_seconds.get(name)),
            group_minutes=limit(limits.get(name)),
        )
        for name in {**usage, **run_seconds, **limits}
    )


def _by_name(value: Any) -> dict[str, Any]:
    return {text(entry.get("name")): entry.get("value") for entry in map(mapping, items(value)) if entry.get("name")}


def node_resources(raw: Mapping[str, Any]) -> NodeResources:
    """Decode one entry of the layout of a job's resources."""
    get = raw.get
    return NodeResources(
        node=named(get("node")),
        sockets=count(get("sockets_per_node")),
        cores_per_socket=count(get("cores_per_socket")),
        core_bitmap=text(get("core_bitmap")),
        memory_mib=count(get("mem_alloc")),
        channel=number(get("channel")),
        gres=tuple(_gres(mapping(entry)) for entry in items(get("gres"))),
    )


def _gres(raw: Mapping[str, Any]) -> GresAllocation:
    return GresAllocation(
        name=text(raw.get("name")),
        type=text(raw.get("type")),
        count=count(raw.get("count")),
        index=text(raw.get("index")),
    )
