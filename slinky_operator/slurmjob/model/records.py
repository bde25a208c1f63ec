"""Slurm's records of one job, or of the tasks of an array, as one. Pure.

slurmctld forgets tasks of an array one by one while others still run, so what was counted before is passed in and never
counted down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import ArrayCounts
from slinky_operator.jobs.phases import Phase, Reason, Shown, shown
from slurm_client.models import Job, JobRecord
from slurm_client.notation.arrays import ArrayTasks

LONGEST: Final = 512
"""Characters of a text of Slurm's that is repeated."""

HELD_BY_USER: Final = "JobHeldUser"
HELD_BY_ADMIN: Final = "JobHeldAdmin"
"""Slurm's words for who holds a job; a user cannot release what an administrator holds."""

_BITMAP: Final = "0x"
"""How indices of tasks begin in slurmdbd's records: ``0x3C`` are 2 to 5."""

_HELD: Final = frozenset({HELD_BY_USER, HELD_BY_ADMIN})

_ORDER: Final = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING, Phase.PENDING, Phase.UNKNOWN)
"""Of tasks in different phases, the first of these is that of the array."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What Slurm says of the job of an object."""

    job_id: int
    shown: Shown
    user: str = ""
    account: str = ""
    partition: str = ""
    nodes: str = ""
    slurm_reason: str = ""
    submit_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    restarts: int = 0
    array: ArrayCounts | None = None
    output: str = ""
    is_held: bool = False
    """Whether Slurm keeps it, or tasks of it, from starting, or from starting again."""

    @property
    def is_finished(self) -> bool:
        """Whether all of it has ended."""
        return self.shown.is_finished


def of_queue(jobs: Sequence[Job], counted: ArrayCounts | None = None) -> Seen | None:
    """What slurmctld says; None if it has no record.

    Parameters
    ----------
    jobs
        All records of the job.
    counted
        Tasks that had ended when last looked.
    """
    if not jobs:
        return None
    parts = [(job, _shown(job)) for job in jobs]
    counts: Counter[Phase] = Counter()
    for job, one in parts:
        counts[one.phase] += _tasks(job)
    leader, whole = min(parts, key=lambda part: _rank(part[1].phase))
    is_array = any(job.array_job_id is not None for job in jobs)
    if is_array:
        whole = _whole([one for _, one in parts], whole, counted)
    starts = [job.start_time for job in jobs if job.start_time is not None]
    ends = [job.end_time for job in jobs if job.end_time is not None]
    return Seen(
        job_id=leader.array_job_id or leader.id,
        shown=whole,
        user=leader.user[:LONGEST],
        account=leader.account[:LONGEST],
        partition=leader.partition[:LONGEST],
        nodes=leader.node_list[:LONGEST],
        slurm_reason=leader.state_reason[:LONGEST],
        submit_time=leader.submit_time,
        start_time=min(starts, default=None),
        end_time=max(ends, default=None) if whole.is_finished else None,
        restarts=max(job.restarts for job in jobs),
        array=_counts(counts, counted) if is_array else None,
        output=leader.standard_output_expanded[:LONGEST],
        is_held=any(job.hold or job.state_reason in _HELD for job in jobs),
    )


def of_history(records: Sequence[JobRecord], counted: ArrayCounts | None = None) -> Seen | None:
    """What slurmdbd says of the last run of each part; None if it has no record."""
    last: dict[int, JobRecord] = {}
    for record in records:
        known = last.get(record.id)
        if known is None or _begun(record) >= _begun(known):
            last[record.id] = record
    if not last:
        return None
    parts = [
        (record, shown(record.state, exit_code=record.exit_code, slurms_reason=record.state_reason))
        for record in last.values()
    ]
    counts: Counter[Phase] = Counter()
    for record, one in parts:
        counts[one.phase] += _tasks(record)
    leader, whole = min(parts, key=lambda part: _rank(part[1].phase))
    is_array = leader.array_job_id is not None
    if is_array:
        whole = _whole([one for _, one in parts], whole, counted)
    return Seen(
        job_id=leader.array_job_id or leader.id,
        shown=whole,
        user=leader.user[:LONGEST],
        account=leader.account[:LONGEST],
        partition=leader.partition[:LONGEST],
        nodes=leader.node_list[:LONGEST],
        slurm_reason=leader.state_reason[:LONGEST],
        submit_time=leader.submit_time,
        start_time=min((one.start_time for one, _ in parts if one.start_time is not None), default=None),
        end_time=max((one.end_time for one, _ in parts if one.end_time is not None), default=None),
        restarts=leader.restarts or 0,
        array=_counts(counts, counted) if is_array else None,
    )


def _begun(record: JobRecord) -> float:
    return record.submit_time.timestamp() if record.submit_time is not None else 0.0


def _shown(job: Job) -> Shown:
    return shown(
        job.state, exit_code=job.exit_code, slurms_reason=job.state_reason, hold=job.hold, restarts=job.restarts
    )


def _tasks(job: Job | JobRecord) -> int:
    """How many tasks a record stands for: those that have not been started have one, also once they are cancelled."""
    if not job.array_tasks or job.array_task_id is not None:
        return 1
    try:
        if job.array_tasks.startswith(_BITMAP):
            return max(1, int(job.array_tasks, 16).bit_count())
        return len(ArrayTasks.parse(job.array_tasks))
    except ValueError:
        # Cut by slurmctld where there are many: as many as can be counted.
        return max(1, job.array_tasks.count(",") + 1)


def _rank(phase: Phase) -> int:
    return _ORDER.index(phase) if phase in _ORDER else len(_ORDER)


def _whole(parts: Sequence[Shown], leader: Shown, counted: ArrayCounts | None) -> Shown:
    """The state of an array: that of its liveliest task, or that of the first which failed once all have ended."""
    if not leader.is_finished:
        return leader
    failed = [one for one in parts if one.phase is Phase.FAILED]
    if failed:
        worst = max(failed, key=lambda one: one.exit_code or 0)
        return replace(worst, message=f"{worst.message}; tasks of the array have failed")
    if counted is not None and counted.failed:
        return Shown(Phase.FAILED, Reason.FAILED, "tasks of the array have failed", leader.exit_code)
    return leader


def _counts(counts: Counter[Phase], counted: ArrayCounts | None) -> ArrayCounts:
    before = counted or ArrayCounts()
    return ArrayCounts(
        pending=counts[Phase.PENDING],
        running=counts[Phase.RUNNING] + counts[Phase.SUSPENDED] + counts[Phase.ENDING] + counts[Phase.UNKNOWN],
        succeeded=max(before.succeeded, counts[Phase.SUCCEEDED]),
        failed=max(before.failed, counts[Phase.FAILED]),
    )
