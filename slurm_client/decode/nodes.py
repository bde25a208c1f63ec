"""Decoder of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.decode.names import named
from slurm_client.decode.read import count, mapping, number, seconds, shared, text, timestamp, words
from slurm_client.models.node import Node, NodeState

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT_OUT: Mapping[str, str] = {
    "external_sensors": "always empty: no supported Slurm reads such sensors",
    "power": "always empty: no supported Slurm manages power of nodes so",
    "tres_weighted": "removed from Slurm in 25.05; what jobs cost is their `billable_tres`",
}
"""Keys of a node's record that no field is read from, with the reason."""

_state = shared(NodeState.from_words, 1024)


def node(raw: Mapping[str, Any]) -> Node:
    """Decode one entry of ``nodes``."""
    get = raw.get
    load = number(get("cpu_load"))
    return Node(
        name=named(get("name")),
        state=_state(words(get("state"))),
        reason=text(get("reason")),
        reason_set_by=text(get("reason_set_by_user")),
        reason_changed_at=timestamp(get("reason_changed_at")),
        resume_after=timestamp(get("resume_after")),
        comment=text(get("comment")),
        extra=text(get("extra")),
        instance_id=text(get("instance_id")),
        instance_type=text(get("instance_type")),
        address=text(get("address")),
        hostname=text(get("hostname")),
        port=number(get("port")),
        architecture=text(get("architecture")),
        operating_system=text(get("operating_system")),
        cluster=text(get("cluster_name")),
        cpus=count(get("cpus")),
        effective_cpus=count(get("effective_cpus")),
        alloc_cpus=count(get("alloc_cpus")),
        alloc_idle_cpus=count(get("alloc_idle_cpus")),
        boards=count(get("boards")),
        sockets=count(get("sockets")),
        cores=count(get("cores")),
        threads=count(get("threads")),
        real_memory_mib=count(get("real_memory")),
        alloc_memory_mib=count(get("alloc_memory")),
        specialized_memory_mib=count(get("specialized_memory")),
        temporary_disk_mib=count(get("temporary_disk")),
        weight=count(get("weight")),
        features=words(get("features")),
        active_features=words(get("active_features")),
        gres=text(get("gres")),
        gres_used=text(get("gres_used")),
        gres_drained=text(get("gres_drained")),
        tres=text(get("tres")),
        tres_used=text(get("tres_used")),
        partitions=words(get("partitions")),
        reservation=text(get("reservation")),
        topology=text(get("topology")),
        owner=text(get("owner")),
        mcs_label=text(get("mcs_label")),
        version=text(get("version")),
        boot_time=timestamp(get("boot_time")),
        slurmd_start_time=timestamp(get("slurmd_start_time")),
        burst_buffer_address=text(get("burstbuffer_network_address")),
        certificate_flags=words(get("cert_flags")),
        certificate_renewed_at=timestamp(get("tls_cert_last_renewal")),
        cpu_binding=count(get("cpu_binding")),
        gpu_cores=text(get("gpu_spec")),
        reserved_cores_per_gpu=count(get("res_cores_per_gpu")),
        specialized_cores=count(get("specialized_cores")),
        specialized_cpus=text(get("specialized_cpus")),
        suspend_after=seconds(get("suspend_time")),
        next_state_after_reboot=words(get("next_state_after_reboot")),
        # Slurm counts hundredths.
        cpu_load=None if load is None else load / 100,
        free_memory_mib=number(get("free_mem")),
        last_busy=timestamp(get("last_busy")),
        current_watts=number(mapping(get("energy")).get("current_watts")),
    )
