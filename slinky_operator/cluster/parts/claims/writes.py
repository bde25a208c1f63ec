"""Claims of daemons: made larger, and deleted with their Cluster. Each is looked at past the caches first."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_operator.cluster.actions import GrowClaim
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.memory.writes import ClaimSize
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS
from slinky_operator.reconcile.writes.children import quantity

logger = logging.getLogger(__name__)

LONGEST_WHY: Final = 500
"""Maximum characters that are kept of what the API server or a volume plugin says."""

_FAILED: Final = ("ControllerResizeError", "NodeResizeError")
"""Conditions of a claim whose volume could not grow."""

_UNDER_WAY: Final = ("Resizing", "FileSystemResizePending")


async def grow(action: GrowClaim, namespace: str, context: PassContext) -> ClaimSize:
    """Raise what a claim requests; one that is larger already, or that is somebody else's, stays as it is."""
    found = await context.live(PERSISTENTVOLUMECLAIMS, action.name, namespace)
    if found is None:
        return ClaimSize(action.size, "", context.clock())
    seen = _seen(action, found, context.clock())
    wanted, has = quantity(action.size), quantity(seen.size)
    if wanted is None or has is None or wanted <= has:
        return seen
    hindrance = _hindrance(found, action.labels)
    if hindrance:
        return _refused(seen, hindrance)
    patch = {
        "metadata": {"annotations": {labels.ANNOTATION_CLAIM_SIZE: action.size}},
        "spec": {"resources": {"requests": {"storage": action.size}}},
    }
    uid = found["metadata"]["uid"]
    try:
        answer = await context.kube.merge_patch(PERSISTENTVOLUMECLAIMS, action.name, patch, namespace, uid=uid)
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        return _refused(seen, error.message)
    except (errors.NotFound, errors.Conflict):
        return _refused(seen, "it has been replaced meanwhile")
    return _seen(action, answer, context.clock())


async def delete(name: str, wanted: Mapping[str, str], namespace: str, context: PassContext) -> None:
    """Delete a claim if it is the daemon's; Kubernetes waits until no pod uses it."""
    found = await context.live(PERSISTENTVOLUMECLAIMS, name, namespace)
    if found is None or not _is_theirs(found, wanted):
        return
    try:
        await context.kube.delete(PERSISTENTVOLUMECLAIMS, name, namespace, uid=found["metadata"]["uid"])
    except (errors.NotFound, errors.Conflict):
        logger.info("claim %s/%s has gone, or has been replaced, already", namespace, name)


def _hindrance(found: Object, wanted: Mapping[str, str]) -> str:
    """Why a claim is not changed; empty if it may be."""
    if not _is_theirs(found, wanted):
        return "it does not have the labels of this daemon, and may belong to someone else"
    return "it is being deleted" if found["metadata"].get("deletionTimestamp") else ""


def _seen(action: GrowClaim, found: Object, now: float) -> ClaimSize:
    """What a claim shows."""
    status: Mapping[str, Any] = found.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one.get("status") == "True"]
    by_type = {str(one.get("type")): str(one.get("message") or "") for one in conditions}
    failed = next((by_type[kind] or kind for kind in _FAILED if kind in by_type), "")
    said = next((by_type[kind] for kind in _UNDER_WAY if by_type.get(kind)), "")
    return ClaimSize(
        wanted=action.size,
        size=_storage((found["spec"].get("resources") or {}).get("requests")),
        at=now,
        # A claim that waits for its first pod has no volume yet.
        capacity=_storage(status.get("capacity")) if status.get("phase") == "Bound" else "",
        grown=str((found["metadata"].get("annotations") or {}).get(labels.ANNOTATION_CLAIM_SIZE) or ""),
        said=said[:LONGEST_WHY],
        why=failed[:LONGEST_WHY],
    )


def _refused(seen: ClaimSize, why: str) -> ClaimSize:
    return ClaimSize(seen.wanted, seen.size, seen.at, seen.capacity, seen.grown, seen.said, why[:LONGEST_WHY])


def _storage(amounts: Any) -> str:
    return str((amounts or {}).get("storage") or "")


def _is_theirs(found: Object, wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= (found["metadata"].get("labels") or {}).items()
