"""Records revisions, and creates claims before their pods: the part of `executor` for what outlives a pod.

Each write may be repeated, and may meet the result of an earlier pass that the cache does not show: names follow from
content, and what is deleted or changed is named by uid.
"""

from __future__ import annotations

from collections.abc import Iterable

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS
from slinky_operator.nodeset.execute import takeover
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.actions import DropRevisions, RecordRevision, RenumberRevision
from slinky_operator.nodeset.model.claims import Claim, Retention
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.reconcile.writes.create_or_adopt import NameTaken


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
    except errors.AlreadyExists:
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
    except errors.NotFound:
        return


async def drop(kube: Kube, nodeset: NodeSet, action: DropRevisions) -> None:
    """Delete records that no pod needs; those that are gone already are no error."""
    for revision in action.revisions:
        try:
            await kube.delete(CONTROLLERREVISIONS, revision.name, nodeset.namespace, uid=revision.uid)
        except (errors.NotFound, errors.Conflict):
            # Gone, or another one with its name: neither is the record to be deleted.
            continue


async def ensure_claims(kube: Kube, nodeset: NodeSet, pod: str, known: Iterable[Claim]) -> str | None:
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
            except errors.AlreadyExists:
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
            except errors.NotFound:
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
