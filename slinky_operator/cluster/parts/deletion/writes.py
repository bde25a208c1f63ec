"""Deletes everything of a Cluster, once the API server shows no slurmd pod of it."""

from __future__ import annotations

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import SetFinalizer, TearDown
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.claims import writes as claim_writes
from slinky_operator.cluster.writes import kubernetes_writes
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS, SECRETS


async def tear_down(action: TearDown, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Delete everything, then release the Cluster. As a cache may be outdated, pods are queried again first."""
    await adoption.prove(context.kube, cluster)
    node_sets = [
        obj
        async for obj in context.kube.each(NODESETS, cluster.namespace)
        if (obj.get("spec") or {}).get("clusterName") == cluster.name
    ]
    left = await _slurmd_pods(cluster, node_sets, context)
    if left:
        memory.slurmd_pods_left = left, context.clock()
        return True
    await context.clients.close(cluster.uid)
    for resource, name, uid in action.children:
        await kubernetes_writes.remove(resource, name, cluster.namespace, uid, context)
        if resource is SECRETS:
            context.sources.forget(cluster.namespace, name)
    for name, wanted in action.claims:
        await claim_writes.delete(name, wanted, cluster.namespace, context)
    for obj in node_sets:
        if labels.FINALIZER_NODESET_CONFIG in (obj["metadata"].get("finalizers") or ()):
            await kubernetes_writes.set_finalizer(
                SetFinalizer(NODESETS, obj, labels.FINALIZER_NODESET_CONFIG, present=False), memory, context
            )
    live = await context.live(CLUSTERS, cluster.name, cluster.namespace)
    if live is not None and live["metadata"]["uid"] == cluster.uid:
        await kubernetes_writes.set_finalizer(
            SetFinalizer(CLUSTERS, live, labels.FINALIZER_CLUSTER, present=False), memory, context
        )
    return False


async def _slurmd_pods(cluster: Cluster, node_sets: list[Object], context: PassContext) -> tuple[str, ...]:
    """Names of the pods of a Cluster's NodeSets: by label, and by owner if somebody has removed the label."""
    uids = {obj["metadata"]["uid"] for obj in node_sets}
    found = [
        str(pod["metadata"]["name"])
        async for pod in context.kube.each(PODS, cluster.namespace)
        if adoption.has_slurmd(pod, cluster)
        or not uids.isdisjoint(one.get("uid") for one in pod["metadata"].get("ownerReferences") or ())
    ]
    return tuple(sorted(found))
