"""Writes to a NodeSet: replicas together with the note that autoscaling has set them; and who has set them last.

Both are in one patch that holds for one version of the object. So a number that somebody sets at the same moment is
never overwritten unseen, and a process that ends after the patch leaves nothing half done.
"""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Patcher
from slinky_operator.kube.resources import NODESETS

HPA_MANAGERS: Final = frozenset({"kube-controller-manager", "horizontal-pod-autoscaler"})
"""Field managers under which a HorizontalPodAutoscaler writes to the scale subresource."""


async def set_replicas(kube: Patcher, obj: Object, replicas: int) -> None:
    """Set the replicas of a NodeSet.

    Raises
    ------
    Conflict
        The NodeSet has changed since `obj`.
    KubeError
        The API server failed or refused.
    """
    metadata = obj["metadata"]
    await kube.merge_patch(
        NODESETS,
        metadata["name"],
        {
            "metadata": {"annotations": {labels.ANNOTATION_AUTOSCALED: str(replicas)}},
            "spec": {"replicas": replicas},
        },
        metadata.get("namespace"),
        resource_version=metadata["resourceVersion"],
        uid=metadata["uid"],
    )


def is_set_by_hpa(obj: Object) -> bool:
    """Whether a HorizontalPodAutoscaler was the last to change replicas, as the API server has recorded it."""
    for entry in obj["metadata"].get("managedFields") or ():
        fields = entry.get("fieldsV1")
        spec = fields.get("f:spec") if isinstance(fields, dict) else None
        if (
            entry.get("subresource") == "scale"
            and entry.get("manager") in HPA_MANAGERS
            and isinstance(spec, dict)
            and "f:replicas" in spec
        ):
            return True
    return False
