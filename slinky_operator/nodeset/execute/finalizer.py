"""Keeps a NodeSet until its pods are gone: finalizer and guard, from the takeover of pods to the release."""

from __future__ import annotations

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, NODESETS, PODS
from slinky_operator.nodeset.execute import claim_writes, owned_objects, takeover
from slinky_operator.nodeset.execute.context import MustWait, PassContext, listed
from slinky_operator.nodeset.model import guard
from slinky_operator.nodeset.observation import lost_labels
from slinky_operator.reconcile.create_or_adopt import create_or_adopt
from slinky_operator.reconcile.finalizers import set_finalizer


async def add_finalizer(means: PassContext) -> None:
    """Keep the NodeSet until its pods are gone."""
    await _set_finalizer(means, present=True)


async def _set_finalizer(means: PassContext, *, present: bool) -> None:
    means.outcome.acted = True
    _ = await set_finalizer(means.kube, NODESETS, means.obj, labels.FINALIZER_NODESET_DRAIN, present=present)


async def take_over(means: PassContext) -> None:
    """Take over another operator's pods, those that the API server itself shows."""
    selector = f"!{labels.LABEL_NODESET_UID}"
    found = (await means.kube.list(PODS, means.nodeset.namespace, label_selector=selector)).items
    theirs = [obj for obj in found if takeover.is_theirs(means.nodeset, obj)]
    if not theirs:
        return
    if means.cluster is None:
        raise MustWait(f"pods of another operator wait for Cluster {means.nodeset.spec.cluster_name} to be taken over")
    await ensure_guard(means)
    for obj in theirs:
        await owned_objects.take_over_claims(means.kube, means.nodeset, obj)
        # The pod cache has not shown it so far, as it lacked the labels: to the cache it is a new one.
        name, namespace = obj["metadata"]["name"], means.nodeset.namespace
        means.expectations.expect_creations(means.nodeset.uid, namespace, [name])
        try:
            means.expectations.created(await _take_over_one(means, means.cluster, obj))
        except kube_errors.KubeError:
            means.expectations.creation_failed(namespace, name)
            raise
    names = [obj["metadata"]["name"] for obj in theirs]
    means.say("PodsTakenOver", f"taken over from another operator: {listed(names)}")


async def _take_over_one(means: PassContext, cluster: Cluster, obj: Object) -> Object:
    metadata = obj["metadata"]
    return await means.kube.merge_patch(
        PODS,
        metadata["name"],
        takeover.patch(means.nodeset, cluster, obj, means.guards[means.nodeset.uid]),
        means.nodeset.namespace,
        resource_version=metadata["resourceVersion"],
        uid=metadata["uid"],
    )


async def ensure_guard(means: PassContext) -> None:
    """Create the second owner of all pods, unless it exists.

    Raises
    ------
    NameTaken
        A ConfigMap of that name belongs to somebody else.
    """
    nodeset = means.nodeset
    obj = await create_or_adopt(
        means.kube, CONFIGMAPS, guard.build(nodeset), lambda found: guard.is_ours(nodeset, found)
    )
    means.guards[means.nodeset.uid] = obj["metadata"]["uid"]


async def let_go(means: PassContext) -> None:
    """Release the NodeSet, after a list past the cache: a pod whose creation was never answered may not be in it yet.

    Nor is a pod from which somebody has removed the operator's labels; but without guard and NodeSet the garbage
    collector would delete it, whatever runs there.
    """
    nodeset = means.nodeset
    if means.outcome.downed:
        means.outcome.kept.append(f"Slurm requeues or fails the jobs of {listed(means.outcome.downed)}")
        return
    for obj in (await means.kube.list(PODS, nodeset.namespace)).items:
        metadata = obj["metadata"]
        lost = lost_labels.words(nodeset, obj, means.revision.current or means.revision.hash)
        if lost is None and (metadata.get("labels") or {}).get(labels.LABEL_NODESET_UID) == nodeset.uid:
            means.outcome.kept.append(f"pod {metadata['name']} is still there")
            return
        if guard.is_owned_by(nodeset, obj):
            lost = lost or f"pod {metadata['name']} has lost its labels"
            means.outcome.kept.append(f"{lost}. It would go with the NodeSet, which therefore waits")
            return
    if not await claim_writes.let_go(means):
        return
    await _delete_guard(means)
    await _set_finalizer(means, present=False)


async def _delete_guard(means: PassContext) -> None:
    name, namespace = guard.name(means.nodeset), means.nodeset.namespace
    try:
        obj = await means.kube.get(CONFIGMAPS, name, namespace)
        if guard.is_ours(means.nodeset, obj):
            await means.kube.delete(CONFIGMAPS, name, namespace, uid=obj["metadata"]["uid"])
    except kube_errors.NotFound:
        pass  # gone already: deleted by an earlier pass or process that did not finish the release
    means.guards.pop(means.nodeset.uid, None)
