"""Dashboards of the exporter's metrics: a Cluster, its partitions and queue, users and fair share."""

from __future__ import annotations

from typing import Final

from hack.dashboards.panels import Dashboard, Panel, Query, Variable

CLUSTER: Final = (
    Variable("namespace", "slurm_cluster_info", several=False),
    Variable("cluster", 'slurm_cluster_info{namespace="$namespace"}', "slurm_cluster", several=False),
)
HERE: Final = 'namespace="$namespace",slurm_cluster="$cluster"'
"""The label of the Cluster is the exporter's own; that of the namespace is the ServiceMonitor's."""
PARTITION: Final = Variable("partition", f"slurm_cluster_partition_up{{{HERE}}}")
QUEUE: Final = f'{HERE},partition=~"$partition"'


def _share(metric: str) -> str:
    """The part of a resource that jobs have."""
    return f'sum({metric}{{{HERE},state="allocated"}}) / sum({metric}{{{HERE}}})'


SITE: Final = Dashboard(
    "slurm-cluster",
    "Slurm: cluster",
    "Nodes, resources, jobs and the health of slurmctld of one Cluster.",
    CLUSTER,
    (
        (
            "Now",
            (
                Panel(
                    "Running",
                    "Jobs; each task of an array is one.",
                    [Query(f'sum(slurm_cluster_jobs{{{HERE},state="running"}})')],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Pending",
                    "Jobs that wait, for whatever reason.",
                    [Query(f'sum(slurm_cluster_jobs{{{HERE},state="pending"}})')],
                    kind="stat",
                    width=4,
                ),
                Panel("CPUs in use", "Of all CPUs.", [Query(_share("slurm_cluster_cpus"))], "percentunit", "stat", 4),
                Panel(
                    "Memory in use",
                    "Of all memory.",
                    [Query(_share("slurm_cluster_memory_bytes"))],
                    "percentunit",
                    "stat",
                    4,
                ),
                Panel(
                    "Nodes for jobs",
                    "Nodes on which a job may start.",
                    [Query(f"slurm_cluster_nodes_usable{{{HERE}}}")],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Oldest pending",
                    "How long the oldest eligible job has waited.",
                    [Query(f"slurm_cluster_jobs_pending_age_max_seconds{{{HERE}}}")],
                    "s",
                    "stat",
                    4,
                ),
            ),
        ),
        (
            "Resources",
            (
                Panel("Nodes", "By base state.", [Query(f"slurm_cluster_nodes{{{HERE}}}", "{{state}}")], stacked=True),
                Panel(
                    "CPUs",
                    "Allocated, idle, or unavailable.",
                    [Query(f"slurm_cluster_cpus{{{HERE}}}", "{{state}}")],
                    stacked=True,
                ),
                Panel(
                    "Memory",
                    "Allocated, idle, or unavailable.",
                    [Query(f"slurm_cluster_memory_bytes{{{HERE}}}", "{{state}}")],
                    "bytes",
                    stacked=True,
                ),
                Panel(
                    "GPUs and other GRES",
                    "By type.",
                    [Query(f"slurm_cluster_gres{{{HERE}}}", "{{gres}} {{type}} {{state}}")],
                    stacked=True,
                ),
                Panel(
                    "Licenses",
                    "Used, of those there are.",
                    [
                        Query(f"slurm_cluster_licenses_used{{{HERE}}}", "{{license}} used"),
                        Query(f"slurm_cluster_licenses{{{HERE}}}", "{{license}}"),
                    ],
                ),
                Panel(
                    "Drains",
                    "Nodes that take no new job: with work left, or without.",
                    [Query(f"slurm_cluster_nodes_drain{{{HERE}}}", "{{phase}}")],
                    stacked=True,
                ),
            ),
        ),
        (
            "slurmctld",
            (
                Panel(
                    "Answers",
                    "1 while a slurmctld answers slurmrestd.",
                    [Query(f"slurm_cluster_slurmctld_up{{{HERE}}}", "{{host}}")],
                ),
                Panel(
                    "Calls",
                    "Served, by message type: the ten with most.",
                    [Query(f"topk(10, rate(slurm_cluster_rpcs_total{{{HERE}}}[$__rate_interval]))", "{{type}}")],
                    "reqps",
                ),
                Panel(
                    "Time for calls",
                    "Seconds of slurmctld per second.",
                    [Query(f"topk(10, rate(slurm_cluster_rpc_seconds_total{{{HERE}}}[$__rate_interval]))", "{{type}}")],
                    "s",
                ),
                Panel(
                    "Scheduling cycle",
                    "The last one.",
                    [
                        Query(f"slurm_cluster_schedule_cycle_last_seconds{{{HERE}}}", "main"),
                        Query(f"slurm_cluster_backfill_cycle_last_seconds{{{HERE}}}", "backfill"),
                    ],
                    "s",
                ),
                Panel(
                    "Jobs started and ended",
                    "Per second.",
                    [
                        Query(f"rate(slurm_cluster_jobs_started_total{{{HERE}}}[$__rate_interval])", "started"),
                        Query(f"rate(slurm_cluster_jobs_completed_total{{{HERE}}}[$__rate_interval])", "completed"),
                    ],
                    "reqps",
                ),
                Panel(
                    "Records for slurmdbd",
                    "Waiting; when the queue is full, records are lost.",
                    [Query(f"slurm_cluster_slurmdbd_queue_length{{{HERE}}}", "waiting")],
                ),
            ),
        ),
    ),
)

