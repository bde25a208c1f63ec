"""The kinds that a real API server lists, before and after it does."""

from __future__ import annotations

import asyncio
import uuid

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.calls.discovery import until_shown
from slinky_operator.kube.resources import CLUSTERS, NODESETS, Resource
from tests.support.control_plane import ControlPlane


async def test_kinds_are_waited_for_until_they_are_told_of(control_plane: ControlPlane) -> None:
    later = Resource(f"{uuid.uuid4().hex[:8]}.example.com", "v1", "things", "Thing")
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        await until_shown(connection, [CLUSTERS, NODESETS])
        waiting = asyncio.create_task(until_shown(connection, [CLUSTERS, later]))
        await asyncio.to_thread(control_plane.kubectl.apply, [crd(later)])
        async with asyncio.timeout(100):
            await waiting


def crd(resource: Resource) -> dict[str, object]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "singular": "thing", "kind": resource.kind},
            "versions": [{"name": resource.version, "served": True, "storage": True, "schema": schema}],
        },
    }
