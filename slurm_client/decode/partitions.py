"""Decoder of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.names import named
from slurm_client.decode.read import count, limit, mapping, minutes, number, seconds, shared, text, words
from slurm_client.models.partition import Partition, PartitionState
from slurm_client.notation.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

_state = shared(PartitionState.from_words, 64)


def partition(raw: Mapping[str, Any]) -> Partition:
    """Decode one entry of ``partitions``."""
    get = raw.get
    nodes, maximums, defaults = mapping(get("nodes")), mapping(get("maximums")), mapping(get("defaults"))
    qos, accounts, priority = mapping(get("qos")), mapping(get("accounts")), mapping(get("priority"))
    node_list = text(nodes.get("configured"))
    return Partition(
        name=named(get("name")),
        state=_state(words(mapping(get("partition")).get("state"))),
        node_list=node_list,
        nodes=expand(node_list) if node_list else (),
        node_sets=text(get("node_sets")),
        total_nodes=count(nodes.get("total")),
        total_cpus=count(mapping(get("cpus")).get("total")),
        tres=text(mapping(get("tres")).get("configured")),
        max_time=minutes(maximums.get("time")),
        default_time=minutes(defaults.get("time")),
        max_nodes=limit(maximums.get("nodes")),
        min_nodes=count(mapping(get("minimums")).get("nodes")),
        max_cpus_per_node=limit(maximums.get("cpus_per_node")),
        default_memory_per_cpu_mib=number(defaults.get("partition_memory_per_cpu")),
        default_memory_per_node_mib=number(defaults.get("partition_memory_per_node")),
        priority_job_factor=count(priority.get("job_factor")),
        priority_tier=count(priority.get("tier")),
        grace_time=seconds(get("grace_time")),
        preempt_modes=words(get("preempt_mode")),
        qos=text(qos.get("assigned")),
        allowed_qos=text(qos.get("allowed")),
        allowed_accounts=text(accounts.get("allowed")),
        denied_accounts=text(accounts.get("deny")),
        allowed_groups=text(mapping(get("groups")).get("allowed")),
        alternate=text(get("alternate")),
        flags=frozenset(words(get("flags"))),
    )
