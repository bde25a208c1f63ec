"""Manifests of the old job kinds in the forms in which people wrote them, and where they are read."""

from __future__ import annotations

from typing import Any, Final

from slinky_api.resource import Resource
from slinky_api.sylabs import slurm, wlm
from slinky_api.sylabs.common import OldJob

KINDS: Final[tuple[tuple[Resource, type[OldJob]], ...]] = (
    (wlm.SLURMJOB, wlm.SlurmJob),
    (wlm.WLMJOB, wlm.WlmJob),
    (slurm.SLURMJOB, slurm.SlurmJob),
)

_HOST_PATH: Final = {"name": "data", "hostPath": {"path": "/home/me/results", "type": "DirectoryOrCreate"}}
_NFS: Final = {"name": "data", "nfs": {"server": "192.0.2.1", "path": "/results"}}
_CLAIM: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "results"}}
_SCRIPT: Final = "#!/bin/sh\n#SBATCH --nodes=1 --output cow.out\nsrun hostname\n"


def manifest(resource: Resource, **spec: Any) -> dict[str, Any]:
    """An object of a kind."""
    metadata = {"name": "sample", "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


MANIFESTS: Final[dict[str, dict[str, Any]]] = {
    "wlm, a number as a label": manifest(
        wlm.SLURMJOB, batch=_SCRIPT, nodeSelector={"wlm.sylabs.io/cuda": 10, "kubernetes.io/hostname": "slurm-a-cpu"}
    ),
    "wlm, results on a Node": manifest(wlm.SLURMJOB, batch=_SCRIPT, results={"from": "cow.out", "mount": _HOST_PATH}),
    "wlm, results on NFS": manifest(wlm.SLURMJOB, batch=_SCRIPT, results={"from": "a.tar.gz", "mount": _NFS}),
    "wlm, both ways": manifest(
        wlm.SLURMJOB,
        batch=_SCRIPT,
        prepare={"to": ".", "mount": _CLAIM},
        results={"from": "/scratch/bar", "mount": _CLAIM},
    ),
    "an image alone": manifest(wlm.WLMJOB, image="docker://alpine:3"),
    "an image with everything": manifest(
        wlm.WLMJOB,
        image="library://examples/lolcow",
        nodeSelector={"wlm.sylabs.io/containers": "singularity"},
        resources={"nodes": 2, "cpuPerNode": 4, "memPerNode": 512, "wallTime": 90},
        options={
            "allowUnsigned": True,
            "cleanEnv": True,
            "fakeRoot": True,
            "ipc": True,
            "pid": True,
            "noPrivs": True,
            "writable": True,
            "app": "main",
            "hostName": "box",
            "binds": ["/data:/mnt:ro", "/scratch"],
        },
        results={"from": "cow.out", "mount": _HOST_PATH},
    ),
    "slurm, by ssh": manifest(
        slurm.SLURMJOB,
        batch=_SCRIPT,
        nodeSelector={"slurm.sylabs.io/containers": "singularity"},
        results={"mount": _HOST_PATH},
        ssh={"user": "me", "key": {"secretKeyRef": {"name": "slurm", "key": "key"}}},
    ),
    "slurm, with resources": manifest(
        slurm.SLURMJOB,
        batch=_SCRIPT,
        resources={"slurm.sylabs.io/cpu": 2},
        podSecurityContext={"runAsUser": 1000},
        ssh={"user": "me", "password": {"secretKeyRef": {"name": "slurm", "key": "password"}}},
    ),
}


def parsed(obj: dict[str, Any]) -> Any:
    """Read a manifest with the model of its kind."""
    models = {(resource.api_version, resource.kind): model for resource, model in KINDS}
    return models[obj["apiVersion"], obj["kind"]].parse(obj)
