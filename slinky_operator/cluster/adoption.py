"""What deleted Clusters have left, and who owns it now.

What jobs need of a Cluster has no owner references, so a Cluster that loses its finalizer, or is restored from a
backup, leaves all of it behind, and slurmd pods continue with their jobs. A namespace has one Cluster of a name at a
time: objects that name this Cluster in their labels, with another uid, were left by a deleted one. They are taken over
unchanged: by name in every cache, and by a write that updates their labels and spec.

The cache of Clusters may be outdated, and the Cluster in it the deleted one. So the API server is queried before
anything with another uid is overwritten or deleted. Labels can be written by everybody who may write the object:
forging them gives an object of the namespace to a Cluster of the namespace, and nothing else.

For slurmd pods a deleted Cluster leaves a Service and a PodDisruptionBudget. They stay as long as there is a slurmd
pod, or a NodeSet that the next Cluster of the name may have pods for; then they are deleted. Trials that a deleted
Cluster has left are deleted at once.
"""

from __future__ import annotations

import logging
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.observe import CLUSTER_LABELS, UNMARKED, Caches, by_cluster_labels, is_trial
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    NODESETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICES,
    Resource,
)
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership

logger = logging.getLogger(__name__)

NAMED: Final = 10
"""Maximum number of objects named in an Event."""


class SupersededError(Exception):
    """The Cluster of a pass is not the one that the API server has; nothing with its name may be changed."""


def is_ours(obj: Object, cluster: Cluster) -> bool:
    """Whether an object belongs to exactly this Cluster."""
    return bool((obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_UID) == cluster.uid)


def is_left(obj: Object, cluster: Cluster) -> bool:
    """Whether an object was left by a former Cluster of this name; `prove` makes it certain."""
    found = obj["metadata"].get("labels") or {}
    return (
        found.get(labels.LABEL_APP_MANAGED_BY) == labels.MANAGED_BY
        and found.get(labels.LABEL_CLUSTER_NAME) == cluster.name
        and found.get(labels.LABEL_CLUSTER_UID) not in {None, "", cluster.uid}
    )


def not_ours(resource: Resource, name: str, cluster: Cluster) -> str:
    """The message about an object whose name is needed: how to hand it over, and when not to.

    It may be the Cluster's own, whose labels somebody has changed, and daemons may depend on it: the message never asks
    anybody to delete it.
    """
    kubectl, what = f"kubectl -n {cluster.namespace}", f"{resource.plural} {name}"
    marks = (
        f"{labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY} {labels.LABEL_CLUSTER_NAME}={cluster.name} "
        f"{labels.LABEL_CLUSTER_UID}={cluster.uid}"
    )
    return (
        f"one exists already without this Cluster's labels, and is left as it is. To see its owner: {kubectl} get "
        f"{what} -o yaml. If it is this Cluster's, assign it: {kubectl} label --overwrite {what} {marks}. If it is "
        "somebody else's, create the Cluster under another name"
    )


async def prove(kube: KubeClient, cluster: Cluster) -> None:
    """Prove that every other Cluster of this name is gone, since this one exists.

    Raises
    ------
    SupersededError
        The API server has another one of this name, or none.
    """
    try:
        live = await kube.get(CLUSTERS, cluster.name, cluster.namespace)
    except errors.NotFound:
        live = None
    if live is None or live["metadata"]["uid"] != cluster.uid:
        raise SupersededError(f"Cluster {cluster.namespace}/{cluster.name} of uid {cluster.uid} is gone")


def told(adopted: tuple[str, ...]) -> str:
    """The text of the Event about objects that were taken over."""
    more = f" and {len(adopted) - NAMED} more" if len(adopted) > NAMED else ""
    return f"taken over from a Cluster of this name that is gone: {', '.join(adopted[:NAMED])}{more}"


def has_slurmd(pod: Object, cluster: Cluster) -> bool:
    """Whether a pod belongs to a NodeSet, by owners or labels, and names this Cluster or a former one of its name."""
    own = pod["metadata"].get("labels") or {}
    named = own.get(labels.LABEL_CLUSTER_NAME) == cluster.name or own.get(labels.LABEL_CLUSTER_UID) == cluster.uid
    return named and pod_ownership.is_slurmd(pod)


async def sweep(kube: KubeClient, caches: Caches, key: Key) -> None:
    """Delete the Service and the budget of slurmd pods, if neither their Cluster nor anything that needs them is left.

    A NodeSet counts although it has no pods: its controller may be about to create some, for a Cluster that its cache
    still shows.
    """
    namespace, name = key
    value = f"{namespace}/{name}"
    left = [
        (resource, obj)
        for resource, obj in (
            (SERVICES, caches.services.get(namespace, naming.node_service(name))),
            (PODDISRUPTIONBUDGETS, caches.budgets.get(namespace, naming.disruption_budget(name))),
        )
        if obj is not None and by_cluster_labels(obj) == [value]
    ]
    pods = (*caches.pods.find(CLUSTER_LABELS, value), *caches.pods.find(UNMARKED, value))
    if not left or caches.node_sets.find(CLUSTER_INDEX, value) or any(map(pod_ownership.is_slurmd, pods)):
        return
    # The caches may be outdated.
    try:
        await kube.get(CLUSTERS, name, namespace)
    except errors.NotFound:
        selector = f"{labels.LABEL_CLUSTER_NAME}={name}"
        async for one in kube.each(PODS, namespace, label_selector=selector):
            if pod_ownership.is_slurmd(one):
                return
        async for one in kube.each(NODESETS, namespace):
            if (one.get("spec") or {}).get("clusterName") == name:
                return
        for resource, obj in left:
            await _delete(kube, resource, obj)


async def sweep_trials(kube: KubeClient, caches: Caches, key: Key) -> None:
    """Delete the pods and ConfigMaps of trials, if their Cluster is not left.

    A leader that has lost its Lease may have sent the request for one before, which is carried out afterwards.
    """
    namespace, name = key
    value = f"{namespace}/{name}"
    pods = [(PODS, obj) for obj in caches.pods.find(UNMARKED, value) if is_trial(obj, name)]
    maps = [
        (CONFIGMAPS, obj)
        for obj in caches.config_maps.find(CLUSTER_LABELS, value)
        if naming.is_preflight(name, obj["metadata"]["name"])
    ]
    left = [(resource, obj) for resource, obj in (*pods, *maps) if not obj["metadata"].get("deletionTimestamp")]
    if not left:
        return
    # The cache may be outdated.
    try:
        await kube.get(CLUSTERS, name, namespace)
    except errors.NotFound:
        for resource, obj in left:
            await _delete(kube, resource, obj)


async def _delete(kube: KubeClient, resource: Resource, obj: Object) -> None:
    metadata = obj["metadata"]
    try:
        await kube.delete(resource, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    except (errors.NotFound, errors.Conflict):
        logger.info("%s %s/%s has gone already", resource.kind, metadata["namespace"], metadata["name"])
