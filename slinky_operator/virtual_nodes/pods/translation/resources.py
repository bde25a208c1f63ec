"""CPUs, memory and devices of a container as those of its job. Pure.

Requests count and, for what has none, limits; the API server does the same for the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slinky_operator.jobs.quantities import MIB, number_of, whole
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import named
from slinky_operator.virtual_nodes.node_names import GPU, GRES_PREFIX, gres_of
from slinky_operator.virtual_nodes.pods.translation.pod_fields import CONTAINER


def fields_of(container: Object) -> dict[str, Any]:
    """Return the fields of a SlurmJob that stand for the resources of a container.

    Raises
    ------
    InvalidJob
        For a resource that Slurm does not have.
    """
    resources = container.get("resources") or {}
    if resources.get("claims"):
        raise InvalidJob(f"{CONTAINER}.resources.claims", "Slurm allocates no devices of resource claims")
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    fields: dict[str, Any] = {}
    gres = []
    for name, text in asked.items():
        path = path_of(resources, name)
        number = number_of(text, path)
        if not number:
            continue
        if name == "cpu":
            fields["cpusPerTask"] = whole(number, path)
        elif name == "memory":
            fields["memory"] = f"{whole(number / MIB, path)}M"
        elif name == "ephemeral-storage":
            fields["parameters"] = {"temporary_disk_per_node": whole(number / MIB, path)}
        elif (device := gres_of(name)) is not None:
            gres.append(f"{device}:{whole(number, path)}")
        else:
            known = named(["cpu", "memory", "ephemeral-storage", GPU, f"{GRES_PREFIX}<name>"])
            raise InvalidJob(path, f"Slurm knows no such resource: request {known}")
    if gres:
        fields["gres"] = ",".join(sorted(gres))
    return fields


def path_of(resources: Mapping[str, Any], name: str) -> str:
    """Path of what a container says of a resource."""
    kind = "requests" if name in (resources.get("requests") or {}) else "limits"
    return f"{CONTAINER}.resources.{kind}[{name[:100]}]"
