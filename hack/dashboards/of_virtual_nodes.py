"""Panels about virtual Nodes and their pods, of the operator's own metrics: a row of its dashboard."""

from __future__ import annotations

from typing import Final

from hack.dashboards.panels import Panel, Query

VIRTUAL_NODES: Final = (
    "Virtual Nodes",
    (
        Panel(
            "Nodes",
            "Available ones take pods; of others, the value of the taint that keeps new pods off.",
            [Query("sum by (state) (slurm_operator_virtual_nodes)", "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Clusters that lack Nodes",
            "One line for each Cluster whose condition VirtualNodesReady is not True: it has the reason.",
            [
                Query(
                    "max by (namespace, name)"
                    ' (slurm_operator_condition{kind="Cluster",condition="VirtualNodesReady"} < bool 1) == 1',
                    "{{namespace}}/{{name}}",
                )
            ],
        ),
        Panel(
            "Pods",
            "By phase: those that are Pending wait in the queue of Slurm, or are refused with a reason.",
            [Query("sum by (phase) (slurm_operator_virtual_node_pods)", "{{phase}}")],
            stacked=True,
        ),
        Panel(
            "Age of Leases",
            "Below 15 s while all are renewed; from 40 s on, Kubernetes takes the Nodes for dead.",
            [Query("time() - max(slurm_operator_virtual_nodes_leases_renewed_timestamp_seconds > 0)", "age")],
            "s",
            width=12,
        ),
        Panel(
            "Certificate",
            "Time until the certificate of the kubelet API ends: a mounted one is to be renewed before.",
            [Query("min(slurm_operator_virtual_nodes_certificate_end_timestamp_seconds > 0) - time()", "left")],
            "s",
            width=12,
        ),
    ),
)
