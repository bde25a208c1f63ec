"""Keeps a NodeSet until its pods are gone: finalizer and guard, from the takeover of pods to the release."""

from __future__ import annotations

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, NODESETS, PODS
from slinky_operator.nodeset.execute import owned_objects
from slinky_operator.nodeset.execute.context import LONGEST_LIST, MustWait, PassContext, listed
from slinky_operator.nodeset.model import takeover
from slinky_operator.nodeset.model.actions import RemoveFinalizer
from slinky_operator.nodeset.model.pods import guard, lost_labels
from slinky_operator.reconcile.writes.children import create_or_adopt
from slinky_operator.reconcile.writes.finalizers import set_finalizer


async def add_finalizer(context: PassContext) -> None:
    """Keep the NodeSet until its pods are gone."""
    await _set_finalizer(context, present=True)


async def _set_finalizer(context: PassContext, *, present: bool) -> None:
    context.outcome.acted = True
    _ = await set_finalizer(context.kube, NODESETS, context.obj, labels.FINALIZER_NODESET_DRAIN, present=present)


async def take_over(context: PassContext) -> None:
    """Take over another operator's pods, those that the API server itself shows."""
    selector, names = f"!{labels.LABEL_NODESET_UID}", list[str]()
    async for obj in context.kube.each(PODS, context.nodeset.namespace, label_selector=selector):
        if not takeover.is_theirs(context.nodeset, obj):
            continue
        if context.cluster is None:
            raise MustWait(
                f"pods of another operator wait for Cluster {context.nodeset.spec.cluster_name} to be taken over"
            )
        if not names:
            await ensure_guard(context)
        await owned_objects.take_over_claims(context.kube, context.nodeset, obj)
        # The pod cache has not shown it so far, as it lacked the labels: to the cache it is a new one.
        name, namespace = obj["metadata"]["name"], context.nodeset.namespace
        context.expectations.expect_creations(context.nodeset.uid, namespace, [name])
        try:
            context.expectations.created(await _take_over_one(context, context.cluster, obj))
        except kube_errors.KubeError:
            context.expectations.creation_failed(namespace, name)
            raise
        names.append(name)
    if names:
        context.say(EventReason.PODS_TAKEN_OVER, f"taken over from another operator: {listed(names)}")


async def _take_over_one(context: PassContext, cluster: Cluster, obj: Object) -> Object:
    metadata = obj["metadata"]
    return await context.kube.merge_patch(
        PODS,
        metadata["name"],
        takeover.patch(context.nodeset, cluster, obj, context.guards[context.nodeset.uid]),
        context.nodeset.namespace,
        resource_version=metadata["resourceVersion"],
        uid=metadata["uid"],
    )


async def ensure_guard(context: PassContext) -> None:
    """Create the second owner of all pods, unless it exists.

    Raises
    ------
    NameTaken
        A ConfigMap of that name belongs to somebody else.
    """
    nodeset = context.nodeset
    obj = await create_or_adopt(
        context.kube, CONFIGMAPS, guard.build(nodeset), lambda found: guard.is_ours(nodeset, found)
    )
    context.guards[context.nodeset.uid] = obj["metadata"]["uid"]


async def remove_finalizer(context: PassContext, action: RemoveFinalizer) -> None:
    """Release the NodeSet, after a list past the cache: a pod whose creation was never answered may not be in it yet.

    Nor is a pod from which somebody has removed the operator's labels; but without guard and NodeSet the garbage
    collector would delete it, whatever runs there.

    If the user has given up the jobs, records that jobs name stay in Slurm without the NodeSet.
    """
    nodeset = context.nodeset
    if context.outcome.downed:
        context.outcome.kept.append(f"Slurm requeues or fails the jobs of {listed(context.outcome.downed)}")
        return
    if context.outcome.named and not action.anyway:
        # They are named since the plan was made, which would have waited for this.
        return
    async for obj in context.kube.each(PODS, nodeset.namespace):
        metadata = obj["metadata"]
        lost = lost_labels.words(nodeset, obj, context.revision.current or context.revision.hash)
        if lost is None and (metadata.get("labels") or {}).get(labels.LABEL_NODESET_UID) == nodeset.uid:
            context.outcome.kept.append(f"pod {metadata['name']} is still there")
            return
        if guard.is_owned_by(nodeset, obj):
            lost = lost or f"pod {metadata['name']} has lost its labels"
            context.outcome.kept.append(f"{lost}. It would go with the NodeSet, which therefore waits")
            return
    if not await owned_objects.release_claims(context):
        return
    left = sorted({*action.named, *context.outcome.named})
    if left and action.anyway:
        context.warn(
            EventReason.RECORDS_LEFT,
            f"records stay in Slurm, since jobs or reservations name the nodes: {listed(left)}. Once nothing names "
            f"them: scontrol delete nodename={','.join(left[:LONGEST_LIST])}",
        )
    await _delete_guard(context)
    await _set_finalizer(context, present=False)


async def _delete_guard(context: PassContext) -> None:
    name, namespace = guard.name(context.nodeset), context.nodeset.namespace
    try:
        obj = await context.kube.get(CONFIGMAPS, name, namespace)
        if guard.is_ours(context.nodeset, obj):
            await context.kube.delete(CONFIGMAPS, name, namespace, uid=obj["metadata"]["uid"])
    except kube_errors.NotFound:
        pass  # gone already: deleted by an earlier pass or process that did not finish the release
    context.guards.pop(context.nodeset.uid, None)
