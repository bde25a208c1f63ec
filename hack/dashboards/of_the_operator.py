"""Dashboards of the operator's own metrics: the fleet, the life of NodeSets, the operator's inside."""

from __future__ import annotations

from typing import Final

from hack.dashboards.of_slurmjobs import SLURMJOBS
from hack.dashboards.of_virtual_nodes import VIRTUAL_NODES
from hack.dashboards.panels import Dashboard, Panel, Query, Variable

NAMESPACE: Final = Variable("namespace", "slurm_operator_condition")
HERE: Final = 'namespace=~"$namespace"'
NODESET: Final = Variable("nodeset", 'slurm_operator_nodeset_pods{namespace=~"$namespace"}', "name")
ONE: Final = 'namespace=~"$namespace",name=~"$nodeset"'


def _rate(metric: str, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{selector}[$__rate_interval]))"


def _quantile(metric: str, by: str, share: float = 0.99) -> str:
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({metric}_bucket[$__rate_interval])))"


FLEET: Final = Dashboard(
    "slurm-fleet",
    "Slurm: fleet",
    "All Clusters and NodeSets of the operator: what answers, what is degraded, how many nodes there are.",
    (NAMESPACE,),
    (
        (
            "Now",
            (
                Panel(
                    "Clusters",
                    "Objects of kind Cluster.",
                    [Query('sum(slurm_operator_objects{kind="Cluster"})')],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Without contact",
                    "Clusters whose Slurm does not answer: nothing is deleted there.",
                    [Query(f"count(slurm_operator_slurm_connected{{{HERE}}} == 0) or vector(0)")],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Degraded",
                    "Clusters, NodeSets, LoginSets and Tokens with the condition Degraded.",
                    [Query(f'count(slurm_operator_condition{{{HERE},condition="Degraded"}} == 1) or vector(0)')],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Nodes",
                    "Slurm nodes of all NodeSets.",
                    [Query(f"sum(slurm_operator_nodeset_nodes{{{HERE}}})")],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Draining",
                    "Nodes that take no job and have jobs left.",
                    [Query(f'sum(slurm_operator_nodeset_nodes{{{HERE},state="draining"}})')],
                    kind="stat",
                    width=4,
                ),
                Panel(
                    "Down",
                    "Nodes that Slurm gives no jobs because they are down.",
                    [Query(f'sum(slurm_operator_nodeset_nodes{{{HERE},state="down"}})')],
                    kind="stat",
                    width=4,
                ),
            ),
        ),
        (
            "Clusters",
            (
                Panel(
                    "Contact",
                    "1 while Slurm answers; the label is the kind of trouble.",
                    [Query(f"slurm_operator_slurm_connected{{{HERE}}}", "{{namespace}}/{{cluster}} {{trouble}}")],
                    width=12,
                ),
                Panel(
                    "Degraded objects",
                    "One line for each object that is degraded.",
                    [
                        Query(
                            f'slurm_operator_condition{{{HERE},condition="Degraded"}} == 1',
                            "{{kind}} {{namespace}}/{{name}}",
                        )
                    ],
                    width=12,
                ),
                Panel(
                    "Nodes by state",
                    "Each node is in one state.",
                    [Query(f"sum by (state) (slurm_operator_nodeset_nodes{{{HERE}}})", "{{state}}")],
                    stacked=True,
                    width=12,
                ),
                Panel(
                    "Nodes by Cluster",
                    "Slurm nodes of NodeSets.",
                    [
                        Query(
                            f"sum by (namespace, cluster) (slurm_operator_nodeset_nodes{{{HERE}}})",
                            "{{namespace}}/{{cluster}}",
                        )
                    ],
                    stacked=True,
                    width=12,
                ),
            ),
        ),
    ),
)

