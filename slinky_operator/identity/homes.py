"""The volume with home folders, in pods in which users work: those of NodeSets, and login pods. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster

VOLUME: Final = "identity-homes"


def attached(spec: Mapping[str, Any], cluster: Cluster, containers: Collection[str]) -> dict[str, Any]:
    """Mount the home folders in some containers of a generated pod's spec; the same spec if there are none."""
    identity = cluster.spec.identity
    homes = None if identity is None else identity.homes
    if homes is None:
        return dict(spec)
    source = (
        {"persistentVolumeClaim": {"claimName": homes.claim_name}} if homes.claim_name else dict(homes.volume or {})
    )
    mount = {"name": VOLUME, "mountPath": homes.mount_path}
    return {
        **spec,
        "containers": [
            {
                **one,
                # The image's working directory may be in a folder that the volume hides, and would be created there.
                "workingDir": "/",
                "volumeMounts": [*(one.get("volumeMounts") or ()), mount],
            }
            if one["name"] in containers
            else one
            for one in spec["containers"]
        ],
        "volumes": [*(spec.get("volumes") or ()), {**source, "name": VOLUME}],
    }
