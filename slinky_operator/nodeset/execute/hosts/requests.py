"""What has been asked for about a machine, and whether it may still happen.

When something is asked for is in `machines`; it is a RebootNode of NVSentinel's janitor, an annotation of the Node, the
deletion of a Machine of Cluster API, or that of the Node itself.
"""

from __future__ import annotations

import hashlib
from typing import Final

from slinky_api.v1alpha1.nodeset.health import ReplacePolicy
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import MACHINES, REBOOTNODES, Resource
from slinky_operator.nodeset.model.machines import BY_HAND, Mark

MACHINE: Final = "cluster.x-k8s.io/machine"
MACHINE_NAMESPACE: Final = "cluster.x-k8s.io/cluster-namespace"
"""Annotations of a Node by which Cluster API names its Machine."""


def reboot_name(mark: Mark, name: str) -> str:
    """Name of a RebootNode: another one for each try."""
    digest = hashlib.sha256(f"{name}\n{mark.owner}\n{mark.boot_id}\n{mark.began}".encode()).hexdigest()
    return f"slurm-operator-{digest[:16]}"


def machine_of(node: Object) -> tuple[str | None, str | None]:
    """Name and namespace of the Machine of Cluster API that a Node names."""
    annotations = node["metadata"].get("annotations") or {}
    return annotations.get(MACHINE), annotations.get(MACHINE_NAMESPACE)


async def machine(kube: Getter, name: str, namespace: str) -> tuple[Resource, Object] | None:
    """A Machine, and the version in which it is served; None if there is none."""
    for resource in MACHINES:
        try:
            return resource, await kube.get(resource, name, namespace)
        except (kube_errors.NotFound, ValueError):
            # No such object, or no such version with this release of Cluster API: the next one is asked. What a kubelet
            # has written may be no name at all.
            continue
    return None


async def pending(kube: Getter, mark: Mark, node: Object, *, by_kind: bool) -> str:
    """What may still follow from a request that was sent; empty if nothing may.

    A machine that is being deleted may start again before it ends, which takes hours with some hooks.

    Parameters
    ----------
    by_kind
        Whether reboots are asked for by RebootNodes. An annotation is taken back, or overwritten.
    """
    if mark.policy != ReplacePolicy.REBOOT:
        return await _deletion(kube, node)
    if not by_kind:
        return ""
    name = reboot_name(mark, node["metadata"]["name"])
    try:
        found = await kube.get(REBOOTNODES, name)
    except kube_errors.NotFound:
        return ""
    return "" if (found.get("status") or {}).get("completionTime") else f"RebootNode {name} is not complete"


async def _deletion(kube: Getter, node: Object) -> str:
    if node["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    name, namespace = machine_of(node)
    if not name or not namespace:
        return ""
    found = await machine(kube, name, namespace)
    if found is None:
        return f"its Machine {namespace}/{name} is gone, and the Node is not. If it stays, {BY_HAND}"
    return f"its Machine {namespace}/{name} is being deleted" if "deletionTimestamp" in found[1]["metadata"] else ""
