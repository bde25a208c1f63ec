"""Writes devices into ResourceClaims, and takes them back: each claim is read before, since the cache may be behind.

As the scheduler of Kubernetes does: first the finalizer, by which nobody deletes a claim while a pod has its devices,
and which lets Kubernetes free them when the pod has ended; then the devices, with the version that was read.
"""

from __future__ import annotations

from typing import Final

from slinky_operator.bridge.device_claims import is_allocated
from slinky_operator.bridge.pods.model.devices import Allocate, results, with_parameters
from slinky_operator.kube.errors import Conflict, Target
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import BRIDGE_PODS, RESOURCECLAIMS

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""That of Kubernetes for claims that have devices."""


async def write(kube: Kube, step: Allocate) -> None:
    """Give a claim its devices, or take them back.

    Raises
    ------
    Conflict
        The claim is not as the cache has shown it.
    KubeError
        The API server failed, or refused.
    """
    about = step.claim["metadata"]
    name, namespace = str(about["name"]), str(about["namespace"])
    claim = await kube.get(RESOURCECLAIMS, name, namespace)
    status = claim.get("status") or {}
    is_same = claim["metadata"].get("uid") == about.get("uid") and not claim["metadata"].get("deletionTimestamp")
    if not is_same or status.get("reservedFor") or results(claim) != results(step.claim):
        target = Target("patch", str(RESOURCECLAIMS), namespace, name)
        raise Conflict(target, "the claim has changed", status=409)
    if step.allocation is None:
        if is_allocated(claim) and await _waits(kube, step):
            version = claim["metadata"]["resourceVersion"]
            status = {"allocation": None}
            _ = await kube.patch_status(RESOURCECLAIMS, name, status, namespace, resource_version=version)
        return
    finalizers = claim["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        claim = await kube.merge_patch(
            RESOURCECLAIMS,
            name,
            {"metadata": {"finalizers": [*finalizers, FINALIZER]}},
            namespace,
            uid=about.get("uid"),
            resource_version=claim["metadata"]["resourceVersion"],
        )
    allocation = with_parameters(step.allocation, claim, step.classes)
    version = claim["metadata"]["resourceVersion"]
    _ = await kube.patch_status(
        RESOURCECLAIMS, name, {"allocation": allocation}, namespace, resource_version=version, uid=about.get("uid")
    )


async def _waits(kube: Kube, step: Allocate) -> bool:
    """Whether the pod of a claim still has its gate: without it the scheduler may be about to bind it."""
    metadata = step.member.obj["metadata"]
    pod = await kube.get(BRIDGE_PODS, step.member.name, metadata["namespace"])
    is_same = pod["metadata"].get("uid") == metadata["uid"]
    return is_same and type(step.member)(pod, None).waits
