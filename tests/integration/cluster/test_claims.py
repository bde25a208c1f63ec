"""What a real API server lets the operator do to a claim, and what it says against the rest."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.cluster.actions import GrowClaim
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.parts.claims import writes as claim_writes
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PERSISTENTVOLUMECLAIMS, Resource

STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CLAIM = "state-slurm-controller-0"
OURS = {"app.kubernetes.io/component": "controller"}
LARGER = GrowClaim(CLAIM, "2Gi", OURS)


def tools(kube: KubeClient) -> PassContext:
    async def live(resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            return await kube.get(resource, name, namespace)
        except errors.NotFound:
            return None

    return cast("PassContext", SimpleNamespace(kube=kube, live=live, clock=lambda: 0.0))


async def claim(kube: KubeClient, namespace: str, *, grows: bool, bound: bool = True) -> None:
    """Create a claim of 1Gi as Kubernetes makes it for slurmctld, bound to a volume that nobody provides."""
    name = f"class-{uuid.uuid4().hex[:8]}"
    of_class: Any = {"metadata": {"name": name}, "provisioner": "example.com/none", "allowVolumeExpansion": grows}
    await kube.create(STORAGE_CLASSES, of_class)
    spec = {
        "storageClassName": name,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "somewhere",
    }
    await kube.create(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": CLAIM, "labels": OURS}, "spec": spec}, namespace)
    if bound:
        status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}
        await kube.merge_patch(PERSISTENTVOLUMECLAIMS, CLAIM, status, namespace, subresource="status")


async def requested(kube: KubeClient, namespace: str) -> str:
    found = await kube.get(PERSISTENTVOLUMECLAIMS, CLAIM, namespace)
    return str(found["spec"]["resources"]["requests"]["storage"])


async def test_a_claim_whose_class_allows_it_requests_more_and_waits_for_its_volume(
    kube: KubeClient, namespace: str
) -> None:
    await claim(kube, namespace, grows=True)
    for _ in range(2):
        done = await claim_writes.grow(LARGER, namespace, tools(kube))
        assert (done.size, done.capacity, done.grown, done.why) == ("2Gi", "1Gi", "2Gi", "")
        assert done.is_growing
    assert await requested(kube, namespace) == "2Gi"
    found = await kube.get(PERSISTENTVOLUMECLAIMS, CLAIM, namespace)
    assert found["metadata"]["annotations"][labels.ANNOTATION_CLAIM_SIZE] == "2Gi"


@pytest.mark.parametrize(
    ("grows", "bound", "words"),
    [
        (False, True, "the storageclass that provisions the pvc must support resize"),
        (True, False, "bound claims"),
    ],
)
async def test_what_the_api_server_has_against_it_is_told_and_nothing_changes(
    kube: KubeClient, namespace: str, grows: bool, bound: bool, words: str
) -> None:
    await claim(kube, namespace, grows=grows, bound=bound)
    done = await claim_writes.grow(LARGER, namespace, tools(kube))
    assert words in done.why
    assert (done.size, await requested(kube, namespace)) == ("1Gi", "1Gi")


async def test_a_claim_is_deleted_if_it_is_the_daemons(kube: KubeClient, namespace: str) -> None:
    await claim(kube, namespace, grows=True)
    await claim_writes.delete(CLAIM, {"app.kubernetes.io/component": "database"}, namespace, tools(kube))
    assert await requested(kube, namespace) == "1Gi"
    await claim_writes.delete(CLAIM, OURS, namespace, tools(kube))
    found = await tools(kube).live(PERSISTENTVOLUMECLAIMS, CLAIM, namespace)
    # Nothing here takes away the finalizer that protects claims in use.
    assert found is None or found["metadata"]["deletionTimestamp"]
