"""What a Cluster wants of virtual Nodes, as far as it is allowed, and what is refused of it. Pure.

Nodes belong to no namespace: their names are everybody's. So the operator's settings name the Clusters that may make
any, and of two that want one host name the older has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.jobs import VirtualNodes
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import joined
from slinky_operator.settings import ALL
from slinky_operator.virtual_nodes.nodes.model.node_labels import why_refused
from slinky_operator.virtual_nodes.nodes.model.partition_config import PartitionConfigError, parse
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Wanted


def host_of(obj: Object) -> str | None:
    """The host name that a Cluster wants; None if it wants no virtual Nodes. It may not have been parsed yet."""
    spec = obj.get("spec")
    jobs = spec.get("jobs") if isinstance(spec, dict) else None
    wanted = jobs.get("virtualNodes") if isinstance(jobs, dict) else None
    host = wanted.get("host") if isinstance(wanted, dict) else None
    return host if isinstance(host, str) else None


def is_allowed(key: Key, allowed: Collection[str]) -> bool:
    """Whether the settings let a Cluster have virtual Nodes."""
    return ALL in allowed or "/".join(key) in allowed


def holder_of(host: str, clusters: Iterable[Object], allowed: Collection[str]) -> Key | None:
    """The Cluster that has a host name: the oldest of those that want it and may."""
    wanting = [obj for obj in clusters if host_of(obj) == host and is_allowed(key_of(obj), allowed)]
    return min(map(_age, wanting))[1] if wanting else None


def _age(obj: Object) -> tuple[str, Key]:
    return str(obj["metadata"].get("creationTimestamp") or ""), key_of(obj)


def refusal_of(cluster: Cluster, clusters: Iterable[Object], allowed: Collection[str]) -> Problem | None:
    """Why a Cluster has no virtual Nodes although its spec wants some."""
    wanted, key = cluster.spec.jobs.virtual_nodes, (cluster.namespace, cluster.name)
    if wanted is None:
        return None
    if cluster.deleting:
        return Reason.DELETING, "the Cluster is being deleted"
    if not is_allowed(key, allowed):
        return Reason.VIRTUAL_NODES_NOT_ALLOWED, (
            f"the operator's settings do not let this Cluster make Nodes: virtualNodes.clusters of its chart must name "
            f"{'/'.join(key)}"
        )
    holder = holder_of(wanted.host, clusters, allowed)
    if holder is not None and holder != key:
        told = f"spec.jobs.virtualNodes.host: Cluster {'/'.join(holder)}, which is older, has the host {wanted.host}"
        return Reason.HOST_TAKEN, f"{told}, so this Cluster has no virtual Nodes: choose another one"
    return None


def wanted_of(spec: VirtualNodes) -> tuple[Wanted, tuple[Problem, ...]]:
    """What the spec wants, as far as it is allowed, and what is not."""
    problems: list[Problem] = []
    refused = {key: why for key, value in spec.labels.items() if (why := why_refused(key, value))}
    if refused:
        told = joined([f"{key} {why}" for key, why in sorted(refused.items())])
        problems.append((Reason.LABEL_REFUSED, f"spec.jobs.virtualNodes.labels: {told}"))
    overrides = None
    try:
        overrides = parse(spec.partition_config or "")
    except PartitionConfigError as error:
        told = "Labels of Nodes stay as they are, and no Node is made"
        field = "spec.jobs.virtualNodes.partitionConfig"
        problems.append((Reason.PARTITION_CONFIG_INVALID, f"{field}: {error}. {told}"))
    site = {key: value for key, value in spec.labels.items() if key not in refused}
    chosen = Wanted(spec.host, spec.partitions, spec.allocatable == "Unlimited", site, spec.zone, overrides)
    return chosen, tuple(problems)