NODESETS: Final = Dashboard(
    "slurm-nodesets",
    "Slurm: life of NodeSets",
    "Scaling, drains, updates and repairs: what changes, why, and how long nodes wait for jobs.",
    (NAMESPACE, NODESET),
    (
        (
            "Pods and nodes",
            (
                Panel(
                    "Pods",
                    "Desired, existing, of the current revision, Ready, available.",
                    [Query(f"sum by (state) (slurm_operator_nodeset_pods{{{ONE}}})", "{{state}}")],
                    width=12,
                ),
                Panel(
                    "Nodes by state",
                    "As Slurm shows them.",
                    [Query(f"sum by (state) (slurm_operator_nodeset_nodes{{{ONE}}})", "{{state}}")],
                    stacked=True,
                    width=12,
                ),
            ),
        ),
        (
            "Autoscaling",
            (
                Panel(
                    "Replicas wanted",
                    "What jobs need, with headroom and within the limits, beside the replicas that are set.",
                    [
                        Query(
                            f"sum by (name) (slurm_operator_nodeset_autoscaling_wanted_replicas{{{ONE}}})",
                            "{{name}} wanted",
                        ),
                        Query(
                            f'sum by (name) (slurm_operator_nodeset_pods{{{ONE},state="desired"}}'
                            " and on (namespace, name)"
                            f" slurm_operator_nodeset_autoscaling_limit_replicas{{{ONE}}})",
                            "{{name}} set",
                        ),
                        Query(
                            f"sum by (name, limit) (slurm_operator_nodeset_autoscaling_limit_replicas{{{ONE}}})",
                            "{{name}} {{limit}}",
                        ),
                    ],
                ),
                Panel(
                    "Why",
                    "Reason of the condition Autoscaling; 0 while autoscaling sets nothing.",
                    [
                        Query(
                            f"max by (namespace, name, reason) (slurm_operator_nodeset_autoscaling_active{{{ONE}}})",
                            "{{name}} {{reason}}",
                        )
                    ],
                ),
                Panel(
                    "Replicas changed, of all NodeSets",
                    "Set by autoscaling, by direction.",
                    [
                        Query(
                            "sum by (direction)"
                            " (increase(slurm_operator_autoscaling_replicas_changed_total[$__rate_interval]))",
                            "{{direction}}",
                        )
                    ],
                ),
                Panel(
                    "Age of the queue",
                    "Time since autoscaling last read the jobs of a Cluster.",
                    [
                        Query(
                            f"max by (namespace, cluster) (slurm_operator_autoscaling_queue_age_seconds{{{HERE}}})",
                            "{{namespace}}/{{cluster}}",
                        )
                    ],
                    "s",
                ),
            ),
        ),
        (
            "Drains, of all NodeSets",
            (
                Panel(
                    "Drains started",
                    "Nodes drained per cause.",
                    [
                        Query(
                            "sum by (cause) (increase(slurm_operator_drains_started_total[$__rate_interval]))",
                            "{{cause}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "How long drains took",
                    "Nine of ten drains that ended were shorter.",
                    [Query(_quantile("slurm_operator_drain_duration_seconds", "cause", 0.9), "{{cause}}")],
                    "s",
                ),
                Panel(
                    "Time without new jobs",
                    "Seconds of nodes spent in drains that ended, per cause.",
                    [
                        Query(
                            "sum by (cause) (increase(slurm_operator_drain_duration_seconds_sum[$__rate_interval]))",
                            "{{cause}}",
                        )
                    ],
                    "s",
                    stacked=True,
                ),
                Panel(
                    "Pods deleted",
                    "Per cause: given-up and drain-timeout took jobs with them, as somebody had asked.",
                    [
                        Query(
                            "sum by (cause) (increase(slurm_operator_pods_deleted_total[$__rate_interval]))",
                            "{{cause}}",
                        )
                    ],
                    stacked=True,
                ),
                Panel(
                    "Pods created",
                    "By all NodeSets.",
                    [Query("sum(increase(slurm_operator_pods_created_total[$__rate_interval]))", "created")],
                ),
                Panel(
                    "Drains that timed out",
                    "spec.drain.onTimeout was applied.",
                    [Query("sum(increase(slurm_operator_drains_timed_out_total[$__rate_interval]))", "timed out")],
                ),
            ),
        ),
    ),
)

OPERATOR: Final = Dashboard(
    "slurm-operator",
    "Slurm: the operator's inside",
    "Whether the operator keeps up: queues, passes, calls, jobs, virtual Nodes, watches, event loop, memory.",
    (),
    (
        (
            "Now",
            (
                Panel("Leaders", "One replica leads.", [Query("sum(slurm_operator_leader)")], kind="stat", width=4),
                Panel(
                    "Waiting",
                    "Keys that wait for a worker.",
                    [Query("sum(slurm_operator_queue_depth)")],
                    kind="stat",
                    width=4,
                ),
                Panel("Objects", "Of all kinds.", [Query("sum(slurm_operator_objects)")], kind="stat", width=4),
                Panel(
                    "Memory",
                    "Of the largest replica.",
                    [Query("max(process_resident_memory_bytes and on (pod) slurm_operator_leader)")],
                    "bytes",
                    "stat",
                    4,
                ),
                Panel(
                    "CPU",
                    "Of all replicas.",
                    [
                        Query(
                            "sum(rate(process_cpu_seconds_total[$__rate_interval]) and on (pod) slurm_operator_leader)"
                        )
                    ],
                    "short",
                    "stat",
                    4,
                ),
                Panel(
                    "Loop lag",
                    "One in a hundred turns is later.",
                    [Query(f"max({_quantile('slurm_operator_event_loop_lag_seconds', 'pod')})")],
                    "s",
                    "stat",
                    4,
                ),
            ),
        ),
        (
            "Passes",
            (
                Panel(
                    "Passes",
                    "By controller and outcome; retries are waits for something else.",
                    [
                        Query(
                            _rate("slurm_operator_reconcile_total", "controller, outcome"),
                            "{{controller}} {{outcome}}",
                        )
                    ],
                    "reqps",
                ),
                Panel(
                    "Duration",
                    "One in a hundred passes is longer.",
                    [Query(_quantile("slurm_operator_reconcile_duration_seconds", "controller"), "{{controller}}")],
                    "s",
                ),
                Panel(
                    "Wait for a worker",
                    "One in a hundred keys waits longer.",
                    [Query(_quantile("slurm_operator_queue_wait_seconds", "controller"), "{{controller}}")],
                    "s",
                ),
            ),
        ),
        (
            "Calls",
            (
                Panel(
                    "API server",
                    "Requests by verb.",
                    [
                        Query(
                            _rate("slurm_operator_kubernetes_requests_total", "verb"),
                            "{{verb}}",
                        )
                    ],
                    "reqps",
                ),
                Panel(
                    "API server: failures",
                    "By outcome.",
                    [
                        Query(
                            _rate(
                                "slurm_operator_kubernetes_requests_total", "verb, resource, outcome", '{outcome!="ok"}'
                            ),
                            "{{verb}} {{resource}} {{outcome}}",
                        )
                    ],
                    "reqps",
                ),
                Panel(
                    "API server: duration",
                    "One in a hundred requests is longer.",
                    [Query(_quantile("slurm_operator_kubernetes_request_duration_seconds", "verb"), "{{verb}}")],
                    "s",
                ),
                Panel(
                    "Slurm",
                    "Requests to slurmrestd by operation.",
                    [
                        Query(
                            _rate("slurm_operator_slurm_requests_total", "operation"),
                            "{{operation}}",
                        )
                    ],
                    "reqps",
                ),
                Panel(
                    "Slurm: failures",
                    "By operation and result.",
                    [
                        Query(
                            _rate("slurm_operator_slurm_requests_total", "operation, code, result", '{result!="ok"}'),
                            "{{operation}} {{code}} {{result}}",
                        )
                    ],
                    "reqps",
                ),
                Panel(
                    "Slurm: duration",
                    "One in a hundred requests is longer.",
                    [Query(_quantile("slurm_operator_slurm_request_duration_seconds", "operation"), "{{operation}}")],
                    "s",
                ),
            ),
        ),
        SLURMJOBS,
        VIRTUAL_NODES,
        (
            "What it knows",
            (
                Panel(
                    "Silence of watches",
                    "Seconds since the API server last said anything.",
                    [Query("max by (resource) (slurm_operator_watch_silence_seconds)", "{{resource}}")],
                    "s",
                ),
                Panel(
                    "Age of nodes",
                    "Seconds since each Slurm confirmed its nodes.",
                    [Query("slurm_operator_slurm_nodes_age_seconds", "{{namespace}}/{{cluster}}")],
                    "s",
                ),
                Panel(
                    "Objects in caches",
                    "By resource.",
                    [Query("max by (resource) (slurm_operator_cache_objects)", "{{resource}}")],
                ),
                Panel(
                    "What Events report",
                    "By kind and reason.",
                    [
                        Query(
                            "sum by (kind, reason) (increase(slurm_operator_events_total[$__rate_interval]))",
                            "{{kind}} {{reason}}",
                        )
                    ],
                    width=12,
                ),
                Panel(
                    "Preflights",
                    "Duration of half of them, by outcome.",
                    [Query(_quantile("slurm_operator_preflight_duration_seconds", "outcome", 0.5), "{{outcome}}")],
                    "s",
                    width=12,
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (FLEET, NODESETS, OPERATOR)
