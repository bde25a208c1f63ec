"""Which slurmds are asked for the steps on their nodes, and about which jobs. Pure.

Those whose nodes slurmctld has forgotten, and those that hold up a drain for minutes with a batch job that runs. What
their answers prove is decided in `slurm_nodes.running_steps`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.nodeset.drain import forgotten_ends
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.actions import StepQuestion
from slinky_operator.nodeset.model.pod_state import Doubt, State
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slurm_client.models import Job

ASK_EVERY: Final = timedelta(minutes=1)
"""How often a slurmd is asked at most."""

MOST: Final = 20
"""Slurmds that are asked in one pass."""


def questions(snapshot: Snapshot, states: Mapping[str, State], now: datetime) -> tuple[StepQuestion, ...]:
    """The slurmds to be asked now, those first that have waited longest.

    Parameters
    ----------
    snapshot
        The snapshot.
    states
        Of the NodeSet's pods, by name.
    now
        The time; timezone-aware.
    """
    about: dict[str, set[int]] = {}
    for pod in snapshot.pods:
        state = states.get(pod.name)
        if isinstance(state, pod_state.Unknown) and state.doubt is Doubt.FORGOTTEN:
            about.setdefault(pod.name, set())
    late = list(_late(states.values(), now))
    if not late and not about:
        return ()
    pods = {pod.node_name: pod for pod in snapshot.pods}
    for job in late:
        if pods.keys() >= set(job.nodes):
            for node in job.nodes:
                about.setdefault(pods[node].name, set()).add(job.id)
    due = [one for one in snapshot.pods if one.name in about and _may_be_asked(one, snapshot.steps.get(one.uid), now)]
    due.sort(key=lambda one: (_asked_at(snapshot.steps.get(one.uid)), one.name))
    return tuple(StepQuestion(pod, frozenset(about[pod.name])) for pod in due[:MOST])


def gone(snapshot: Snapshot, jobs: Iterable[Job], now: datetime) -> dict[int, datetime]:
    """Jobs of which no node has a step, and since when, by id.

    Parameters
    ----------
    snapshot
        The snapshot.
    jobs
        As slurmctld shows them.
    now
        The time; timezone-aware.
    """
    return gone_from(snapshot.pods, snapshot.steps, jobs, now)


def gone_from(
    pods: Collection[Pod], steps: Mapping[str, StepsSeen], jobs: Iterable[Job], now: datetime
) -> dict[int, datetime]:
    """The same of pods, and of what their slurmds have shown, by uid."""
    if not steps:
        # No slurmd has shown anything.
        return {}
    seen = {pod.node_name: steps.get(pod.uid) for pod in pods}
    found = {}
    for job in jobs:
        since = running_steps.gone(job, [seen.get(node) for node in job.nodes], now)
        if since is not None:
            found[job.id] = since
    return found


def _late(states: Iterable[State], now: datetime) -> Iterator[Job]:
    return (job for job in forgotten_ends.late_jobs(states, now) if running_steps.may_be_proven(job, now))


def _may_be_asked(pod: Pod, seen: StepsSeen | None, now: datetime) -> bool:
    if pod.deleting or pod.slurmd is not Slurmd.RUNNING or not pod.address:
        return False
    return seen is None or now - seen.asked_at >= ASK_EVERY


def _asked_at(seen: StepsSeen | None) -> float:
    return seen.asked_at.timestamp() if seen is not None else 0.0
