"""Creates pods with their claims: a part of `executor`, a few at first, and many at a time once one was accepted."""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.execute import owned_objects
from slinky_operator.nodeset.execute.context import PassContext, listed
from slinky_operator.nodeset.model.actions import CreatePods
from slinky_operator.nodeset.model.pods import guard, lost_labels
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions.revision import restored, restored_cluster
from slinky_operator.nodeset.pod_spec.builder import PodBuilder
from slinky_operator.nodeset.pod_spec.validation import RefusedTemplate, demand
from slinky_operator.reconcile.batches import few_first

FIRST: Final = 8
"""Pods created concurrently until one was accepted, so that an invalid spec fails only a few times."""


async def create(context: PassContext, action: CreatePods) -> None:
    """Create pods, until one is rejected."""
    wanted, guard_uid = [place for place in action.places if _take(context, place)], context.guards[context.nodeset.uid]
    if context.cluster is None:
        raise ValueError("a pod cannot be made without a Cluster")
    try:
        nodeset, cluster = _at(context, action.revision, context.cluster)
    except RefusedTemplate as error:
        context.outcome.errors.append(error)
        return
    stencil = PodBuilder(nodeset, cluster, revision=action.revision, guard_uid=guard_uid, defaults=context.defaults)
    created: set[str] = set()
    await few_first((_create(context, nodeset, stencil, place, created) for place in wanted), FIRST)
    context.changes.pods_created(len(created))
    if created:
        told = [place.pod for place in wanted if place.pod in created]
        context.say(Reason.SCALING_OUT, f"created: {listed(told)}")


async def _create(
    context: PassContext, nodeset: NodeSet, stencil: PodBuilder, place: PodSlot, created: set[str]
) -> bool:
    """Create a pod and record the outcome; False if no further one is to be tried."""
    context.outcome.acted = True
    namespace = context.nodeset.namespace
    context.expectations.expect_creations(context.nodeset.uid, namespace, [place.pod])
    try:
        result = await _create_one(context, nodeset, stencil, place)
    except kube_errors.KubeError as error:
        context.expectations.creation_failed(namespace, place.pod)
        if isinstance(error, kube_errors.Invalid | kube_errors.Forbidden | kube_errors.BadRequest):
            context.outcome.refusals.append(f"pod {place.pod}: {error.message}")
            context.warn(Reason.POD_REFUSED, f"pod {place.pod}: {error.message}")
        context.outcome.errors.append(error)
        return False
    if isinstance(result, dict):
        context.expectations.created(result)
        created.add(place.pod)
        return True
    context.expectations.creation_failed(namespace, place.pod)
    if result is not None:
        context.outcome.refusals.append(result)
    else:
        context.outcome.kept.append(f"pod {place.pod} is there already, and the operator's cache has yet to show it")
    return True


def _take(context: PassContext, place: PodSlot) -> bool:
    """Reserve the name of a node, unless another NodeSet has just done so: a moment later the cache shows its pod."""
    if context.cluster is None or context.reserved.take(context.cluster.uid, place.node, context.nodeset.uid):
        return True
    context.outcome.kept.append(f"node {place.node} is just being created by another NodeSet")
    return False


def _at(context: PassContext, revision: str, cluster: Cluster) -> tuple[NodeSet, Cluster]:
    """The NodeSet as it was at a revision, and the Cluster with what of it is part of a revision.

    Its own spec was checked when it was read, or none of its pods would be created; a recorded one is checked here,
    since what is allowed also depends on the current Cluster.

    Raises
    ------
    RefusedTemplate
        No pod can be created from the recorded spec.
    """
    found = next((one for one in context.revision.recorded if one.hash == revision), None)
    if revision == context.revision.hash or found is None:
        return context.nodeset, cluster
    before, cluster = restored(context.nodeset, found.content), restored_cluster(cluster, found.content)
    demand(before, cluster)
    return before, cluster


async def _create_one(
    context: PassContext, nodeset: NodeSet, stencil: PodBuilder, place: PodSlot
) -> Object | str | None:
    """Create a pod: returns it, or why its name is taken, or None if it exists already and belongs to the NodeSet."""
    why = await owned_objects.ensure_claims(context.kube, nodeset, place.pod, context.claims)
    if why is not None:
        return why
    try:
        return await context.kube.create(PODS, stencil.pod(place))
    except kube_errors.AlreadyExists:
        there = await context.kube.get(PODS, place.pod, context.nodeset.namespace)
        lost = lost_labels.words(context.nodeset, there, context.revision.current or context.revision.hash)
        if lost is not None:
            return lost
        if (there["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID) == context.nodeset.uid:
            return None
        return guard.stranger(context.nodeset, there)
