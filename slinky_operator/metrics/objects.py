"""How NodeSets, Clusters, LoginSets, Tokens and jobs as objects are now, read from the caches when somebody scrapes.

What their status says, as numbers; nothing is asked for it. Objects beyond a limit are left out and counted: who may
create objects in one namespace must neither make the page endless nor hide objects of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice, zip_longest
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from slinky_api import v1alpha1
from slinky_operator.kube import resources
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.metrics import job_objects, virtual_objects
from slinky_operator.metrics.names import MOST_OBJECTS, PREFIX

KINDS: Final = tuple(resources.of_kind(kind) for kind, _ in v1alpha1.KINDS)
"""Kinds whose objects are shown one by one."""

JOB_KINDS: Final = {
    resources.SLURMJOBS: resources.SLURMJOBS.kind,
    **{
        one: f"{one.kind}.{one.group}"
        for one in (resources.WLM_SLURMJOBS, resources.WLM_WLMJOBS, resources.SLURM_SLURMJOBS)
    },
}
"""Kinds that are counted, not shown one by one: there are as many as jobs. What tells their names apart."""

STATES: Final = ("idle", "allocated", "draining", "drained", "down", "starting", "unknown")
"""Of a NodeSet's nodes; each node is in one."""

LIMITS: Final = {"min": ("minReplicas", 0), "max": ("maxReplicas", None)}
"""Bounds of autoscaling, with their fields and defaults."""

PODS: Final = {
    "desired": "desired",
    "existing": "replicas",
    "updated": "updatedReplicas",
    "ready": "readyReplicas",
    "available": "availableReplicas",
}
"""Counts of a NodeSet's pods, and their fields in the status."""

TRUTH: Final = {"True": 1.0, "False": 0.0}
"""Value of a condition; any other status is -1."""

_WHERE: Final = ["namespace", "name"]

_COUNTED: Final = frozenset({*KINDS, *JOB_KINDS})


class Objects(Collector):
    """Samples of the operator's objects.

    Parameters
    ----------
    stores
        The cache of each kind.
    leads
        Whether this process leads: replicas have the same caches, and a sum over them would count objects twice.
    most
        Objects of a kind with samples.
    """

    def __init__(
        self, stores: Mapping[resources.Resource, Store], *, leads: Callable[[], bool], most: int = MOST_OBJECTS
    ) -> None:
        self._stores = stores
        self._leads = leads
        self._most = most

    def describe(self) -> Iterable[Metric]:
        """Families without samples: the registry asks for their names."""
        return (*self._families({}), *job_objects.families(None), *virtual_objects.families((), None))

    @override
    def collect(self) -> Iterator[Metric]:
        found = self._stores if self._leads() else {}
        yield from self._families({kind: store.items() for kind, store in found.items() if kind in _COUNTED})
        yield from job_objects.families(found[resources.SLURMJOBS].items() if resources.SLURMJOBS in found else None)
        nodes = found[resources.VIRTUAL_NODES].items() if resources.VIRTUAL_NODES in found else ()
        yield from virtual_objects.families(
            nodes, found[resources.VIRTUAL_PODS].items() if resources.VIRTUAL_PODS in found else None
        )

    def _families(self, found: Mapping[resources.Resource, Sequence[Object]]) -> Iterator[Metric]:
        shown = {one: in_turns(found.get(one, ()), self._most) for one in KINDS}
        total = _gauge("objects", "Objects by kind; the old job kinds with their group.", ["kind"])
        left_out = _gauge("objects_left_out", "Objects without samples of their own: there are too many.", ["kind"])
        for resource, objects in found.items():
            total.add_metric([JOB_KINDS.get(resource, resource.kind)], len(objects))
            if resource in shown:
                left_out.add_metric([resource.kind], len(objects) - len(shown[resource]))
        yield total
        yield left_out
        yield _conditions(shown)
        yield from _nodesets(shown[resources.NODESETS])
        yield from _autoscaling(shown[resources.NODESETS])
        yield _tokens(shown[resources.TOKENS])


