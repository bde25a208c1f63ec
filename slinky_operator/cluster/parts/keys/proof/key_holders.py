"""Which daemons must have a key set of auth/slurm, and how each is asked for it. Pure.

==========================  ===========================================================================================
daemon                      rule
==========================  ===========================================================================================
slurmctld                   asked; without a pod that has an address, nothing is proven
slurmd in a pod             asked, from the moment in which its pod is on a Node until the pod has ended. One with jobs
                            whose pod is not seen, since that has lost its labels, proves nothing
slurmd on a machine         asked at the address that slurmctld shows, except while its node is DOWN, FUTURE or powered
                            down: then no job of it can be lost
slurmdbd                    asked, wherever it runs
sackd of a login pod        asked, by the program beside it, until the pod has ended; it starts again by itself when its
                            kubelet has mounted another set. Pods of an earlier operator have no such program: they
                            must be Ready, and the time that kubelets need has passed before the reconfigure counts
==========================  ===========================================================================================

An administrator may vouch for what the operator cannot reach, on machines and in a slurmdbd elsewhere: the annotation
`ANNOTATION_CONFIRMED` on the Cluster has the ids of the keys of the set that they have, the default first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_api import labels
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import variants
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.key_proof import Daemon, Holder
from slinky_operator.slurm.pods import pod_ownership
from slurm_client.models import Node

ANNOTATION_CONFIRMED: Final = labels.CLUSTER_PREFIX + "has-slurm-keys"
"""On a Cluster: ids of keys that daemons out of the operator's reach have, with commas, the default first."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_JOBS: Final = ("ALLOCATED", "MIXED", "COMPLETING")
_NO_JOBS: Final = ("DOWN", "FUTURE", "POWERED_DOWN")


@dataclass(frozen=True, slots=True)
class Holders:
    """All daemons of a Cluster that must have its keys."""

    asked: tuple[Holder, ...] = ()
    unproven: Mapping[str, str] = field(default_factory=dict)
    """Those that cannot be asked, by name, and why."""


def holders(snapshot: Snapshot) -> Holders:
    """Find all daemons that must have the key set of a managed Cluster."""
    asked: list[Holder] = []
    unproven: dict[str, str] = {}
    for name, pod, daemon, port in _pods(snapshot):
        host = _address(pod)
        if host:
            about = pod["metadata"] if pod is not None else {}
            reloads = daemon is not Daemon.SLURMDBD
            asked.append(Holder(f"{name} {about.get('uid', '')} {host}", name, daemon, host, port, reloads=reloads))
        else:
            unproven[name] = "has no address yet" if pod is not None else "has no pod"
    asked += _machines(snapshot)
    unproven |= _unseen(snapshot)
    accounting = variants.wanted(snapshot.cluster)
    if accounting is not None and accounting.external is not None:
        host, port = accounting.external.host, accounting.external.port or naming.SLURMDBD_PORT
        name = f"slurmdbd at {host}"
        asked.append(Holder(name, name, Daemon.SLURMDBD, host, port, elsewhere=True, reloads=False))
    if snapshot.cluster.spec.nodes and not snapshot.slurm_answers:
        unproven["the machines"] = "are not known while Slurm does not answer"
    for pod in snapshot.pods.logins:
        name, host = f"sackd of {pod['metadata']['name']}", _address(pod)
        if not _runs(pod):
            continue
        if not _tells_keys(pod):
            unproven |= {} if is_ready(pod) else {name: "cannot be asked, and its pod is not Ready"}
        elif host:
            identity = f"{name} {pod['metadata'].get('uid', '')} {host}"
            asked.append(Holder(identity, name, Daemon.SACKD, host, naming.KEY_PROOF_PORT, reloads=False))
        else:
            unproven[name] = "has no address yet"
    return Holders(tuple(asked), unproven)


def is_confirmed(snapshot: Snapshot, ids: tuple[str, ...]) -> bool:
    """Whether an administrator vouches for this set of keys, the default first."""
    said = str((snapshot.raw["metadata"].get("annotations") or {}).get(ANNOTATION_CONFIRMED, ""))
    return bool(said) and tuple(one.strip() for one in said.split(",")) == ids


def _pods(snapshot: Snapshot) -> Iterator[tuple[str, Object | None, Daemon, int]]:
    """Pods with a daemon that is asked; without a pod, a daemon that must have one."""
    # A pod that is ending still has its jobs, or its state.
    controller = snapshot.pods.controller or snapshot.pods.controller_ending
    yield "slurmctld", controller, Daemon.SLURMCTLD, naming.SLURMCTLD_PORT
    for pod in sorted(snapshot.pods.slurmds, key=lambda one: str(one["metadata"]["name"])):
        if _runs(pod):
            yield f"slurmd of {pod['metadata']['name']}", pod, Daemon.SLURMD, naming.SLURMD_PORT
    if variants.runs_slurmdbd(snapshot.cluster):
        pods = snapshot.pods.daemons.get(naming.COMPONENT_ACCOUNTING, ())
        yield from (("slurmdbd", pod, Daemon.SLURMDBD, naming.SLURMDBD_PORT) for pod in pods or (None,))


def _machines(snapshot: Snapshot) -> Iterator[Holder]:
    """slurmds outside of pods: their records have none of what the operator's slurmds register with."""
    nodes: Mapping[str, Node] = snapshot.slurm.nodes if snapshot.slurm is not None else {}
    for name, node in sorted(nodes.items()):
        if node.is_external or node.instance_id or node.extra or any(one in node.state for one in _NO_JOBS):
            continue
        host = node.address or node.hostname or name
        port = node.port or naming.SLURMD_PORT
        yield Holder(f"{name} {host}:{port}", f"slurmd of {name}", Daemon.SLURMD, host, port, elsewhere=True)


def _unseen(snapshot: Snapshot) -> dict[str, str]:
    """slurmds of pods that are not seen, and that have jobs."""
    nodes: Mapping[str, Node] = snapshot.slurm.nodes if snapshot.slurm is not None else {}
    seen = {pod_ownership.node_name(pod) for pod in snapshot.pods.slurmds}
    # What the operator's slurmds register with.
    tag = f"{snapshot.cluster.namespace}/"
    lost = [name for name, node in nodes.items() if name not in seen and node.extra.startswith(tag) and _has_jobs(node)]
    return {f"slurmd of {name}": "has jobs, and no pod that the operator sees" for name in sorted(lost)}


def _has_jobs(node: Node) -> bool:
    if node.is_external or any(one in node.state for one in _NO_JOBS):
        return False
    return any(one in node.state for one in _JOBS)


def _runs(pod: Object) -> bool:
    """Whether a pod may have a daemon: one without a Node has mounted nothing."""
    return bool((pod.get("spec") or {}).get("nodeName")) and (pod.get("status") or {}).get("phase") not in _ENDED


def _address(pod: Object | None) -> str:
    return str(((pod or {}).get("status") or {}).get("podIP") or "")


def _tells_keys(pod: Object) -> bool:
    """Whether a program beside sackd tells which keys it has."""
    sidecars = (pod.get("spec") or {}).get("initContainers") or ()
    return any(one.get("name") == naming.KEY_PROOF_CONTAINER for one in sidecars)
