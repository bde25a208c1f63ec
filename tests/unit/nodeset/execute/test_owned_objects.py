"""Claims that exist for a pod, or are created for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.ports import Kube
from slinky_operator.nodeset.execute import owned_objects
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.claims import Retention


class Claims:
    """An API server that has no claim but those given."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self.there = {one["metadata"]["name"]: one for one in there}
        self.made: list[str] = []

    async def get(self, resource: object, name: str, namespace: str | None = None) -> dict[str, Any]:
        if name not in self.there:
            raise errors.NotFound(Target("get", str(resource), namespace, name), "not found")
        return self.there[name]

    async def create(self, resource: object, body: dict[str, Any]) -> dict[str, Any]:
        self.made.append(body["metadata"]["name"])
        return body


def nodeset(policy: str) -> NodeSet:
    spec = {
        "clusterName": "c",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": policy},
    }
    return NodeSet.parse({"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": spec})


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_pod_that_comes_back_to_its_claim_does_so_only_if_the_claim_is_still_there(is_there: bool) -> None:
    owner = nodeset("Delete")
    (body,) = claims.build(owner, "a-0")
    kube = Claims(*([body] if is_there else []))
    known = claims.VolumeClaim("data-a-0", "u", "a-0", retention=Retention.DELETE)

    why = await owned_objects.ensure_claims(cast("Kube", kube), owner, "a-0", [known])

    assert why == (None if is_there else "claim data-a-0 has just gone")
    assert kube.made == []


async def test_a_claim_that_nobody_has_seen_is_made() -> None:
    kube = Claims()

    assert await owned_objects.ensure_claims(cast("Kube", kube), nodeset("Delete"), "a-0", []) is None
    assert kube.made == ["data-a-0"]
