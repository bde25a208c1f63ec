"""How Prometheus finds metrics of slurmctld and of the exporter: a Service for each alone, and a ServiceMonitor. Pure.

The ServiceMonitor belongs to that Service, so that the garbage collector removes it with the Service: it is in no cache
of the operator, since most API servers serve no such kind. Which metrics there are is left to slurmctld and to the
exporter; who may write a ServiceMonitor, to the operator's chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.metrics import ServiceMonitor
from slinky_operator.cluster.daemons import metadata, owned
from slinky_operator.kube.resources import SERVICEMONITORS, SERVICES
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming

PORT: Final = "metrics"
"""Name of the port of the Service."""

PATHS: Final = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")
"""Where slurmctld 26.05 serves metrics, but for those of single users and accounts, which may be many."""

LABEL_METRICS: Final = labels.CLUSTER_PREFIX + "metrics"
"""On that Service alone: other Services lead to the same pods, and each would be scraped."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """What one ServiceMonitor is about."""

    name: str
    """Of the ServiceMonitor, and of the Service that it selects."""

    component: str
    daemon: str
    """Value of `LABEL_METRICS`."""

    wanted: ServiceMonitor
    paths: tuple[str, ...]
    port: int
    selector: Mapping[str, str]


def monitored(cluster: Cluster) -> Iterator[Monitored]:
    """What Prometheus is to find."""
    metrics = cluster.spec.metrics
    if not cluster.spec.external and metrics.enabled and metrics.service_monitor.enabled:
        yield Monitored(
            naming.controller_metrics(cluster.name),
            naming.COMPONENT_CONTROLLER,
            naming.CONTROLLER_CONTAINER,
            metrics.service_monitor,
            PATHS,
            naming.SLURMCTLD_PORT,
            naming.controller_selector(cluster),
        )
    if metrics.exporter.enabled and metrics.exporter.service_monitor.enabled:
        yield Monitored(
            naming.exporter_metrics(cluster.name),
            naming.COMPONENT_EXPORTER,
            naming.EXPORTER_CONTAINER,
            metrics.exporter.service_monitor,
            ("/metrics",),
            naming.EXPORTER_PORT,
            naming.selector_labels(cluster, naming.COMPONENT_EXPORTER),
        )


def monitored_services(cluster: Cluster, component: str) -> Iterator[Child]:
    """The headless Services whose endpoints Prometheus scrapes, of one component; none without a ServiceMonitor."""
    for one in monitored(cluster):
        if one.component == component:
            about = metadata(cluster, one.name, one.component)
            if component == naming.COMPONENT_EXPORTER:
                about = owned(cluster, about)
            body = {
                "metadata": {**about, "labels": {**about["labels"], **_selected(cluster, one)}},
                "spec": {
                    "clusterIP": "None",
                    "selector": dict(one.selector),
                    "ports": [{"name": PORT, "port": one.port, "protocol": "TCP"}],
                },
            }
            yield Child(SERVICES, body)


def service_monitor(cluster: Cluster, one: Monitored, service_uid: str) -> Child:
    """The ServiceMonitor.

    Parameters
    ----------
    service_uid
        Of the Service that it selects, its owner.
    """
    about = metadata(cluster, one.name, one.component)
    about["labels"] = {**one.wanted.labels, **about["labels"]}
    about["ownerReferences"] = [{"apiVersion": "v1", "kind": "Service", "name": one.name, "uid": service_uid}]
    every: dict[str, Any] = {}
    if one.wanted.interval is not None:
        every["interval"] = prometheus_duration(one.wanted.interval)
    if one.wanted.scrape_timeout is not None:
        every["scrapeTimeout"] = prometheus_duration(one.wanted.scrape_timeout)
    spec = {
        "selector": {"matchLabels": _selected(cluster, one)},
        # The Cluster's name becomes a label of each metric.
        "targetLabels": [labels.LABEL_CLUSTER_NAME],
        "endpoints": [{"port": PORT, "path": path, **every} for path in one.paths],
    }
    return Child(SERVICEMONITORS, {"metadata": about, "spec": spec})


def prometheus_duration(value: timedelta) -> str:
    """Write a time as Prometheus reads it, to the millisecond."""
    milliseconds = value // timedelta(milliseconds=1)
    return f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"


def _selected(cluster: Cluster, one: Monitored) -> dict[str, str]:
    return {labels.LABEL_CLUSTER_NAME: cluster.name, LABEL_METRICS: one.daemon}
