"""One finalizer of an object, set or removed; those of others are never lost."""

from __future__ import annotations

from typing import Any

from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Patcher
from slinky_operator.kube.resources import Resource


async def set_finalizer(kube: Patcher, resource: Resource, obj: Object, finalizer: str, *, present: bool) -> Object:
    """Set or remove a finalizer of an object.

    The list of finalizers is replaced as a whole, so the patch holds for the version of `obj` only: a finalizer that
    has been added since is not lost, and the pass is repeated.

    Returns
    -------
    Object
        The object as it is now.

    Raises
    ------
    Conflict
        The object has changed since.
    NotFound
        The object is gone.
    """
    metadata = obj["metadata"]
    others = [one for one in metadata.get("finalizers") or () if one != finalizer]
    wanted: dict[str, Any] = {"metadata": {"finalizers": [*others, finalizer] if present else others}}
    return await kube.merge_patch(
        resource,
        metadata["name"],
        wanted,
        metadata.get("namespace"),
        resource_version=metadata["resourceVersion"],
        uid=metadata["uid"],
    )
