"""No field of `spec.jobs.virtualNodes` is accepted and then has no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.jobs import VirtualNodes
from slinky_operator.kube.objects import Object
from tests.unit.virtual_nodes.nodes.worlds import World, cluster

FIELDS: Mapping[str, Any] = {
    "host": "other",
    "partitions": ["debug"],
    "allocatable": "Partition",
    "labels": {"site/rack": "r1"},
    "zone": "z1",
    "partitionConfig": "debug: {nodes: 7}",
}


OF_PODS = {"runtime", "folder", "sharedFolder", "sharedVolume"}
"""How images of pods run; Nodes are the same with each of them."""

OF_SYLABS = {"sylabsPods"}
"""Which pods objects of sylabs' kinds have: `tests/unit/virtual_nodes/sylabs_pods`."""


async def made(**spec: Any) -> dict[str, Object]:
    world = World(cluster(**spec))
    _ = await world.step()
    return {
        name: {**obj, "metadata": {**obj["metadata"], "uid": "", "resourceVersion": ""}}
        for name, obj in world.nodes.items()
    }


@pytest.mark.parametrize("field", FIELDS)
async def test_a_field_acts(field: str) -> None:
    assert await made(**{field: FIELDS[field]}) != await made()


def test_every_field_is_tried() -> None:
    assert {one.alias or name for name, one in VirtualNodes.model_fields.items()} == FIELDS.keys() | OF_PODS | OF_SYLABS
