"""The claims that outlive their pods: annotates them, and deletes those that may be deleted.

Before a claim is deleted, it is read past the cache, and the delete holds for exactly what was read: an annotation
removed meanwhile keeps the claim. Deleted claims are named in an Event.
"""

from __future__ import annotations

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS, PODS
from slinky_operator.nodeset.execute.context import PassContext, listed
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.actions import DeleteClaims, MarkClaims
from slinky_operator.nodeset.model.claims import Claim, Retention
from slinky_operator.nodeset.placement import claim_retention
from slinky_operator.reconcile.batches import gather_limited


async def mark(context: PassContext, action: MarkClaims) -> None:
    """Annotate claims with their retention, concurrently; errors are recorded."""
    context.outcome.acted = True
    for result in await gather_limited(_mark(context, claim, wanted) for claim, wanted in action.marks):
        if isinstance(result, errors.NotFound | errors.Conflict):
            continue  # gone, or another one with its name
        if isinstance(result, Exception):
            context.outcome.errors.append(result)
        elif isinstance(result, BaseException):
            raise result


async def _mark(context: PassContext, claim: Claim, wanted: Retention | None) -> None:
    note = {labels.ANNOTATION_CLAIM_RETENTION: wanted.value if wanted is not None else None}
    patch: Object = {"metadata": {"annotations": note}}
    await context.kube.merge_patch(PERSISTENTVOLUMECLAIMS, claim.name, patch, context.nodeset.namespace, uid=claim.uid)


async def delete(context: PassContext, action: DeleteClaims) -> None:
    """Delete claims of a scale-in that are still marked, and whose pods are gone according to the API server."""
    gone = [claim.name for claim in action.claims if await _delete(context, claim)]
    if gone:
        context.say(EventReason.CLAIM_DELETED, f"deleted after their pods, as whenScaled: Delete says: {listed(gone)}")


async def _delete(context: PassContext, claim: Claim) -> bool:
    namespace = context.nodeset.namespace
    try:
        await context.kube.get(PODS, claim.pod, namespace)
    except errors.NotFound:
        pass  # The expected answer: no pod uses the claim.
    else:
        return False
    try:
        found = await context.kube.get(PERSISTENTVOLUMECLAIMS, claim.name, namespace)
    except errors.NotFound:
        return False
    fresh = claims.read(found)
    if not claims.is_ours(context.nodeset, found) or (fresh.uid, fresh.pod) != (claim.uid, claim.pod) or fresh.deleting:
        return False
    if fresh.retention is not Retention.DELETE:
        context.outcome.kept.append(f"claim {claim.name} is no longer marked as one that goes")
        return False
    return await _delete_exactly(context, found)


async def release(context: PassContext) -> bool:
    """Delete the claims of a NodeSet that is being deleted, if its spec says so; annotate the others as retained.

    The pods must be gone. A NodeSet recreated under the name finds the annotations: whatever its policy, it deletes
    nothing that was retained before.

    Returns
    -------
    bool
        Whether all is done.
    """
    nodeset, gone, before = context.nodeset, [], len(context.outcome.kept)
    selector = f"{labels.LABEL_NODESET_NAME}={nodeset.name}"
    for obj in (await context.kube.list(PERSISTENTVOLUMECLAIMS, nodeset.namespace, label_selector=selector)).items:
        claim = claims.read(obj)
        if claim.deleting:
            continue
        if not claim_retention.goes_with_nodeset(nodeset, claim):
            if claim.retention is not Retention.RETAIN:
                try:
                    await _mark(context, claim, Retention.RETAIN)
                except (errors.NotFound, errors.Conflict):
                    continue  # gone, or another one with its name
        elif await _delete_exactly(context, obj):
            gone.append(claim.name)
    if gone:
        context.say(EventReason.CLAIM_DELETED, f"deleted with the NodeSet, as whenDeleted: Delete says: {listed(gone)}")
    return len(context.outcome.kept) == before


async def _delete_exactly(context: PassContext, found: Object) -> bool:
    """Delete a claim as it was just read; returns whether this call deleted it."""
    metadata = found["metadata"]
    name, version = metadata["name"], metadata.get("resourceVersion")
    try:
        await context.kube.delete(
            PERSISTENTVOLUMECLAIMS, name, context.nodeset.namespace, uid=metadata["uid"], resource_version=version
        )
    except errors.NotFound:
        return False
    except errors.Conflict:
        context.outcome.kept.append(f"claim {name} has just changed and is checked again")
        return False
    return True
