"""Pods in the stream of jobs, as data: one kind is placed by Slurm on a Node, the other is a job on a virtual Node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from slinky_api import labels
from tests.campaign.lanes.jobs import TEAM, WITNESS

PARTITION: Final = "pods"
"""Of the Nodes on which Slurm places pods."""

CHOSEN: Final = {"example.com/slurm": "pods"}
"""Label of those Nodes."""

BRIDGED_NODE: Final = "node-2"
"""The machine of the only one of them."""

HOST: Final = "campaign"
VIRTUAL_NODE: Final = f"slurm-{HOST}-both"
TOLERATION: Final = {"key": "virtual-kubelet.io/provider", "operator": "Equal", "value": "wlm", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class PodKind:
    """One kind of pod.

    Attributes
    ----------
    is_bridged
        Whether Slurm places it; else its job runs on nodes of slurmd.
    seconds
        How long its program runs, least and most.
    weight
        How often, compared with others.
    """

    is_bridged: bool
    seconds: tuple[int, int] = (2, 25)
    weight: int = 2
    tasks: int = 1
    cancelled: bool = False
    as_object: bool = False

    def draw(self, random: Random) -> dict[str, Any]:
        return {"seconds": random.randint(*self.seconds)}


POD_KINDS: Final[Mapping[str, PodKind]] = {
    "pod that Slurm places": PodKind(is_bridged=True, weight=3),
    "pod on a virtual Node": PodKind(is_bridged=False, weight=3),
}


def pod(name: str, values: Mapping[str, Any], mark: str, image: str, folder: str) -> dict[str, Any]:
    """The pod of a step.

    Parameters
    ----------
    image
        One with a shell, for a pod on a Node.
    folder
        Of the witness, on Nodes.
    """
    if POD_KINDS[name].is_bridged:
        return _placed(mark, witness_of_pod(values["seconds"], mark, "$NODE"), image, folder)
    return _virtual(mark, witness_of_pod(values["seconds"], mark, "$SLURMD_NODENAME"))


def witness_of_pod(seconds: int, mark: str, node: str) -> str:
    """The program of a pod, which writes what jobs write; `node` is what a shell calls its node."""
    return f"""\
say() {{ printf '%s pod - 0 %s %s\\n' "$1" "{node}" "$(date +%s.%N)" >> {WITNESS}/{mark}; }}
say start
sleep {seconds}
say end
"""


def job_name(name: str, uid: str) -> str:
    """Name of the job of a pod in Slurm."""
    return f"{'bridge' if POD_KINDS[name].is_bridged else 'pod'}-{uid}"


def _placed(mark: str, program: str, image: str, folder: str) -> dict[str, Any]:
    about = {f"{labels.BRIDGE_PREFIX}partition": PARTITION, f"{labels.BRIDGE_PREFIX}time": "10"}
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", program],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "volumeMounts": [{"name": "witness", "mountPath": WITNESS}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": mark, "namespace": TEAM, "labels": {labels.LABEL_BRIDGE_POD: "true"}, "annotations": about,
        },
        "spec": {
            "schedulingGates": [{"name": labels.GATE_BRIDGE}],
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "witness", "hostPath": {"path": folder, "type": "Directory"}}],
        },
    }  # fmt: skip


def _virtual(mark: str, program: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "no-image",
        "command": ["sh", "-c", program],
        "resources": {"requests": {"cpu": "1", "memory": "20Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": mark, "namespace": TEAM},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": VIRTUAL_NODE},
            "tolerations": [TOLERATION],
            "containers": [container],
        },
    }
