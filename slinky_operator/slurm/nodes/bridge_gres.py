"""Which extended resources and classes of devices of Kubernetes are which generic resources of Slurm. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api.v1alpha1.cluster.jobs import Bridge

GPUS: Final[Mapping[str, str]] = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}
"""Resources that Slurm counts where the administrator names none."""


def gres_by_resource(bridge: Bridge) -> Mapping[str, str]:
    """The generic resource of Slurm, with its type if it has one, by the name of the extended resource."""
    if not bridge.gres:
        return GPUS
    return {one.resource: one.gres for one in bridge.gres if one.resource is not None}


def gres_by_class(bridge: Bridge) -> Mapping[str, str]:
    """The generic resource of Slurm, with its type if it has one, by the name of the class of devices."""
    return {one.device_class: one.gres for one in bridge.gres if one.device_class is not None}
