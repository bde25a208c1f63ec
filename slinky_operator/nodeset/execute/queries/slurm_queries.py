"""Queries Slurm itself, past the cache: few calls for many nodes, and no answer if a call fails.

An error is never an answer here: the caller gets all of it or an exception, and does not delete.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model import member
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnd, RecordedEnds, of_record
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm.nodes.node_references import References
from slinky_operator.slurm.nodes.reference_query import references
from slurm_client import errors
from slurm_client.models import Job, Node

logger = logging.getLogger(__name__)

MAX_SINGLE_GETS: Final = 16
"""Up to this many nodes are read individually (3 to 5 ms each); for more, the whole list is the cheaper call."""


LONG: Final = 5.0
"""Seconds that a query for jobs may take before the nodes are queried again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A fresh answer from Slurm."""

    nodes: Mapping[str, Node | None]
    """Each name queried; None for one that Slurm does not know."""
    jobs: Mapping[str, tuple[Job, ...]]
    """All jobs that hold nodes, by node."""
    named: References = field(default_factory=dict)
    """What names the nodes queried, if that was asked for."""
    idle: frozenset[str] = frozenset()
    """Uids of pods whose slurmds have shown no step for minutes, and show none now, if they were asked."""
    is_slow: bool = False
    """Whether the jobs took so long that a job may have ended or started again since its record was read."""
    nodes_at: float = -math.inf
    """Monotonic seconds before the nodes were last queried, if that matters."""
    since: datetime | None = None
    """Since when slurmctld answers, if that matters."""

    def join(self, pod: Pod, owner: str) -> Member:
        """A pod whose node was queried, joined with the answer; `owner` is the tag of its NodeSet."""
        joined = member.join(pod, self.nodes, self.jobs, owner, idle=self.idle)
        return replace(joined, answers_since=self.since)


async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
    """Query nodes.

    Raises
    ------
    SlurmError
        Any of them could not be queried.
    """
    if len(names) <= MAX_SINGLE_GETS:
        return await slurm.refresh(names)
    listed = {node.name: node for node in await slurm.client.nodes()}
    return {name: listed.get(name) for name in names}


async def jobs(
    slurm: Slurm, names: Collection[str], *, since: float = -math.inf
) -> tuple[Mapping[str, tuple[Job, ...]], References]:
    """The jobs that hold nodes, by node, and what names these nodes, as recent as plans need them.

    Parameters
    ----------
    names
        Names of nodes whose references are wanted.
    since
        Monotonic seconds: an answer to an earlier query is not used.

    Raises
    ------
    SlurmError
        Slurm did not answer, or refused.
    """
    found = await slurm.shared_jobs(since)
    return drains.jobs_by_node(found), await references(slurm, found, names)


async def jobs_now(slurm: Slurm) -> Mapping[str, tuple[Job, ...]]:
    """The jobs that hold nodes, by node, queried now.

    Raises
    ------
    SlurmError
        Slurm did not answer, or refused.
    """
    return drains.jobs_by_node(await slurm.jobs_with_nodes())


async def everything(slurm: Slurm, names: Collection[str], clock: Callable[[], float]) -> Answer:
    """Query nodes, and then jobs: a node that was drained at its query can only have lost jobs since.

    Jobs that are read one by one take minutes. A drain may have been lifted by then, and a slurmd have registered, so
    the nodes are queried again: what counts is the later answer, and of a drain that it shows alone the earlier one.

    Parameters
    ----------
    clock
        Monotonic seconds.

    Raises
    ------
    SlurmError
        A query failed; there is no answer in part.
    """
    asked = clock()
    fresh = await nodes(slurm, names)
    held = await jobs_now(slurm)
    is_slow = clock() - asked > LONG
    if is_slow:
        asked = clock()
        fresh = _later(fresh, await nodes(slurm, names))
    return Answer(fresh, held, is_slow=is_slow, nodes_at=asked, since=slurm.contact.since)


def _later(earlier: Mapping[str, Node | None], later: Mapping[str, Node | None]) -> Mapping[str, Node | None]:
    """The later records, except of nodes that were not drained before: a job may have come before the drain."""
    found = dict(later)
    for name, node in earlier.items():
        now = later.get(name)
        if node is not None and not node.is_drain and now is not None and now.is_drain:
            found[name] = node
    return found


async def same_runs(slurm: Slurm, listed: Iterable[Job]) -> list[Job]:
    """Of jobs from a list that took long, those that still run as it shows them, each queried by itself.

    A job that was requeued meanwhile and has started again, perhaps elsewhere, has the state that it had.

    Raises
    ------
    SlurmError
        A query failed.
    """
    wanted = list(listed)
    found: list[Job] = []
    results = await gather_limited(slurm.client.job(job.id, details=False) for job in wanted)
    for job, now in zip(wanted, results, strict=True):
        if isinstance(now, errors.NotFound):
            continue
        if isinstance(now, BaseException):
            raise now
        if (now.start_time, now.nodes) == (job.start_time, job.nodes):
            found.append(now)
    return found


async def clock(slurm: Slurm) -> datetime:
    """Query Slurm's own time, the clock of its drains' start times.

    Queried before anything else, it is never ahead of what the other answers show.

    Raises
    ------
    SlurmError
        Slurm did not answer, or refused.
    """
    now = (await slurm.client.diag()).now
    if now is None:
        raise errors.DecodeError("slurmctld's diagnostics contain no time")
    return now


async def recorded_ends(slurm: Slurm, jobs: Iterable[Job], before: RecordedEnds, now: datetime) -> RecordedEnds:
    """Ask slurmdbd for the ends of jobs; without an answer, what it said before of these jobs stays.

    Parameters
    ----------
    jobs
        Those that delay drains.
    before
        What it said before.
    now
        The time; timezone-aware.
    """
    found: dict[int, RecordedEnd] = {}
    for job in jobs:
        try:
            records = await slurm.client.db.job_records(job.id)
        except errors.SlurmError as error:
            # A Cluster without accounting has none, and a drain needs no slurmdbd: it is asked again later.
            logger.info("slurmdbd was not asked for the end of job %d: %s", job.id, error)
            return RecordedEnds(now, {**before.ends, **found})
        ends = [end for record in records if record.id == job.id and (end := of_record(record)) is not None]
        if ends:
            found[job.id] = max(ends, key=lambda end: end.started_at)
    return RecordedEnds(now, found)


async def about_records(slurm: Slurm, names: Collection[str]) -> Answer:
    """Query jobs, reservations, and then nodes: so a drain of a node without a pod in the meantime is seen.

    Jobs come first, since they may take minutes: a reservation that is made meanwhile is seen.

    A job that has started since does not matter: Slurm itself refuses to delete a record under it. It does not look at
    jobs that name the node; one that is submitted between the answer about jobs and the deletion is not seen.

    Raises
    ------
    SlurmError
        A query failed; there is no answer in part.
    """
    found = await slurm.fresh_jobs()
    named = await references(slurm, found, names)
    return Answer(await nodes(slurm, names), drains.jobs_by_node(found), named)


def reason_of(error: errors.SlurmError) -> Reason:
    """The condition's reason for a Slurm that did not answer."""
    match error:
        case errors.Unauthorized() | errors.PermissionDenied():
            return Reason.UNAUTHORIZED
        case errors.ControllerDown():
            return Reason.CONTROLLER_DOWN
        case _:
            return Reason.SLURM_UNREACHABLE
