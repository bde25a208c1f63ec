"""Records revisions; creates claims before their pods, annotates them, and deletes those that may be deleted.

Each write may be repeated, and may meet the result of an earlier pass that the cache does not show: names follow from
content, and what is deleted or changed is named by uid. Before a claim is deleted, it is read past the cache, and the
delete holds for exactly what was read: an annotation removed meanwhile keeps the claim. An Event names deleted claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, PODS
from slinky_operator.nodeset.execute.context import PassContext, listed
from slinky_operator.nodeset.model import claims, takeover
from slinky_operator.nodeset.model.actions import (
    DeleteClaims,
    DropRevisions,
    MarkClaims,
    RecordRevision,
    RenumberRevision,
)
from slinky_operator.nodeset.model.claims import Retention, VolumeClaim
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.placement import claim_retention
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.reconcile.writes.children import NameTaken


async def record(kube: Kube, nodeset: NodeSet, revision: Revision, action: RecordRevision) -> None:
    """Record the revision of the spec; an existing record of the NodeSet's is used.

    Raises
    ------
    NameTaken
        A ControllerRevision of that name belongs to somebody else.
    KubeError
        The API server failed or refused.
    """
    body = revision_records.build(nodeset, revision.hash, revision.content, action.number)
    try:
        await kube.create(CONTROLLERREVISIONS, body)
    except kube_errors.AlreadyExists:
        name = body["metadata"]["name"]
        there = (await kube.get(CONTROLLERREVISIONS, name, nodeset.namespace))["metadata"]
        own = there.get("labels") or {}
        if own.get(labels.LABEL_NODESET_UID) == nodeset.uid:
            return
        if own.get(labels.LABEL_NODESET_NAME) != nodeset.name:
            raise NameTaken(f"there is a ControllerRevision {name} that is not ours") from None
        # Of an earlier NodeSet of that name: the garbage collector has not deleted it yet.
        await kube.delete(CONTROLLERREVISIONS, name, nodeset.namespace, uid=there["uid"])
        await kube.create(CONTROLLERREVISIONS, body)


async def renumber(kube: Kube, nodeset: NodeSet, action: RenumberRevision) -> None:
    """Make a recorded revision the newest; one deleted meanwhile is recorded again by the next pass."""
    revision = action.revision
    try:
        await kube.merge_patch(
            CONTROLLERREVISIONS, revision.name, {"revision": action.number}, nodeset.namespace, uid=revision.uid
        )
    except kube_errors.NotFound:
        return


async def drop(kube: Kube, nodeset: NodeSet, action: DropRevisions) -> None:
    """Delete records that no pod needs; those that are gone already are no error."""
    for revision in action.revisions:
        try:
            await kube.delete(CONTROLLERREVISIONS, revision.name, nodeset.namespace, uid=revision.uid)
        except (kube_errors.NotFound, kube_errors.Conflict):
            # Gone, or another one with its name: neither is the record to be deleted.
            continue


async def ensure_claims(kube: Kube, nodeset: NodeSet, pod: str, known: Iterable[VolumeClaim]) -> str | None:
    """Create the missing claims of a pod; returns why the pod must wait, or None if all exist.

    Raises
    ------
    KubeError
        The API server failed or refused.
    """
    there = {claim.name: claim for claim in known if not claim.deleting}
    for body in claims.build(nodeset, pod):
        name = body["metadata"]["name"]
        if name not in there:
            try:
                await kube.create(PERSISTENTVOLUMECLAIMS, body)
            except kube_errors.AlreadyExists:
                found = await kube.get(PERSISTENTVOLUMECLAIMS, name, nodeset.namespace)
            else:
                continue
        elif there[name].retention is not Retention.DELETE:
            continue
        else:
            # The cache may still show one whose deletion was requested. The pod has this name because of this claim:
            # without it, another claim may be the one that waits.
            try:
                found = await kube.get(PERSISTENTVOLUMECLAIMS, name, nodeset.namespace)
            except kube_errors.NotFound:
                return f"claim {name} has just gone"
        if not claims.is_ours(nodeset, found):
            return (
                f"there is a claim {name} that is not ours; to assign it to this NodeSet: "
                f"kubectl label pvc {name} {labels.LABEL_NODESET_NAME}={nodeset.name} {labels.LABEL_POD_NAME}={pod}"
            )
        if "deletionTimestamp" in found["metadata"]:
            return f"claim {name} of an earlier pod is still being deleted"
    return None


async def take_over_claims(kube: Kube, nodeset: NodeSet, pod: Object) -> None:
    """Label the claims of a pod that is taken over as the NodeSet's, so that its successor finds them."""
    for name, marks in takeover.claims_of(nodeset, pod):
        await kube.merge_patch(PERSISTENTVOLUMECLAIMS, name, {"metadata": {"labels": marks}}, nodeset.namespace)


async def mark_claims(context: PassContext, action: MarkClaims) -> None:
    """Annotate claims with their retention, concurrently; errors are recorded."""
    context.outcome.acted = True
    for result in await gather_limited(_mark_claim(context, claim, wanted) for claim, wanted in action.marks):
        if isinstance(result, kube_errors.NotFound | kube_errors.Conflict):
            continue  # gone, or another one with its name
        if isinstance(result, Exception):
            context.outcome.errors.append(result)
        elif isinstance(result, BaseException):
            raise result


async def _mark_claim(context: PassContext, claim: VolumeClaim, wanted: Retention | None) -> None:
    note = {labels.ANNOTATION_CLAIM_RETENTION: wanted.value if wanted is not None else None}
    patch: Object = {"metadata": {"annotations": note}}
    await context.kube.merge_patch(PERSISTENTVOLUMECLAIMS, claim.name, patch, context.nodeset.namespace, uid=claim.uid)


async def delete_claims(context: PassContext, action: DeleteClaims) -> None:
    """Delete claims of a scale-in that are still marked, and whose pods are gone according to the API server."""
    gone = [claim.name for claim in action.claims if await _delete_claim(context, claim)]
    if gone:
        context.say(EventReason.CLAIM_DELETED, f"deleted after their pods, as whenScaled: Delete says: {listed(gone)}")


async def _delete_claim(context: PassContext, claim: VolumeClaim) -> bool:
    namespace = context.nodeset.namespace
    try:
        await context.kube.get(PODS, claim.pod, namespace)
    except kube_errors.NotFound:
        pass  # The expected answer: no pod uses the claim.
    else:
        return False
    try:
        found = await context.kube.get(PERSISTENTVOLUMECLAIMS, claim.name, namespace)
    except kube_errors.NotFound:
        return False
    fresh = claims.read(found)
    if not claims.is_ours(context.nodeset, found) or (fresh.uid, fresh.pod) != (claim.uid, claim.pod) or fresh.deleting:
        return False
    if fresh.retention is not Retention.DELETE:
        context.outcome.kept.append(f"claim {claim.name} is no longer marked as one that goes")
        return False
    return await _delete_exactly(context, found)


async def release_claims(context: PassContext) -> bool:
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
    async for obj in context.kube.each(PERSISTENTVOLUMECLAIMS, nodeset.namespace, label_selector=selector):
        claim = claims.read(obj)
        if claim.deleting:
            continue
        if not claim_retention.goes_with_nodeset(nodeset, claim):
            if claim.retention is not Retention.RETAIN:
                try:
                    await _mark_claim(context, claim, Retention.RETAIN)
                except (kube_errors.NotFound, kube_errors.Conflict):
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
    except kube_errors.NotFound:
        return False
    except kube_errors.Conflict:
        context.outcome.kept.append(f"claim {name} has just changed and is checked again")
        return False
    return True
