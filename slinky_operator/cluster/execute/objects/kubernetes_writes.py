"""The part of `executor` that writes Kubernetes objects: each write may be repeated, and a cache may be outdated."""

from __future__ import annotations

import logging

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import succession
from slinky_operator.cluster.actions import AdoptKey, SetFinalizer, StartPreflight, TearDown, TouchPod, Write
from slinky_operator.cluster.execute.context import Tools
from slinky_operator.cluster.execute.objects import claim_writes
from slinky_operator.cluster.execute.objects.admission import refused_parts
from slinky_operator.cluster.memory import Claim, Denied, Memory, left_out_again
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PERSISTENTVOLUMECLAIMS, PODS, SECRETS, Resource
from slinky_operator.reconcile.writes import finalizers
from slinky_operator.reconcile.writes.children import Settled, is_current

logger = logging.getLogger(__name__)


async def set_finalizer(action: SetFinalizer, memory: Memory, tools: Tools) -> None:
    """Add or remove a finalizer; nothing is removed from an object that is gone."""
    resource, obj, finalizer = action.resource, action.obj, action.finalizer
    try:
        answer = await finalizers.set_finalizer(tools.kube, resource, obj, finalizer, present=action.present)
    except errors.NotFound:
        if action.present:
            raise
    else:
        memory.note(answer, tools.clock())


async def adopt_key(action: AdoptKey, cluster: Cluster, memory: Memory, tools: Tools) -> None:
    """Assign a Secret left by a former Cluster to this one, once that is proven to be gone."""
    await succession.prove(tools.kube, cluster)
    patch = {"metadata": {"labels": {labels.LABEL_CLUSTER_UID: cluster.uid}}}
    try:
        await tools.kube.merge_patch(SECRETS, action.name, patch, cluster.namespace, uid=action.uid)
        memory.adopted += (f"Secret {action.name}",)
    except (errors.NotFound, errors.Conflict):
        logger.info("Secret %s/%s has gone, or has been replaced, already", cluster.namespace, action.name)
    tools.sources.forget(cluster.namespace, action.name)


async def write(action: Write, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Apply an object; a rejection, or an object that belongs to somebody else, is remembered and reported."""
    child = action.child
    body = child.body
    found = action.live or await tools.live(child.resource, child.name, cluster.namespace)
    left = found is not None and succession.is_left(found, cluster)
    if found is not None and not left and not succession.is_ours(found, cluster):
        why = succession.not_ours(child.resource, child.name, cluster)
        memory.denied[child.key] = Denied("", why, tools.clock())
        return True
    if left:
        await succession.prove(tools.kube, cluster)
    uid = None if found is None else found["metadata"]["uid"]
    if uid is not None:
        body = {**body, "metadata": {**body["metadata"], "uid": uid}}
    try:
        # Force is not used to create an object: one that somebody has created meanwhile is not taken over.
        answer = await tools.kube.apply(child.resource, body, force=uid is not None)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
        return True
    if left:
        memory.adopted += (f"{child.resource.kind} {child.name}",)
    memory.note(answer, tools.clock())
    if is_current(child.body, answer):
        memory.settled.pop(child.key, None)
    else:
        memory.settled[child.key] = Settled.of(child, answer)
    return memory.denied.pop(child.key, None) is not None


async def ask_claim(name: str, namespace: str, tools: Tools) -> Claim:
    """Read a claim past the caches."""
    found = await tools.live(PERSISTENTVOLUMECLAIMS, name, namespace)
    deleted = found["metadata"].get("deletionTimestamp") if found is not None else None
    return Claim(name, tools.clock(), deleted or "")


async def touch(action: TouchPod, tools: Tools) -> None:
    """Change the annotation of a pod, so that its kubelet refreshes volumes."""
    metadata = action.pod["metadata"]
    try:
        await tools.kube.merge_patch(
            PODS,
            metadata["name"],
            {"metadata": {"annotations": {labels.ANNOTATION_CONFIG_TOUCH: action.value}}},
            metadata["namespace"],
            uid=metadata["uid"],
        )
    except (errors.NotFound, errors.Conflict):
        logger.info("slurmctld's pod %s/%s has been replaced", metadata["namespace"], metadata["name"])


async def remove(resource: Resource, name: str, namespace: str, uid: str, tools: Tools) -> None:
    """Delete an object by its uid; one that is gone or replaced is no error."""
    try:
        await tools.kube.delete(resource, name, namespace, uid=uid)
    except (errors.NotFound, errors.Conflict):
        logger.info("%s %s/%s has gone, or has been replaced, already", resource.kind, namespace, name)


async def start_preflight(action: StartPreflight, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Create the ConfigMap if there is one, then the pod; existing ones are used, since names identify contents."""
    wanted = action.preflight
    for child in filter(None, (wanted.config_map, wanted.pod)):
        try:
            await tools.kube.create(child.resource, dict(child.body), cluster.namespace)
        except errors.AlreadyExists:
            logger.info("%s %s/%s is there already", child.resource.kind, cluster.namespace, child.name)
        except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            whose = await refused_parts(action, cluster.namespace, tools.kube) if child is wanted.pod else {}
            if whose:
                memory.left_out |= left_out_again(memory.left_out, whose, tools.clock(), on_its_node=bool(wanted.node))
            else:
                memory.denied[child.key] = Denied(child.digest, error.message, tools.clock())
            return True
        memory.denied.pop(child.key, None)
    return False


async def tear_down(action: TearDown, cluster: Cluster, memory: Memory, tools: Tools) -> bool:
    """Delete everything, then release the Cluster. As a cache may be outdated, pods are queried again first."""
    await succession.prove(tools.kube, cluster)
    node_sets = [
        obj
        for obj in (await tools.kube.list(NODESETS, cluster.namespace)).items
        if (obj.get("spec") or {}).get("clusterName") == cluster.name
    ]
    left = await _slurmd_pods(cluster, node_sets, tools)
    if left:
        memory.slurmd_pods_left = left, tools.clock()
        return True
    await tools.clients.close(cluster.uid)
    for resource, name, uid in action.children:
        await remove(resource, name, cluster.namespace, uid, tools)
        if resource is SECRETS:
            tools.sources.forget(cluster.namespace, name)
    for name, wanted in action.claims:
        await claim_writes.delete(name, wanted, cluster.namespace, tools)
    for obj in node_sets:
        if labels.FINALIZER_NODESET_CONFIG in (obj["metadata"].get("finalizers") or ()):
            await set_finalizer(
                SetFinalizer(NODESETS, obj, labels.FINALIZER_NODESET_CONFIG, present=False), memory, tools
            )
    live = await tools.live(CLUSTERS, cluster.name, cluster.namespace)
    if live is not None and live["metadata"]["uid"] == cluster.uid:
        await set_finalizer(SetFinalizer(CLUSTERS, live, labels.FINALIZER_CLUSTER, present=False), memory, tools)
    return False


async def _slurmd_pods(cluster: Cluster, node_sets: list[Object], tools: Tools) -> tuple[str, ...]:
    """Names of the pods of a Cluster's NodeSets: by label, and by owner if somebody has removed the label."""
    uids = {obj["metadata"]["uid"] for obj in node_sets}
    pods = (await tools.kube.list(PODS, cluster.namespace)).items
    return tuple(
        sorted(
            pod["metadata"]["name"]
            for pod in pods
            if succession.has_slurmd(pod, cluster)
            or not uids.isdisjoint(one.get("uid") for one in pod["metadata"].get("ownerReferences") or ())
        )
    )
