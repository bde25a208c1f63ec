"""Slurm's answer about jobs and reservations: whether it is still valid, and when to query again. Pure."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.rollout.slurm_questions import UseQuestion
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurm.jobs.query_budget import wait_after

USE_VALID: Final = 3.0
"""Seconds for which Slurm's answer about use is valid; longer if it is expensive, while nothing is changed."""


def use(snapshot: Snapshot, now: float) -> Use | None:
    """Slurm's answer about what is in use, if it is still valid at `now` (monotonic seconds)."""
    known = snapshot.memory.answers.of(UseQuestion)
    stored = snapshot.cluster.status.config or ConfigStatus()
    if known is None or known.hash != stored.applied_hash or now - known.answered_at > 2 * _pause(known):
        return None
    loaded = snapshot.memory.rollout.loaded
    if loaded is not None and known.asked_at < loaded.at:
        # It is about the earlier configuration, even if that may have been the same.
        return None
    return known


def nodes(snapshot: Snapshot) -> int | None:
    """How many nodes Slurm has; those that are about to register count."""
    slurm = snapshot.slurm
    if slurm is None or slurm.contact.state is not ContactState.READY:
        return None
    return max(len(slurm.nodes), len(snapshot.pods.slurmd_names))


def may_ask(snapshot: Snapshot, now: float) -> bool:
    """Whether Slurm can be queried, and the last answer is old enough."""
    known, stored = use(snapshot, now), snapshot.cluster.status.config
    if not snapshot.slurm_answers or stored is None:
        return False
    return known is None or now - known.answered_at >= _pause(known)


def _pause(known: Use) -> float:
    """Seconds until the next query: jobs are the most expensive one."""
    return max(USE_VALID, wait_after(known.cost))


def is_fresh(snapshot: Snapshot, now: float) -> bool:
    """Whether Slurm has just answered what is in use, or that it cannot."""
    known = snapshot.memory.answers.of(UseQuestion)
    return known is not None and now - known.answered_at <= USE_VALID


def asks_in(snapshot: Snapshot, now: float) -> float:
    """Seconds until the next query."""
    known = use(snapshot, now)
    return USE_VALID if known is None else max(USE_VALID, known.answered_at + _pause(known) - now)