QUEUES: Final = Dashboard(
    "slurm-partitions",
    "Slurm: partitions and queue",
    "What waits in each partition, why, and how many nodes it would take.",
    (*CLUSTER, PARTITION),
    (
        (
            "Queue",
            (
                Panel(
                    "Jobs by state",
                    "A job that waits for several partitions counts in each.",
                    [
                        Query(
                            f"sum by (partition, state) (slurm_cluster_partition_jobs{{{QUEUE}}})",
                            "{{partition}} {{state}}",
                        )
                    ],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "Pending by reason",
                    "Slurm's own reasons.",
                    [Query(f"sum by (reason) (slurm_cluster_partition_jobs_pending{{{QUEUE}}})", "{{reason}}")],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "Oldest pending",
                    "How long the oldest eligible job has waited.",
                    [Query(f"slurm_cluster_partition_jobs_pending_age_max_seconds{{{QUEUE}}}", "{{partition}}")],
                    "s",
                    width=12,
                ),
                Panel(
                    "Nodes wanted",
                    "By jobs that wait for nodes and for nothing else.",
                    [Query(f"slurm_cluster_partition_nodes_wanted{{{QUEUE}}}", "{{partition}}")],
                    width=12,
                ),
            ),
        ),
        (
            "Resources",
            (
                Panel(
                    "Nodes",
                    "By base state.",
                    [
                        Query(
                            f"sum by (partition, state) (slurm_cluster_partition_nodes{{{QUEUE}}})",
                            "{{partition}} {{state}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "CPUs",
                    "Allocated, idle, or unavailable.",
                    [
                        Query(
                            f"sum by (partition, state) (slurm_cluster_partition_cpus{{{QUEUE}}})",
                            "{{partition}} {{state}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "GPUs and other GRES",
                    "By type.",
                    [
                        Query(
                            f"sum by (partition, gres, type, state) (slurm_cluster_partition_gres{{{QUEUE}}})",
                            "{{partition}} {{gres}} {{type}} {{state}}",
                        )
                    ],
                    stacked=True,
                ),
            ),
        ),
    ),
)

USERS: Final = Dashboard(
    "slurm-users",
    "Slurm: users and fair share",
    "Who uses the Cluster, and what fair share makes of it. Users and accounts are off until the exporter shows them.",
    CLUSTER,
    (
        (
            "Use",
            (
                Panel(
                    "CPUs by account",
                    "Of running jobs.",
                    [Query(f'slurm_cluster_account_jobs_cpus{{{HERE},state="running"}}', "{{account}}")],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "CPUs by user",
                    "Of running jobs.",
                    [Query(f'slurm_cluster_user_jobs_cpus{{{HERE},state="running"}}', "{{user}}")],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "Pending by account",
                    "Jobs.",
                    [Query(f'slurm_cluster_account_jobs{{{HERE},state="pending"}}', "{{account}}")],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "Jobs by QOS",
                    "By state.",
                    [Query(f"slurm_cluster_qos_jobs{{{HERE}}}", "{{qos}} {{state}}")],
                    stacked=True,
                    width=12,
                ),
            ),
        ),
        (
            "Fair share",
            (
                Panel(
                    "Factor",
                    "Between 0, used up, and 1.",
                    [Query(f"slurm_cluster_share_factor{{{HERE}}}", "{{account}} {{user}}")],
                    width=12,
                ),
                Panel(
                    "Usage against share",
                    "Above 1 means more than the share.",
                    [
                        Query(
                            f"slurm_cluster_share_usage_effective{{{HERE}}} / slurm_cluster_share_normalized{{{HERE}}}",
                            "{{account}} {{user}}",
                        )
                    ],
                    width=12,
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (SITE, QUEUES, USERS)
