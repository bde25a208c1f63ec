"""Carries out what was planned: one call after the other, each with what the plan has read as its condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from slinky_operator.kube import errors, ports
from slinky_operator.kube.objects import Page
from slinky_operator.kube.resources import PODS, VIRTUAL_NODES, Resource
from slinky_operator.virtual_nodes.nodes.model.plan import Create, Patch, Remove
from slinky_operator.virtual_nodes.nodes.model.snapshot import owner_of

COUNTED: Final = 10
"""Pods that are counted of a Node that is to go; more are some."""


class Kube(ports.Kube, Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def some(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str | None = None, most: int
    ) -> Page:
        """Read the first objects of a collection."""
        ...


@dataclass(frozen=True, slots=True)
class Foreign:
    """A Node of the wanted name is there, and somebody else's."""

    name: str
    whose: str


async def create(kube: Kube, action: Create) -> Foreign | bool:
    """Make a Node; whether it was made, or whose is there. One that an earlier pass has made is as good as new."""
    name = str(action.body["metadata"]["name"])
    try:
        _ = await kube.create(VIRTUAL_NODES, action.body)
    except errors.AlreadyExists:
        try:
            live = await kube.get(VIRTUAL_NODES, name)
        except errors.NotFound:
            return False
        whose = owner_of(live)
        return False if whose == owner_of(action.body) else Foreign(name, whose)
    return True


async def patch(kube: Kube, action: Patch) -> None:
    """Change a Node; raises `Conflict` if it has changed meanwhile."""
    metadata = action.obj["metadata"]
    name, uid, version = str(metadata["name"]), str(metadata["uid"]), str(metadata["resourceVersion"])
    if action.main:
        live = await kube.merge_patch(VIRTUAL_NODES, name, action.main, resource_version=version, uid=uid)
        version = str(live["metadata"]["resourceVersion"])
    if action.status:
        _ = await kube.patch_status(VIRTUAL_NODES, name, action.status, resource_version=version, uid=uid)


async def remove(kube: Kube, action: Remove) -> str:
    """Remove a Node if no pod is bound to it, by the API server's own word; empty, or what it waits for."""
    metadata = action.obj["metadata"]
    name = str(metadata["name"])
    pods = await kube.some(PODS, field_selector=f"spec.nodeName={name}", most=COUNTED)
    if pods.items:
        count = f"{'more than ' if pods.next_page else ''}{len(pods.items)}"
        shown = f"kubectl get pods -A --field-selector spec.nodeName={name}"
        bound = f"its pods ({count}) have gone, ended ones too: {shown} shows them"
        return f"Node {name} takes no new pods ({action.why}); it is removed when {bound}"
    version = str(metadata["resourceVersion"])
    _ = await kube.delete(VIRTUAL_NODES, name, uid=str(metadata["uid"]), resource_version=version)
    return ""