def in_turns(objects: Sequence[Object], most: int) -> Sequence[Object]:
    """Choose objects that are shown one by one: namespaces take turns, so many objects of one hide none of another."""
    if len(objects) <= most:
        return objects
    by_namespace: defaultdict[str, list[Object]] = defaultdict(list)
    for obj in objects:
        by_namespace[obj["metadata"]["namespace"]].append(obj)
    turns = chain.from_iterable(zip_longest(*by_namespace.values()))
    return list(islice((obj for obj in turns if obj is not None), most))


def _gauge(name: str, what: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", what, labels=labels)


def _conditions(shown: Mapping[resources.Resource, Sequence[Object]]) -> Metric:
    family = _gauge(
        "condition", "Conditions of objects: 1 if true, 0 if false, -1 if unknown.", ["kind", *_WHERE, "condition"]
    )
    for resource, objects in shown.items():
        for obj in objects:
            for condition in _status(obj).get("conditions") or ():
                family.add_metric(
                    [resource.kind, *_where(obj), condition["type"]], TRUTH.get(condition["status"], -1.0)
                )
    return family


def _nodesets(objects: Iterable[Object]) -> Iterator[Metric]:
    nodes = _gauge("nodeset_nodes", "Slurm nodes of a NodeSet's pods, by state.", [*_WHERE, "cluster", "state"])
    pods = _gauge("nodeset_pods", "Pods of a NodeSet: desired, and those that exist.", [*_WHERE, "cluster", "state"])
    for obj in objects:
        status, cluster = _status(obj), str((obj.get("spec") or {}).get("clusterName") or "")
        if not status:
            continue
        counts = status.get("nodes") or {}
        for state in STATES:
            nodes.add_metric([*_where(obj), cluster, state], int(counts.get(state) or 0))
        for state, field in PODS.items():
            pods.add_metric([*_where(obj), cluster, state], int(status.get(field) or 0))
    yield nodes
    yield pods


def _autoscaling(objects: Iterable[Object]) -> Iterator[Metric]:
    where = [*_WHERE, "cluster"]
    wanted = _gauge(
        "nodeset_autoscaling_wanted_replicas", "Replicas that jobs need, with headroom and within the limits.", where
    )
    limits = _gauge(
        "nodeset_autoscaling_limit_replicas", "minReplicas and maxReplicas of autoscaling.", [*where, "limit"]
    )
    active = _gauge(
        "nodeset_autoscaling_active",
        "1 if autoscaling sets replicas, 0 if it does not; the label has the reason of the condition Autoscaling.",
        [*where, "reason"],
    )
    for obj in objects:
        spec: Mapping[str, Any] = obj.get("spec") or {}
        autoscaling = spec.get("autoscaling")
        if not isinstance(autoscaling, dict):
            continue
        labels = [*_where(obj), str(spec.get("clusterName") or "")]
        for limit, (field, default) in LIMITS.items():
            value = autoscaling.get(field, default)
            if value is not None:
                limits.add_metric([*labels, limit], int(value))
        shown = _status(obj).get("autoscaling") or {}
        if shown.get("wanted") is not None:
            wanted.add_metric(labels, int(shown["wanted"]))
        if shown.get("reason"):
            active.add_metric([*labels, str(shown["reason"])], float(bool(shown.get("active"))))
    yield from (wanted, limits, active)


def _tokens(objects: Iterable[Object]) -> Metric:
    family = _gauge("token_expiry_timestamp_seconds", "When the token in a Token's Secret ends, as Unix time.", _WHERE)
    for obj in objects:
        ends = _status(obj).get("expiresAt")
        if ends:
            family.add_metric(_where(obj), datetime.fromisoformat(str(ends)).timestamp())
    return family


def _status(obj: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("status") or {}
    return found


def _where(obj: Object) -> list[str]:
    return [str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])]
