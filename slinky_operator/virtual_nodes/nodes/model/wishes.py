"""What a Cluster wants of virtual Nodes, as far as it is allowed, and what is refused of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.jobs import VirtualNodes
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import joined
from slinky_operator.virtual_nodes.nodes.model import hosts
from slinky_operator.virtual_nodes.nodes.model.node_labels import why_refused
from slinky_operator.virtual_nodes.nodes.model.partition_config import PartitionConfigError, parse
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Wanted


def refusal_of(cluster: Cluster, clusters: Iterable[Object], allowed: Collection[str]) -> Problem | None:
    """Why a Cluster has no virtual Nodes although its spec wants some."""
    wanted, key = cluster.spec.jobs.virtual_nodes, (cluster.namespace, cluster.name)
    if wanted is None:
        return None
    if cluster.deleting:
        return Reason.DELETING, "the Cluster is being deleted"
    if not hosts.is_allowed(key, allowed):
        return Reason.VIRTUAL_NODES_NOT_ALLOWED, (
            f"the operator's settings do not let this Cluster make Nodes: virtualNodes.clusters of its chart must name "
            f"{'/'.join(key)}"
        )
    holder = hosts.holder_of(wanted.host, clusters, allowed)
    if holder is not None and holder != key:
        told = f"spec.jobs.virtualNodes.host: {wanted.host} is that of Cluster {'/'.join(holder)}, which is older"
        return Reason.HOST_TAKEN, f"{told}: choose another one"
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
