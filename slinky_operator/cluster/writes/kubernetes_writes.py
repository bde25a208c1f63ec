"""The part of `executor` that writes Kubernetes objects: each write may be repeated, and a cache may be outdated."""

from __future__ import annotations

import logging
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import AdoptKey, SetFinalizer, StartPreflight, TouchPod, Write
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import left_out_again
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, PODS, SECRETS, Resource
from slinky_operator.reconcile.writes import finalizers
from slinky_operator.reconcile.writes.children import Child, Settled, is_current

logger = logging.getLogger(__name__)


async def set_finalizer(action: SetFinalizer, memory: Memory, context: PassContext) -> None:
    """Add or remove a finalizer; nothing is removed from an object that is gone."""
    resource, obj, finalizer = action.resource, action.obj, action.finalizer
    try:
        answer = await finalizers.set_finalizer(context.kube, resource, obj, finalizer, present=action.present)
    except errors.NotFound:
        if action.present:
            raise
    else:
        memory.writes.note(answer, context.clock())


async def adopt_key(action: AdoptKey, cluster: Cluster, memory: Memory, context: PassContext) -> None:
    """Assign a Secret left by a former Cluster to this one, once that is proven to be gone."""
    await adoption.prove(context.kube, cluster)
    patch = {"metadata": {"labels": {labels.LABEL_CLUSTER_UID: cluster.uid}}}
    try:
        await context.kube.merge_patch(SECRETS, action.name, patch, cluster.namespace, uid=action.uid)
        memory.adopted += (f"Secret {action.name}",)
    except (errors.NotFound, errors.Conflict):
        logger.info("Secret %s/%s has gone, or has been replaced, already", cluster.namespace, action.name)
    context.sources.forget(cluster.namespace, action.name)


async def write(action: Write, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Apply an object; a rejection, or an object that belongs to somebody else, is remembered and reported."""
    child = action.child
    body = child.body
    found = action.live or await context.live(child.resource, child.name, cluster.namespace)
    left = found is not None and adoption.is_left(found, cluster)
    if found is not None and not left and not adoption.is_ours(found, cluster):
        why = adoption.not_ours(child.resource, child.name, cluster)
        memory.writes.denied[child.key] = Denied("", why, context.clock())
        return True
    if left:
        await adoption.prove(context.kube, cluster)
    uid = None if found is None else found["metadata"]["uid"]
    if found is not None and action.live is None and _is_relabelled(child, found):
        return await _shown(child, found, cluster, memory, context)
    if uid is not None:
        body = {**body, "metadata": {**body["metadata"], "uid": uid}}
    foreign = {} if found is None else _foreign(child, found)
    try:
        if foreign:
            # What another manager has added stays in an apply.
            await context.kube.merge_patch(child.resource, child.name, foreign, cluster.namespace, uid=uid)
        # Force is not used to create an object: one that somebody has created meanwhile is not taken over.
        answer = await context.kube.apply(child.resource, body, force=uid is not None)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        memory.writes.denied[child.key] = Denied(child.digest, error.message, context.clock())
        return True
    if left:
        memory.adopted += (f"{child.resource.kind} {child.name}",)
    memory.writes.note(answer, context.clock())
    if is_current(child.body, answer):
        memory.writes.settled.pop(child.key, None)
    else:
        memory.writes.settled[child.key] = Settled.of(child, answer)
    return memory.writes.denied.pop(child.key, None) is not None


def _foreign(child: Child, found: Object) -> Object:
    """The patch that takes out of a ConfigMap what somebody has added to its files; empty if nobody has."""
    if child.resource is not CONFIGMAPS:
        return {}
    added = {key: None for key in found.get("data") or {} if key not in child.body["data"]}
    return {"data": added} if added else {}


def _is_relabelled(child: Child, found: Object) -> bool:
    """Whether somebody has changed the labels of an object by which caches select it."""
    own = found["metadata"].get("labels") or {}
    return any(own.get(key) != value for key, value in child.body["metadata"]["labels"].items())


async def _shown(child: Child, found: Object, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Give an object that no cache shows its labels, and nothing else: the plan did not know what it is like."""
    patch = {"metadata": {"labels": child.body["metadata"]["labels"]}}
    uid = found["metadata"]["uid"]
    try:
        answer = await context.kube.merge_patch(child.resource, child.name, patch, cluster.namespace, uid=uid)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        memory.writes.denied[child.key] = Denied(child.digest, error.message, context.clock())
        return True
    if adoption.is_left(found, cluster):
        memory.adopted += (f"{child.resource.kind} {child.name}",)
    memory.writes.note(answer, context.clock())
    memory.writes.denied.pop(child.key, None)
    return True


async def touch(action: TouchPod, context: PassContext) -> None:
    """Change the annotation of a pod, so that its kubelet refreshes volumes."""
    metadata = action.pod["metadata"]
    try:
        await context.kube.merge_patch(
            PODS,
            metadata["name"],
            {"metadata": {"annotations": {labels.ANNOTATION_CONFIG_TOUCH: action.value}}},
            metadata["namespace"],
            uid=metadata["uid"],
        )
    except (errors.NotFound, errors.Conflict):
        logger.info("slurmctld's pod %s/%s has been replaced", metadata["namespace"], metadata["name"])


async def remove(resource: Resource, name: str, namespace: str, uid: str, context: PassContext) -> None:
    """Delete an object by its uid; one that is gone or replaced is no error."""
    try:
        await context.kube.delete(resource, name, namespace, uid=uid)
    except (errors.NotFound, errors.Conflict):
        logger.info("%s %s/%s has gone, or has been replaced, already", resource.kind, namespace, name)


async def start_preflight(action: StartPreflight, cluster: Cluster, memory: Memory, context: PassContext) -> bool:
    """Create the ConfigMap if there is one, then the pod; existing ones are used, since names identify contents."""
    wanted = action.preflight
    for child in filter(None, (wanted.config_map, wanted.pod)):
        try:
            await context.kube.create(child.resource, dict(child.body), cluster.namespace)
        except errors.AlreadyExists:
            logger.info("%s %s/%s is there already", child.resource.kind, cluster.namespace, child.name)
        except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            whose = await refused_parts(action, cluster.namespace, context.kube) if child is wanted.pod else {}
            if whose:
                memory.rollout.left_out |= left_out_again(
                    memory.rollout.left_out, whose, context.clock(), on_its_node=bool(wanted.node)
                )
            else:
                memory.writes.denied[child.key] = Denied(child.digest, error.message, context.clock())
            return True
        memory.writes.denied.pop(child.key, None)
    return False


LONGEST: Final = 600
"""Maximum characters of a stored rejection."""


async def refused_parts(action: StartPreflight, namespace: str, kube: KubeClient) -> dict[str, str]:
    """Find out which slurmds prevent a preflight's pod from being admitted.

    Each question is a dry run, which admission (Pod Security, quotas, policies) treats as a creation. Nothing is
    created.

    Returns
    -------
    dict
        The API server's message for each of them; empty if the pod would be rejected without slurmds too, or if no
        single one is the cause.
    """
    if action.alone is None or await _refusal(action.alone, namespace, kube) is not None:
        return {}
    answers = {key: await _refusal(body, namespace, kube) for key, body in action.parts.items()}
    return {key: words for key, words in answers.items() if words is not None}


async def _refusal(body: Object, namespace: str, kube: KubeClient) -> str | None:
    try:
        await kube.create(PODS, dict(body), namespace, dry_run=True)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        return f"the API server refuses its pod: {error.message[:LONGEST]}"
    except errors.AlreadyExists:
        return None
    return None
