"""What a job without a script was given, by the one record that also says whose job it is. Pure.

A number alone proves nothing: after slurmctld has lost its last seconds, it gives the number of a job to another one.
So the nodes are read from a record that has the mark, and the start that the list of jobs has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import MAX_ALLOCATION, JobAllocation
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
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


def is_of(record: Job, mark: Mark, user: str, seen: Seen) -> bool:
    """Whether a record is that of the job as the list has it: it has the mark, and runs since then.

    Parameters
    ----------
    record
        What slurmctld says under the number of the job.
    mark, user
        Whose job it is to be.
    seen
        The job in the list.
    """
    is_ours = record.extra == mark.text and record.user == user and record.id == seen.job_id
    runs = record.state.base in {"RUNNING", "SUSPENDED"} and record.state.flags.isdisjoint(_STARTING)
    return is_ours and runs and record.start_time == seen.start_time


def of(found: JobResources | None, devices: Sequence[str]) -> tuple[JobAllocation, ...] | None:
    """What a job was given on each node, in Slurm's order; None if its record does not say it as a status can hold it.

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
