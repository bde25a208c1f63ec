"""When a pod counts as ready, come up and available."""

from __future__ import annotations

from datetime import datetime

from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Node


def is_ready(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod is Ready: to Kubernetes, and to Slurm."""
    node = snapshot.slurm.nodes.get(pod.node_name)
    return node is not None and _answers(pod, node, snapshot) and not registration.is_rejected(node)


def may_serve(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod is Ready, or is as soon as a drain is taken back: ours, or Slurm's for what has been mended."""
    node = snapshot.slurm.nodes.get(pod.node_name)
    if node is None or not _answers(pod, node, snapshot):
        return False
    return registration.is_outlived(node) or not registration.is_rejected(node)


def _answers(pod: Pod, node: Node, snapshot: Snapshot) -> bool:
    """Whether a pod is Ready to Kubernetes, and its slurmd answers Slurm."""
    if pod.deleting or pod.ready_since is None or not pod.registered:
        return False
    if pod_state.bond_of(pod, node, snapshot.owner) is not RecordOwnership.OURS:
        return False
    return not node.is_down and not node.is_not_responding


def has_come_up(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is registered, responding, and Ready for long enough."""
    if not is_ready(pod, snapshot) or pod.ready_since is None:
        return False
    return (now - pod.ready_since).total_seconds() >= snapshot.nodeset.spec.min_ready_seconds


def may_come_up(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod has not come up, and is not too old to be on its way."""
    if pod.created_at is None or has_come_up(pod, snapshot, now):
        return False
    time = snapshot.patience.total_seconds() + snapshot.nodeset.spec.min_ready_seconds
    return (now - pod.created_at).total_seconds() < time


def serves(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is available: it has come up, and we do not drain it."""
    node = snapshot.slurm.nodes.get(pod.node_name)
    return node is not None and not drains.is_ours(node) and has_come_up(pod, snapshot, now)
