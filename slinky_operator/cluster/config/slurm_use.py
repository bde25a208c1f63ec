"""What Slurm has said about jobs and reservations: whether that still counts, and when it is asked again. Pure."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.cluster_status import ConfigStatus
from slinky_operator.cluster.in_use.removals import Use
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.slurm.clients import ContactState
from slinky_operator.slurm.jobs import wait_after

USE_VALID: Final = 3.0
"""Seconds for which Slurm's answer to what is in use counts; where it is dear, for longer while nothing is changed."""


def use(snapshot: Snapshot, now: float) -> Use | None:
    """What Slurm has said about what is in use, if that still counts at `now` (monotonic seconds)."""
    known = snapshot.memory.use
    stored = snapshot.cluster.status.config or ConfigStatus()
    if known is None or known.hash != stored.applied_hash or now - known.asked_at > 2 * _pause(known):
        return None
    loaded = snapshot.memory.loaded
    if loaded is not None and known.asked_at < loaded.at:
        # It is about what ran before, though that may have been the same.
        return None
    return known


def nodes(snapshot: Snapshot) -> int | None:
    """How many nodes Slurm has; those that are about to register count."""
    slurm = snapshot.slurm
    if slurm is None or slurm.contact.state is not ContactState.READY:
        return None
    return max(len(slurm.nodes), len(snapshot.slurmd_pods))


def may_ask(snapshot: Snapshot, now: float) -> bool:
    """Whether Slurm can be asked, and the last answer is old enough."""
    known, stored = use(snapshot, now), snapshot.cluster.status.config
    if snapshot.slurm is None or snapshot.slurm.contact.state is not ContactState.READY or stored is None:
        return False
    return known is None or now - known.asked_at >= _pause(known)


def _pause(known: Use) -> float:
    """Seconds until Slurm is asked again: its jobs are the dearest question there is."""
    return max(USE_VALID, wait_after(known.cost))


def is_fresh(snapshot: Snapshot, now: float) -> bool:
    """Whether Slurm has said a moment ago what is in use, or that it cannot."""
    known = snapshot.memory.use
    return known is not None and now - known.asked_at - known.cost <= USE_VALID


def asks_in(snapshot: Snapshot, now: float) -> float:
    """Seconds until the next question."""
    known = use(snapshot, now)
    return USE_VALID if known is None else max(USE_VALID, known.asked_at + _pause(known) - now)
