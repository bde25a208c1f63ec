"""The part about the connection to Slurm: keeps it, has jobs counted, and shows whether Slurm answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, Ask, Disconnect, EmitEvent, Hurry, UseReplicas, UseSlurmKey
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.connection import slurm_connection
from slinky_operator.cluster.parts.connection.contact import CONTACT, contact
from slinky_operator.cluster.parts.connection.replicas import replicas
from slinky_operator.cluster.parts.connection.slurm_connection import Connection, Pace
from slinky_operator.cluster.parts.job_counts import unopened_files
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.parts.keys import question_key
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.connection.contact import ContactState, Trouble


class ContactPart(Part):
    """One of the conditions that show whether Slurm answers."""

    name = "connection"

    def __init__(self, condition: ClusterCondition) -> None:
        self.condition = condition
        self._condition = condition

    @override
    def shown(self, state: PassState) -> Shown:
        return contact(state.snapshot, state.found(Connection).missing)[self._condition]

    @override
    def because(self, state: PassState) -> Iterator[str]:
        """What is known of the daemon's pod, unless there is no connection."""
        if state.snapshot.cluster.spec.external or state.found(Connection).missing is not None:
            return
        names = {one.daemon for one in daemons.DAEMONS if one.condition == self._condition}
        yield from (str(one) for one in daemons.troubles(state.snapshot, state.wall) if one.daemon in names)


class ConnectionPart(Part):
    """The connection itself."""

    name = "connection"

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        if cluster.spec.token is not None:
            yield cluster.spec.token.secret_name

    @override
    def blockers(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        missing = state.found(Connection).missing
        if missing is not None:
            too_many = missing.reason is Reason.TOO_MANY_CLUSTERS
            kind = ClusterCondition.API_REACHABLE if too_many else ClusterCondition.TOKEN_VALID
            yield missing.reason, f"{kind}: {missing.message}"


CONNECTION: Final = (ConnectionPart(), *map(ContactPart, CONTACT))


COUNT_JOBS_EVERY: Final = 5.0
"""Seconds between two counts of jobs, if they are cheap."""

COUNT_JOBS_SHARE: Final = 0.02
"""Maximum fraction of time spent on counting jobs."""


def connect(state: PassState) -> Iterator[Action]:
    """Ensure a connection with the current server, Secrets and keys."""
    snapshot = state.snapshot
    pace, keys = state.found(Pace), state.found(Keys)
    wanted = slurm_connection.too_many(snapshot, pace) or slurm_connection.connect(snapshot, keys.candidates, pace)
    urls = replicas(snapshot)
    state.note(Connection(wanted if isinstance(wanted, Missing) else None))
    slurm = snapshot.slurm
    if isinstance(wanted, Missing) or not wanted.endpoint.url:
        if slurm is not None:
            yield Disconnect()
        return
    key = question_key.of_questions(snapshot, keys, state.wall)
    if slurm is None or slurm.fingerprint != wanted.fingerprint:
        yield replace(wanted, replicas=urls, slurm_key=key)
        return
    if slurm.replicas != frozenset(urls):
        yield UseReplicas(urls)
    if slurm.slurm_key != key:
        yield UseSlurmKey(key)
    waiting = slurm.contact.state is not ContactState.READY and slurm.contact.trouble is not Trouble.UNAUTHORIZED
    if waiting and daemons.all_answering_are_ready(snapshot):
        # Its own back-off grows; once the daemons have started there is nothing to wait for.
        yield Hurry()


def count_jobs(state: PassState) -> Iterator[Action]:
    """Count jobs if Slurm answers and the last count is old enough."""
    if state.snapshot.slurm_answers and jobs_due(state.snapshot, state.now) <= 0:
        yield Ask(JobsQuestion())


def tell_of_jobs(state: PassState) -> Iterator[Action]:
    """Report, once, jobs that have ended because a file of theirs could not be opened."""
    snapshot = state.snapshot
    jobs = snapshot.memory.answers.of(JobsQuestion)
    words = jobs.unopened if jobs is not None else ""
    if words and snapshot.memory.last_events.get(unopened_files.REASON) != words:
        yield EmitEvent(snapshot.raw, EventType.WARNING, unopened_files.REASON, words)


def jobs_due(snapshot: Snapshot, now: float) -> float:
    """Seconds from `now` (monotonic) until jobs are counted again."""
    jobs = snapshot.memory.answers.of(JobsQuestion)
    if jobs is None:
        return 0.0
    return max(0.0, max(COUNT_JOBS_EVERY, jobs.cost / COUNT_JOBS_SHARE) - (now - jobs.at))
