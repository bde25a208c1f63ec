"""What has to be changed for a laptop in values of a public site: places, sizes, devices, images; nothing of Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ELSEWHERE: Final = frozenset(
    {"affinity", "nodeSelector", "tolerations", "storageClassName", "imagePullSecrets", "imagePullPolicy", "image"}
)
"""Fields that name machines, disks and registries of the site; without an image the operator's defaults are used."""

SMALL: Final = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
VOLUMES: Final = frozenset({"azureFile", "hostPath", "persistentVolumeClaim"})


def for_a_laptop(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the chart `slurm` as they can run without the site's machines.

    - no Node, StorageClass or registry of the site is named;
    - a NodeSet has one node with one CPU, without GPUs and network cards, and gres.conf, which names them, is gone;
    - volumes of the site are empty folders;
    - a database elsewhere becomes one that the operator runs.
    """
    found: dict[str, Any] = _without(values)
    cluster = found.setdefault("cluster", {})
    cluster.get("configFiles", {}).pop("gres.conf", None)
    cluster.get("accounting", {}).pop("database", None)
    for login in cluster.get("login") or ():
        login["resources"] = SMALL
    for nodeset in found["nodesets"].values():
        nodeset |= {"replicas": 1, "resources": SMALL}
        nodeset.pop("gres", None)
    return found


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not VOLUMES.isdisjoint(value):
            return {"name": value["name"], "emptyDir": {}}
        return {key: _without(one) for key, one in value.items() if key not in ELSEWHERE}
    return [_without(one) for one in value] if isinstance(value, list) else value
