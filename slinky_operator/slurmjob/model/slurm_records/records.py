"""Slurm's records of one job, or of the tasks of an array, as one. Pure.

slurmctld forgets tasks of an array one by one while others still run, and tasks that are cancelled before they start at
once. So the tasks whose end was seen before are passed in. A task that runs again is taken off them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import MAX_TASKS, ArrayCounts, ArrayTasks
from slinky_operator.jobs.phases import Phase, Reason, Shown, shown
from slinky_operator.jobs.task_sets import Reader, TaskSet, union
from slinky_operator.slurmjob.model.slurm_records import components
from slurm_client.models import Job, JobRecord
from slurm_client.notation import hostlist

LONGEST: Final = 512
"""Characters of a text of Slurm's that is repeated."""

LONGEST_LIST: Final = 65_536
"""Characters of the list of nodes of one of several components that are read."""

HELD_BY_USER: Final = "JobHeldUser"
HELD_BY_ADMIN: Final = "JobHeldAdmin"
"""Slurm's words for who holds a job; a user cannot release what an administrator holds."""

ROOM: Final = 32
"""Characters that a list of tasks still has room for if nothing was left out of it."""

_NO_FILE: Final = frozenset({"", "/dev/null"})

_HELD: Final = frozenset({HELD_BY_USER, HELD_BY_ADMIN})

CANCELLED: Final = frozenset({Reason.CANCELLED, Reason.REVOKED})
"""Ends that somebody wanted: the user, an administrator, or a federation that runs the job in another cluster."""

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
    deadline: datetime | None = None
    """When Slurm will end it; None where that is not known, or never."""
    restarts: int = 0
    array: ArrayCounts | None = None
    tasks: ArrayTasks | None = None
    """Of an array, the tasks whose end was seen."""
    output: str = ""
    is_held: bool = False
    """Whether Slurm keeps it, or tasks of it, from starting, or from starting again."""
    is_cancelled: bool = False
    """Whether it, or a task of it, was cancelled."""
    broken: Shown | None = None
    """The end of a component of a heterogeneous job that others have outlived."""

    @property
    def is_finished(self) -> bool:
        """Whether all of it has ended."""
        return self.shown.is_finished

    @property
    def unseen(self) -> int:
        """Of an array that has ended, as far as Slurm lists it, the number of tasks whose end was not seen."""
        if self.array is None or self.tasks is None or self.tasks.total is None or not self.is_finished:
            return 0
        return max(0, self.tasks.total - self.array.succeeded - self.array.failed)


def of_queue(
    jobs: Sequence[Job],
    counted: ArrayCounts | None = None,
    tasks: ArrayTasks | None = None,
    texts: Reader | None = None,
) -> Seen | None:
    """What slurmctld says; None if it has no record.

    Parameters
    ----------
    jobs
        All records of the job.
    counted, tasks
        What was counted of an array when last looked, and which of its tasks had ended.
    texts
        Room for what the records call tasks; None for that of one job.
    """
    if not jobs:
        return None
    parts = [(job, _shown(job)) for job in jobs]
    leader, whole = min(parts, key=lambda part: _rank(part[1].phase))
    is_cancelled = any(one.reason in CANCELLED for _, one in parts)
    array, noted = None, None
    if any(job.array_job_id is not None for job in jobs):
        known = counted or ArrayCounts()
        array, noted = _counted(parts, known, tasks or ArrayTasks(), texts or Reader(), is_cancelled=is_cancelled)
        whole = _whole([one for _, one in parts], whole, array)
    broken = None
    if leader.het_job_id is not None:
        whole, broken = components.whole([(job.end_time, one) for job, one in parts])
    starts = [job.start_time for job in jobs if job.start_time is not None]
    ends = [job.end_time for job in jobs if job.end_time is not None]
    return Seen(
        job_id=leader.array_job_id or leader.het_job_id or leader.id,
        shown=whole,
        user=leader.user[:LONGEST],
        account=leader.account[:LONGEST],
        partition=leader.partition[:LONGEST],
        nodes=_nodes(jobs if leader.het_job_id is not None else [leader]),
        slurm_reason=leader.state_reason[:LONGEST],
        submit_time=leader.submit_time,
        start_time=min(starts, default=None),
        end_time=max(ends, default=None) if whole.is_finished else None,
        deadline=_deadline(jobs) if whole.phase is Phase.RUNNING else None,
        restarts=max(job.restarts for job in jobs),
        array=array,
        tasks=noted,
        output=leader.standard_output_expanded[:LONGEST],
        is_held=any(job.hold or job.state_reason in _HELD for job in jobs),
        is_cancelled=noted.cancelled if noted is not None else is_cancelled,
        broken=broken,
    )


def _deadline(jobs: Sequence[Job]) -> datetime | None:
    """When Slurm will end the first of the records that run: slurmctld shows that as the end of what has not ended."""
    limited = (job for job in jobs if job.preempt_time is not None or isinstance(job.time_limit, timedelta))
    return min((job.end_time for job in limited if job.end_time is not None), default=None)


