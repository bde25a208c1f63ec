"""Carries out what a plan asks for about recorded revisions: the part of `act` that touches ControllerRevisions.

Each write may be repeated, and may meet one that an earlier pass made and the cache does not show: names follow from
content, and what is deleted or changed is named by uid.
"""

from __future__ import annotations

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.resources import CONTROLLERREVISIONS
from slinky_operator.nodeset import history
from slinky_operator.nodeset.actions import DropRevisions, RecordRevision, RenumberRevision
from slinky_operator.nodeset.ports import Kube
from slinky_operator.nodeset.snapshot import Revision


class NameTaken(Exception):
    """An object of the name we need is somebody else's; the text names it."""


async def record(kube: Kube, nodeset: NodeSet, revision: Revision, action: RecordRevision) -> None:
    """Record the revision of the spec; one that is there already and ours will do.

    Raises
    ------
    NameTaken
        If a ControllerRevision of that name is somebody else's.
    KubeError
        What the API server could not do.
    """
    body = history.build(nodeset, revision.hash, revision.content, action.number)
    try:
        await kube.create(CONTROLLERREVISIONS, body)
    except errors.AlreadyExists:
        name = body["metadata"]["name"]
        there = await kube.get(CONTROLLERREVISIONS, name, nodeset.namespace)
        if (there["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID) != nodeset.uid:
            raise NameTaken(f"there is a ControllerRevision {name} that is not ours") from None


async def renumber(kube: Kube, nodeset: NodeSet, action: RenumberRevision) -> None:
    """Make a recorded revision the newest; one that has gone meanwhile is recorded anew by the next pass."""
    revision = action.revision
    try:
        await kube.merge_patch(
            CONTROLLERREVISIONS, revision.name, {"revision": action.number}, nodeset.namespace, uid=revision.uid
        )
    except errors.NotFound:
        return


async def drop(kube: Kube, nodeset: NodeSet, action: DropRevisions) -> None:
    """Delete records that no pod needs; those that have gone already are no error."""
    for revision in action.revisions:
        try:
            await kube.delete(CONTROLLERREVISIONS, revision.name, nodeset.namespace, uid=revision.uid)
        except (errors.NotFound, errors.Conflict):
            continue
