"""When a pod counts as ready, as ready for long enough, and as available."""

from __future__ import annotations

from datetime import datetime

from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership


def is_ready(member: Member) -> bool:
    """Whether a pod is Ready: to Kubernetes, and to Slurm."""
    node = member.record
    return node is not None and _answers(member) and not registration.is_rejected(node)


def may_serve(member: Member) -> bool:
    """Whether a pod is Ready, or will be after an undrain: of the operator's drain, or of Slurm's outlived one."""
    node = member.record
    if node is None or not _answers(member):
        return False
    return registration.is_stale_drain(node) or not registration.is_rejected(node)


def _answers(member: Member) -> bool:
    """Whether a pod is Ready in Kubernetes, and its slurmd answers Slurm."""
    pod, node = member.pod, member.record
    if pod.deleting or pod.ready_since is None or not pod.registered:
        return False
    if node is None or member.ownership is not RecordOwnership.OURS:
        return False
    return not node.is_down and not node.is_not_responding


def has_come_up(member: Member, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is registered, responding, and has been Ready for `minReadySeconds`."""
    return is_ready(member) and is_long_ready(member.pod, snapshot, now)


def is_long_ready(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod has been Ready in Kubernetes for `minReadySeconds`."""
    since = pod.ready_since
    return since is not None and (now - since).total_seconds() >= snapshot.nodeset.spec.min_ready_seconds


def may_come_up(member: Member, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod has not been Ready for `minReadySeconds`, and is young enough to become so."""
    created_at = member.pod.created_at
    if created_at is None or has_come_up(member, snapshot, now):
        return False
    time = snapshot.patience.total_seconds() + snapshot.nodeset.spec.min_ready_seconds
    return (now - created_at).total_seconds() < time


def serves(member: Member, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is available: Ready for `minReadySeconds`, and not drained by the operator."""
    return is_open(member) and has_come_up(member, snapshot, now)


def is_open(member: Member) -> bool:
    """Whether a pod has a node in Slurm that the operator has not drained."""
    return member.record is not None and not drains.is_ours(member.record)
