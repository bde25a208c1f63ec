"""What a job without a script was given, by the one record that also says whose job it is. Pure.

A number alone proves nothing: after slurmctld has lost its last seconds, it gives the number of a job to another one.
So the nodes are read from a record that has the mark, and the start that the list of jobs has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import MAX_ALLOCATION, JobAllocation
from slinky_operator.slurmjob.model.slurm_records.marks import Mark, number_of
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slurm_client.models import Job, JobResources

MOST_GRES: Final = 32
"""Generic resources of a node that are shown."""

LONGEST_GRES: Final = 255
"""Characters of one; the indices are left out of a longer one."""

ALL_GRES: Final = 262_144
"""Characters of those of all nodes; the indices are left out of more. etcd keeps no object of more than 1.5 MB."""

LONGEST_NAME: Final = 255
"""Characters of the name of a node."""

LONGEST_WORDS: Final = 65_536
"""Characters of Slurm's words for the generic resources of one node that are read."""

_ONE: Final = re.compile(r"[^,()]+(?:\([^()]*\)[^,()]*)*")
_NONE: Final = re.compile(r":0(\(|$)")
_STARTING: Final = frozenset({"CONFIGURING", "POWER_UP_NODE", "COMPLETING"})


def is_of(parts: Sequence[Job], mark: Mark, user: str, seen: Seen) -> bool:
    """Whether records are those of the job as the list has it: they have the mark, and run since then.

    Parameters
    ----------
    parts
        What slurmctld says under the number of the job: its record, or those of its components.
    mark, user
        Whose job it is to be.
    seen
        The job in the list.
    """
    starts = [record.start_time for record in parts if record.start_time is not None]
    return (
        len(starts) == len(parts) > 0
        and min(starts) == seen.start_time
        and all(_is_ours(record, mark, user, seen.job_id) for record in parts)
    )


def _is_ours(record: Job, mark: Mark, user: str, job_id: int) -> bool:
    is_ours = record.extra == mark.text and record.user == user and number_of(record) == job_id
    return is_ours and record.state.base in {"RUNNING", "SUSPENDED"} and record.state.flags.isdisjoint(_STARTING)


@dataclass(frozen=True, slots=True)
class Share:
    """Nodes that have equally many tasks of a component."""

    component: int
    tasks: int
    """On each of these nodes."""
    nodes: tuple[str, ...]


def shares(allocation: Sequence[JobAllocation], parts: Sequence[tuple[int, int | None]]) -> tuple[Share, ...]:
    """What a job had, in parts that can be asked for as such: Slurm may spread tasks otherwise over the same nodes.

    Parameters
    ----------
    allocation
        What it had.
    parts
        CPUs of a task, and the number of tasks, of each component; of a plain job those of the whole.
    """
    found: dict[tuple[int, int], list[str]] = {}
    for number, (cpus, most) in enumerate(parts):
        left = most
        for one in allocation:
            if (one.component or 0) != number:
                continue
            tasks = one.cpus // cpus if left is None else min(one.cpus // cpus, left)
            left = None if left is None else left - tasks
            if tasks:
                found.setdefault((number, tasks), []).append(one.node)
    return tuple(Share(component, tasks, tuple(nodes)) for (component, tasks), nodes in found.items())


def is_same(stored: Sequence[JobAllocation], found: Sequence[JobAllocation]) -> bool:
    """Whether a job has been given the same once more."""
    return sorted(map(_place, stored)) == sorted(map(_place, found))


def kept(stored: Sequence[JobAllocation], found: Sequence[JobAllocation]) -> tuple[JobAllocation, ...]:
    """The same as it was known, in its order, with the memory and the devices of now."""
    now = {_place(one): one for one in found}
    return tuple(now.get(_place(one), one) for one in stored)


def again(
    stored: Sequence[JobAllocation], found: Sequence[JobAllocation], asked: Sequence[Share]
) -> tuple[JobAllocation, ...]:
    """What a job has that has asked for the nodes of an earlier one, as that had it.

    Parameters
    ----------
    stored
        What the earlier one had.
    found
        What this one has, by the shares it has asked for.
    asked
        These shares.
    """
    now = {(asked[one.component or 0].component, one.node): one for one in found if (one.component or 0) < len(asked)}
    return tuple(
        one
        if (given := now.get((one.component or 0, one.node))) is None
        else one.model_copy(update={"memory": given.memory, "gres": given.gres})
        for one in stored
    )


def _place(one: JobAllocation) -> tuple[int, str, int]:
    return one.component or 0, one.node, one.cpus


def of_parts(parts: Sequence[Job], count: int) -> tuple[JobAllocation, ...] | None:
    """What a job was given on each node, by component and in Slurm's order; None if that cannot be said.

    Parameters
    ----------
    parts
        The records of the job.
    count
        How many components it has; 0 for a job without.
    """
    ordered = sorted(parts, key=lambda record: record.het_job_offset or 0)
    if [record.het_job_offset or 0 for record in ordered] != list(range(max(1, count))):
        return None
    found: list[JobAllocation] = []
    for number, record in enumerate(ordered):
        given = of(record.details.resources, record.gres_detail)
        if given is None:
            return None
        found += [one.model_copy(update={"component": number}) for one in given] if count else given
    return tuple(found) if len(found) <= MAX_ALLOCATION else None


def of(found: JobResources | None, devices: Sequence[str]) -> tuple[JobAllocation, ...] | None:
    """What one component was given on each node, in Slurm's order; None if its record does not say it.

    Parameters
    ----------
    found
        CPUs and memory by node, of the details of the record.
    devices
        Slurm's words for the generic resources of each node, in the same order.
    """
    if found is None or not 0 < len(found.nodes) <= MAX_ALLOCATION:
        return None
    if any(len(node.name) > LONGEST_NAME for node in found.nodes):
        return None
    texts = devices if len(devices) == len(found.nodes) else ("",) * len(found.nodes)
    with_indices = sum(map(len, texts)) <= ALL_GRES
    return tuple(
        JobAllocation(
            node=node.name, cpus=node.cpus or 0, memory=node.memory_mib, gres=_gres(text, with_indices=with_indices)
        )
        for node, text in zip(found.nodes, texts, strict=True)
    )


def _gres(text: str, *, with_indices: bool) -> tuple[str, ...]:
    """Slurm's words for each generic resource of a node that the job has some of."""
    if len(text) > LONGEST_WORDS:
        return ()
    words = [one.strip() for one in _ONE.findall(text) if one.strip() and not _NONE.search(one)]
    return tuple(
        one if with_indices and len(one) <= LONGEST_GRES else one.partition("(")[0][:LONGEST_GRES]
        for one in words[:MOST_GRES]
    )


def too_many(records: Sequence[Job]) -> int:
    """How many nodes a job has, if they are more than a status holds; 0 otherwise."""
    count = sum(len(record.nodes) for record in records)
    return count if count > MAX_ALLOCATION else 0
