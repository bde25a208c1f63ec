"""Virtual Nodes, and the pods on them, as they are now: counted when somebody scrapes.

Nodes by Cluster and by what keeps pods off them: there are as many as partitions. Pods by phase alone: there are as
many as jobs, and users name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.metrics.names import MOST_OBJECTS, PREFIX

AVAILABLE: Final = "Available"
"""State of a Node that takes pods."""

STATES: Final = (AVAILABLE, "SlurmUnreachable", "PartitionNotUp", "PartitionGone")
"""The others are values of the operator's taint."""

OTHER: Final = "Unknown"
PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", OTHER)


def families(nodes: Iterable[Object], pods: Iterable[Object] | None) -> Iterator[Metric]:
    """Samples of virtual Nodes, and of the pods on them.

    Parameters
    ----------
    nodes
        Objects with the label of virtual Nodes.
    pods
        Pods that are bound to one; None where the operator runs no virtual Nodes.
    """
    family = _gauge(
        "virtual_nodes",
        "Virtual Nodes of a Cluster: those that take pods, and others by the value of the taint that keeps pods off.",
        ["namespace", "cluster", "state"],
    )
    found: Counter[tuple[str, str, str]] = Counter()
    for obj in nodes:
        about = str((obj["metadata"].get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_NODE_CLUSTER) or "")
        namespace, _, rest = about.partition("/")
        key = namespace, rest.partition("/")[0], _state(obj)
        if key in found or len(found) < MOST_OBJECTS:
            found[key] += 1
    for key, count in sorted(found.items()):
        family.add_metric(list(key), count)
    yield family
    bound = _gauge("virtual_node_pods", "Pods that are bound to virtual Nodes, by phase.", ["phase"])
    if pods is not None:
        phases = Counter(str((obj.get("status") or {}).get("phase") or PHASES[0]) for obj in pods)
        for phase in PHASES[:-1]:
            bound.add_metric([phase], phases.pop(phase, 0))
        bound.add_metric([OTHER], phases.total())
    yield bound


def _state(obj: Object) -> str:
    taints = (obj.get("spec") or {}).get("taints") or ()
    mine = (one.get("value") for one in taints if one.get("key") == labels.TAINT_VIRTUAL_NODE_UNAVAILABLE)
    value = next(mine, AVAILABLE)
    return str(value) if value in STATES else OTHER


def _gauge(name: str, what: str, names: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", what, labels=names)
