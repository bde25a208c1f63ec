"""What a job is to be: for submission, and for changes of one that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from slurm_client.errors import Report
    from slurm_client.models.values import Infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """
    Wishes about a job; ``None`` leaves a thing to Slurm, or as it is.

    Memory is in MiB. ``#SBATCH`` lines of the script are not read by slurmrestd: what they would say belongs here.

    Parameters
    ----------
    script
        The batch script, with its ``#!`` line.
    environment
        Of the job; Slurm refuses a submission without one, so a ``PATH`` is set when this is absent.
    working_directory
        Where it starts; ``/`` when absent at submission.
    nodes
        How many: ``"2"``, ``"2-4"``.
    tasks, tasks_per_node, cpus_per_task
        Processes, and CPUs for each.
    tres_per_node
        Resources such as ``gres/gpu:1``.
    time_limit
        Wall time, rounded up to minutes.
    array
        Indices of an array: ``"0-9%2"``.
    hold
        Submit held, or hold; ``False`` releases.
    other
        Keys of the data parser's own ``job_desc_msg``, passed on as they are.
    """

    script: str | None = None
    name: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    nodes: str | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    tres_per_node: str | None = None
    constraints: str | None = None
    required_nodes: Sequence[str] | None = None
    excluded_nodes: Sequence[str] | None = None
    licenses: str | None = None
    time_limit: timedelta | Infinite | None = None
    begin_time: datetime | None = None
    dependency: str | None = None
    array: str | None = None
    priority: int | None = None
    nice: int | None = None
    hold: bool | None = None
    requeue: bool | None = None
    environment: Mapping[str, str] | None = None
    working_directory: str | None = None
    arguments: Sequence[str] | None = None
    standard_input: str | None = None
    standard_output: str | None = None
    standard_error: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    extra: str | None = None
    wckey: str | None = None
    other: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SubmittedJob(Entry):
    """
    A job Slurm has taken.

    Parameters
    ----------
    id
        Job id.
    message
        What the submit plugins wish to tell the user.
    warnings
        Of slurmrestd.
    """

    id: int
    message: str = ""
    warnings: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True)
class JobResult(Entry):
    """What became of one job in a call about many: ``error`` is ``None`` if it went well."""

    id: str
    error: Report | None = None
