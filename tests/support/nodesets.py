"""What Kubernetes and Slurm show of a NodeSet: its pods, its nodes, and whether it matches its spec."""

from __future__ import annotations

from tests.support.slurm_in_kubernetes import SlurmInKubernetes


def uids(slurm: SlurmInKubernetes, nodeset: str = "") -> dict[str, str]:
    """Uids of a NodeSet's pods by name; of all NodeSets' pods where none is named."""
    return {
        name: pod["metadata"]["uid"]
        for name, pod in slurm.slurmd_pods().items()
        if nodeset in {"", pod["metadata"]["labels"]["nodeset.slinky.slurm.net/name"]}
    }


def host_of(slurm: SlurmInKubernetes, pod: str) -> str:
    """The Node of a slurmd pod; empty if it has none yet, or there is no such pod."""
    return str(slurm.slurmd_pods().get(pod, {"spec": {}})["spec"].get("nodeName", ""))


def features(slurm: SlurmInKubernetes, node: str) -> str:
    """The features of a Slurm node; empty if there is no such node."""
    lines = slurm.control("sinfo", "--noheader", f"--nodes={node}", "--format=%f").split()
    return lines[0] if lines else ""


def whole(slurm: SlurmInKubernetes, nodeset: str, count: int) -> bool:
    """Whether a NodeSet has that many nodes, all ready and made from the spec as it is now."""
    obj = slurm.get("nodeset", nodeset)
    status = obj.get("status", {})
    return bool(
        status.get("observedGeneration") == obj["metadata"]["generation"]
        and status.get("currentRevision") == status.get("updateRevision")
        and status.get("updatedReplicas") == status.get("readyReplicas") == status.get("replicas") == count
    )
