"""What changes about pods when one is replaced, or a program in it is restarted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.slurm_in_kubernetes import SlurmInKubernetes


def restarts(pod: Mapping[str, Any]) -> int:
    """How often a pod's containers were restarted; none before its kubelet has said anything."""
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses") or ())


def identities(slurm: SlurmInKubernetes) -> dict[str, tuple[str, int]]:
    """Uids and restarts of all pods in the namespace but those of preflights, which come and go."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], restarts(pod))
        for pod in slurm.get("pods")["items"]
        if pod["metadata"]["labels"].get("app.kubernetes.io/component") != "preflight"
    }
