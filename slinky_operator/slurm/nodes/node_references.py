"""Which jobs and reservations name a node, so that its record must stay in Slurm.

slurmctld checks the nodes that jobs require (`-w`) and exclude (`-x`) at each start and each reconfigure, and those of
reservations all the time. Once a record is gone, a job that requires the node ends NODE_FAIL, even if it runs on other
nodes; a job that excludes it can no longer be changed or held; a reservation made by name loses the node, and is
deleted without a last one (all measured with 24.11 and 26.05).

A job that has lost one of its nodes, and is to run again, still ends on the others. Slurm shows only those, lets the
record of the lost one be deleted, and at the next reconfigure does not find the nodes of the job any more: it stays
COMPLETING for good (seen with 26.05). Until such a job has left its nodes, any node may be the one that it has lost.

The lists are texts of users. Each text is read once, whatever the number of its jobs, and the work on all of them is
bounded: a list that is not read, because it is too long or no list of hosts, counts as naming every node. What is kept
between two answers of Slurm is bounded as well (`remembered`). Which nodes' records are deleted is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from slinky_operator.slurm import naming
from slurm_client.models import Job, JobState, Reservation
from slurm_client.notation import hostlist

FEW: Final = 4
"""References that are reported of one node, and jobs that are remembered of one list: those that a message names."""

MOST_WORK: Final = 2_000_000
"""Characters and names that one search reads: less than a second in a thread."""

MOST_LISTS: Final = 8_000
"""Different lists of jobs without nodes that are remembered."""

MOST_CHARACTERS: Final = 1_000_000
"""Characters of these lists."""

UNREAD: Final = "[...]"
"""A list that is no list of hosts: it stands for those that are not remembered, and counts as naming every node."""

UNKNOWN: Final = Job(id=0, state=JobState("PENDING"), required_nodes=UNREAD)
"""Stands for jobs that were not read: perhaps they name any node."""

_ENDS: Final = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"})
"""States in which a job runs no more, whatever its nodes do."""

_PUNCTUATION: Final = frozenset("[],")
"""In no name: a text that is no list of hosts is its own only member."""

REQUIRED: Final = "required by"
"""Words before the job that asks for a node."""

References = Mapping[str, tuple[str, ...]]
"""What names a node, by its name: `required by job 12`; only nodes that are named, and at most `FEW` for each."""


def are_given(jobs: Iterable[Job], reservations: Iterable[Reservation]) -> bool:
    """Whether anything may name a node at all; most answers need no further look."""
    return any(job.required_nodes or job.excluded_nodes or is_coming_back(job) for job in jobs) or any(
        map(_is_by_name, reservations)
    )


def is_coming_back(job: Job) -> bool:
    """Whether a job may run again, and has not left all the nodes that it had."""
    return "COMPLETING" in job.state.flags and job.state.base not in _ENDS


def find(
    jobs: Iterable[Job], reservations: Iterable[Reservation], names: Collection[str], *, most: int = MOST_WORK
) -> References:
    """Find what names these nodes. It may take a second: where many lists are given, it belongs into a thread.

    Parameters
    ----------
    jobs
        All jobs, or those that `remembered` has kept; those that have ended name nothing.
    reservations
        All reservations.
    names
        Names of nodes.
    most
        Characters and names that are read; lists beyond that count as naming every node.
    """
    known = tuple(jobs)
    open_, left = set(names), most
    found: dict[str, list[str]] = {}
    unread = [
        f"perhaps held by job {job.alone}, which ends on other nodes before it runs again"
        for job in islice(filter(is_coming_back, known), FEW)
    ]
    for text, given in _lists(known, reservations).items():
        left -= len(text)
        left -= min(hostlist.size(text), hostlist.LIMIT) if left >= 0 else 0
        members = hostlist.expand(text) if left >= 0 else ()
        if not members or not _PUNCTUATION.isdisjoint(members[0]):
            unread += [f"perhaps {how} {who}, whose list of nodes cannot be read" for how, who in given]
            continue
        told = [f"{how} {who}" for how, who in given]
        for name in open_.intersection(members):
            found.setdefault(name, []).extend(told)
            if len(found[name]) >= FEW:
                # The others are not told: nobody looks for them.
                open_.discard(name)
        if not open_:
            break
    for name in open_ if unread else ():
        found.setdefault(name, []).extend(unread[:FEW])
    return {name: tuple(told[:FEW]) for name, told in found.items()}


def remembered(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Of an answer about all jobs, what is kept for planners: the jobs with nodes, and what names nodes of the others.

    Of a list that many jobs without nodes have in common, `FEW` jobs are kept, and of each job no more than that.
    """
    kept: list[Job] = []
    counts: dict[tuple[str, str], int] = {}
    characters, is_full = 0, False
    for job in jobs:
        if job.nodes or is_coming_back(job):
            kept.append(job)
            continue
        lists = job.required_nodes, job.excluded_nodes
        if lists == ("", "") or job.is_finished:
            continue
        count = counts.get(lists, 0)
        if count == FEW or (is_full and not count):
            continue
        if not count:
            characters += len(lists[0]) + len(lists[1])
            if len(counts) == MOST_LISTS or characters > MOST_CHARACTERS:
                is_full, lists = True, (UNREAD, "")
        counts[lists] = count + 1
        kept.append(_slim(job, *lists))
    return tuple(kept)


def is_of_maintenance(reservation: Reservation) -> bool:
    """Whether the operator has made a reservation, for a maintenance window."""
    return reservation.name.startswith(naming.MAINTENANCE_PREFIX) and "MAINT" in reservation.flags


def _slim(job: Job, required: str, excluded: str) -> Job:
    return Job(
        id=job.id,
        state=job.state,
        array_job_id=job.array_job_id,
        array_task_id=job.array_task_id,
        required_nodes=required,
        excluded_nodes=excluded,
    )


def _lists(jobs: Iterable[Job], reservations: Iterable[Reservation]) -> dict[str, list[tuple[str, str]]]:
    """Each list of nodes, with how its nodes are named and by whom: the first few."""
    found: dict[str, list[tuple[str, str]]] = {}
    for job in jobs:
        if not (job.required_nodes or job.excluded_nodes) or job.is_finished:
            continue
        for text, how in ((job.required_nodes, REQUIRED), (job.excluded_nodes, "excluded by")):
            if text and len(given := found.setdefault(text, [])) < FEW:
                given.append((how, f"job {job.alone}" if job.id else "a job"))
    for one in filter(_is_by_name, reservations):
        if len(given := found.setdefault(one.node_list, [])) < FEW:
            given.append(("named by", f"reservation {one.name}"))
    return found


def _is_by_name(reservation: Reservation) -> bool:
    """Whether a reservation was made by names of nodes.

    For one made by their number Slurm itself finds others; one of all nodes, or of a partition's, follows them. Those
    for maintenance windows follow the nodes, too: the operator changes them.
    """
    flags = reservation.flags
    if is_of_maintenance(reservation):
        return False
    return bool(reservation.node_list) and "SPEC_NODES" in flags and flags.isdisjoint({"ALL_NODES", "PART_NODES"})