def of_history(
    records: Sequence[JobRecord], counted: ArrayCounts | None = None, tasks: ArrayTasks | None = None
) -> Seen | None:
    """What slurmdbd says of the last run of each part; None if it has no record."""
    last: dict[int, JobRecord] = {}
    for record in records:
        before = last.get(record.id)
        if before is None or _begun(record) >= _begun(before):
            last[record.id] = record
    if not last:
        return None
    parts = [
        (
            record,
            shown(
                record.state,
                exit_code=record.exit_code,
                slurms_reason=record.state_reason,
                files=_files(record),
            ),
        )
        for record in last.values()
    ]
    leader, whole = min(parts, key=lambda part: _rank(part[1].phase))
    is_cancelled = any(one.reason in CANCELLED for _, one in parts)
    array, noted = None, None
    if leader.array_job_id is not None:
        known = counted or ArrayCounts()
        array, noted = _counted(parts, known, tasks or ArrayTasks(), Reader(), is_cancelled=is_cancelled)
        whole = _whole([one for _, one in parts], whole, array)
    if leader.het_job_id is not None:
        whole, _ = components.whole([(record.end_time, one) for record, one in parts])
    return Seen(
        job_id=leader.array_job_id or leader.het_job_id or leader.id,
        shown=whole,
        user=leader.user[:LONGEST],
        account=leader.account[:LONGEST],
        partition=leader.partition[:LONGEST],
        nodes=_nodes(list(last.values()) if leader.het_job_id is not None else [leader]),
        slurm_reason=leader.state_reason[:LONGEST],
        submit_time=leader.submit_time,
        start_time=min((one.start_time for one, _ in parts if one.start_time is not None), default=None),
        end_time=max((one.end_time for one, _ in parts if one.end_time is not None), default=None),
        restarts=leader.restarts or 0,
        array=array,
        tasks=noted,
        is_cancelled=noted.cancelled if noted is not None else is_cancelled,
    )


def _nodes(parts: Sequence[Job | JobRecord]) -> str:
    """The nodes of one record, or of the components of a heterogeneous job."""
    ordered = sorted(parts, key=lambda part: part.het_job_offset or 0)
    return hostlist.shorten(",".join(part.node_list[:LONGEST_LIST] for part in ordered if part.node_list), LONGEST)


def _begun(record: JobRecord) -> float:
    return record.submit_time.timestamp() if record.submit_time is not None else 0.0


def _shown(job: Job) -> Shown:
    return shown(
        job.state,
        exit_code=job.exit_code,
        slurms_reason=job.state_reason,
        hold=job.hold,
        restarts=job.restarts,
        files=_files(job),
    )


def _files(part: Job | JobRecord) -> str:
    """Output, error and input of a job, where they are files of their own."""
    named = {
        "output": part.standard_output_expanded,
        "error": part.standard_error_expanded,
        "input": part.standard_input_expanded,
    }
    kinds: dict[str, str] = {}
    for kind, path in named.items():
        if path not in _NO_FILE:
            _ = kinds.setdefault(path[:LONGEST], kind)
    return ", ".join(f"{kind} {path}" for path, kind in kinds.items())


def _tasks(part: Job | JobRecord, texts: Reader) -> TaskSet:
    """The tasks of a record: one, or all of those that have not started."""
    if part.array_task_id is not None:
        return TaskSet.of([part.array_task_id])
    return texts.read(part.array_tasks)


def _rank(phase: Phase) -> int:
    return _ORDER.index(phase) if phase in _ORDER else len(_ORDER)


def _whole(parts: Sequence[Shown], leader: Shown, counts: ArrayCounts) -> Shown:
    """The state of an array: that of its liveliest task, or that of the first which failed once all have ended."""
    if not leader.is_finished:
        return leader
    failed = [part for part in parts if part.phase is Phase.FAILED]
    if failed:
        worst = max(failed, key=lambda one: one.exit_code or 0)
        return replace(worst, message=f"{worst.message}; tasks of the array have failed")
    if counts.failed:
        return Shown(Phase.FAILED, Reason.FAILED, "tasks of the array have failed", leader.exit_code)
    return leader


def _counted(
    parts: Sequence[tuple[Job | JobRecord, Shown]],
    counted: ArrayCounts,
    tasks: ArrayTasks,
    texts: Reader,
    *,
    is_cancelled: bool,
) -> tuple[ArrayCounts, ArrayTasks]:
    """Count the tasks of an array: those that are listed now, and those whose end was seen before."""
    counts: Counter[Phase] = Counter()
    now: dict[Phase, list[TaskSet]] = defaultdict(list)
    for part, one in parts:
        named = _tasks(part, texts)
        # Slurm cuts long lists: then there are more than can be counted.
        counts[one.phase] += max(1, len(named))
        now[one.phase if one.is_finished else Phase.RUNNING].append(named)
    succeeded, failed, live = (union(now[phase]) for phase in (Phase.SUCCEEDED, Phase.FAILED, Phase.RUNNING))
    all_succeeded = (TaskSet.read(tasks.succeeded) | succeeded) - live - failed
    all_failed = (TaskSet.read(tasks.failed) | failed) - live - succeeded
    seen = all_succeeded | all_failed | live
    known = ArrayTasks(
        # Those of which only a number is known may be among the others: they count where nothing else is known.
        total=max(tasks.total or 0, len(seen) - (seen.unlisted if tasks.total else 0)) or None,
        succeeded=all_succeeded.written(MAX_TASKS),
        failed=all_failed.written(MAX_TASKS),
        cancelled=tasks.cancelled or is_cancelled,
    )
    # A list that has no room for all tasks is no reason to count down.
    is_full = max(len(tasks.succeeded), len(tasks.failed)) > MAX_TASKS - ROOM
    return ArrayCounts(
        pending=counts[Phase.PENDING],
        running=counts[Phase.RUNNING] + counts[Phase.SUSPENDED] + counts[Phase.ENDING] + counts[Phase.UNKNOWN],
        succeeded=max(len(all_succeeded), counted.succeeded if is_full else 0),
        failed=max(len(all_failed), counted.failed if is_full else 0),
    ), known
