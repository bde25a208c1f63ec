"""Decoders of clusters, of nodes in clouds, and of the resources that slurmdbd counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.database.read import tres
from slurm_client.decode.names import named
from slurm_client.decode.read import count, mapping, number, text, timestamp, words
from slurm_client.models.database.clusters import CloudInstance, ClusterRecord, TrackedResource

if TYPE_CHECKING:
    from collections.abc import Mapping


def cluster(raw: Mapping[str, Any]) -> ClusterRecord:
    """Decode one entry of ``clusters``."""
    get = raw.get
    controller = mapping(get("controller"))
    root = mapping(mapping(get("associations")).get("root"))
    return ClusterRecord(
        name=named(get("name")),
        controller_host=text(controller.get("host")),
        controller_port=count(controller.get("port")),
        rpc_version=count(get("rpc_version")),
        node_list=text(get("nodes")),
        flags=frozenset(words(get("flags"))),
        root_association_id=number(root.get("id")),
        tres=tres(get("tres")),
        select_plugin=text(get("select_plugin")),
    )


def instance(raw: Mapping[str, Any]) -> CloudInstance:
    """Decode one entry of ``instances``."""
    get = raw.get
    time = mapping(get("time"))
    return CloudInstance(
        node_name=named(get("node_name")),
        cluster=text(get("cluster")),
        instance_id=text(get("instance_id")),
        instance_type=text(get("instance_type")),
        extra=text(get("extra")),
        start_time=timestamp(time.get("time_start")),
        end_time=timestamp(time.get("time_end")),
    )


def tracked_resource(raw: Mapping[str, Any]) -> TrackedResource:
    """Decode one entry of ``TRES``."""
    return TrackedResource(id=count(raw.get("id")), type=named(raw.get("type")), name=text(raw.get("name")))
