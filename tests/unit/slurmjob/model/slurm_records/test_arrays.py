"""Tasks of an array that slurmctld forgets one by one, while others still run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import MAX_TASKS, ArrayCounts, ArrayTasks, SlurmJob
from slinky_operator.jobs.phases import Phase
from slinky_operator.jobs.phases import Reason as ShownReason
from slinky_operator.jobs.task_sets import Array
from slinky_operator.jobs.tenants import Grant
from slinky_operator.slurmjob.model import report
from slinky_operator.slurmjob.model.news import Record
from slinky_operator.slurmjob.model.plan import plan, without_history
from slinky_operator.slurmjob.model.slurm_records import arrays, records
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import History, Looked, Snapshot
from slinky_operator.slurmjob.model.stages import attempts
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE
from slinky_operator.slurmjob.model.steps import AskHistory, Plan
from slurm_client.models import Job, JobRecord
from slurm_client.models.job import ExitCode, JobState

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ARRAY = 100


def task(index: int, state: str, code: int | None = None) -> Job:
    return Job(
        id=ARRAY + 1 + index,
        array_job_id=ARRAY,
        array_task_id=index,
        state=JobState(state),
        user="alice",
        exit_code=ExitCode(return_code=code),
    )


def waiting(tasks: str, state: str = "PENDING") -> Job:
    return Job(id=ARRAY, array_job_id=ARRAY, array_tasks=tasks, state=JobState(state), user="alice")


def ended(index: int, state: str = "COMPLETED", code: int = 0) -> JobRecord:
    """What slurmdbd has of a task."""
    return JobRecord(
        id=ARRAY + 1 + index,
        array_job_id=ARRAY,
        array_task_id=index,
        state=JobState(state),
        user="alice",
        submit_time=NOW,
        exit_code=ExitCode(return_code=code),
    )


def look(jobs: Sequence[Job], before: Seen | None = None, total: int | None = None) -> Seen:
    """What slurmctld's list shows after what was seen before."""
    counted, tasks = (before.array, before.tasks) if before is not None else (None, ArrayTasks(total=total))
    seen = records.of_queue(jobs, counted, tasks)
    assert seen is not None
    return seen


def counts(seen: Seen) -> tuple[int, int, int, int]:
    assert seen.array is not None
    return seen.array.pending, seen.array.running, seen.array.succeeded, seen.array.failed


def one_by_one(number: int) -> Seen:
    """An array whose tasks run one after another; slurmctld has forgotten all but the last that has ended."""
    seen = look([waiting(f"0-{number - 1}%1")])
    for index in range(number):
        jobs = [task(index, "RUNNING")]
        jobs += [task(index - 1, "COMPLETED", 0)] if index else []
        jobs += [waiting(f"{index + 1}-{number - 1}%1")] if index + 1 < number else []
        seen = look(jobs, seen)
        assert counts(seen) == (number - 1 - index, 1, index, 0)
    return look([task(number - 1, "COMPLETED", 0)], seen)


def test_every_task_that_was_seen_counts() -> None:
    seen = one_by_one(300)
    assert counts(seen) == (0, 0, 300, 0)
    assert seen.tasks == ArrayTasks(total=300, succeeded="0-299")
    assert (seen.shown.phase, seen.unseen) == (Phase.SUCCEEDED, 0)


def test_a_task_that_failed_is_not_forgotten() -> None:
    seen = look([task(0, "FAILED", 3), task(1, "RUNNING")], total=2)
    seen = look([task(1, "COMPLETED", 0)], seen)
    assert (seen.shown.phase, counts(seen)) == (Phase.FAILED, (0, 0, 1, 1))


def test_a_task_that_runs_again_has_not_ended() -> None:
    seen = look([task(0, "FAILED", 3), task(1, "RUNNING")], total=2)
    seen = look([task(0, "PENDING"), task(1, "RUNNING")], seen)
    assert counts(seen) == (1, 1, 0, 0)
    seen = look([task(0, "COMPLETED", 0), task(1, "COMPLETED", 0)], seen)
    assert (seen.shown.phase, counts(seen)) == (Phase.SUCCEEDED, (0, 0, 2, 0))


def test_all_tasks_of_a_record_count() -> None:
    seen = look([task(0, "COMPLETED", 0), waiting("1-2,7%2", "CANCELLED")], total=4)
    assert (counts(seen), seen.is_cancelled) == ((0, 0, 1, 3), True)


def test_a_list_without_room_for_all_tasks_is_no_reason_to_count_down() -> None:
    indices = range(0, 4000, 2)
    seen = look([task(index, "COMPLETED", 0) for index in indices] + [task(1, "RUNNING")], total=2001)
    assert seen.tasks is not None
    assert MAX_TASKS - 8 < len(seen.tasks.succeeded) <= MAX_TASKS
    assert counts(look([task(1, "RUNNING")], seen)) == (0, 1, 2000, 0)


@pytest.mark.parametrize(
    ("array", "total"), [(None, None), ("0-9:3%2", 4), ("0-2,2-4", 5), ("0-4000000:2", 2_000_001), ("0-3,,7,", 5)]
)
def test_the_number_of_tasks_is_noted_before_the_submission(array: str | None, total: int | None) -> None:
    noted = arrays.begun(Array.read(array) if array is not None else None)
    assert (noted.total if noted is not None else None) == total


def test_tasks_for_which_there_are_too_many_ranges_are_counted() -> None:
    seen = look([waiting("0-4000000:2"), task(1, "COMPLETED", 0)], total=2_000_002)
    assert (counts(seen), seen.tasks and seen.tasks.total) == ((2_000_001, 0, 1, 0), 2_000_002)
    seen = look([waiting("0-4000000:2"), task(1, "RUNNING")])
    assert (counts(seen), seen.tasks and seen.tasks.total) == ((2_000_001, 1, 0, 0), 2_000_002)


def job(tasks: Seen | None = None, **spec: object) -> SlurmJob:
    status = {"jobId": ARRAY, "state": "Running", "submission": {"attempt": 0, "answeredAt": NOW, "startedAt": NOW}}
    made = SlurmJob.model_validate(
        {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": "a", "namespace": "team", "uid": "u", "generation": 1},
            "spec": {"clusterName": "slurm", "script": "#!/bin/sh\n", "array": "0-2", **spec},
            "status": status,
        }
    )
    if tasks is None:
        return made
    changes = {"array": tasks.array, "tasks": tasks.tasks}
    return made.model_copy(update={"status": made.status.model_copy(update=changes)})


CLUSTER = Cluster.model_validate({"metadata": {"name": "slurm", "namespace": "team", "uid": "c"}, "spec": {}})


def snapshot(
    seen: Seen | None, *, history: History | None = None, keeps: bool = True, waited: bool = False
) -> Snapshot:
    return Snapshot(
        job=job(seen, backoffLimit=3),
        now=NOW + timedelta(hours=1),
        cluster=CLUSTER,
        granted=Grant("alice"),
        obstacle=None,
        looked=Looked(NOW + timedelta(hours=1), seen),
        keeps_history=keeps,
        history=history,
        missing_since=NOW + timedelta(hours=1) - HISTORY_PATIENCE * waited,
    )


LACKING = look([task(2, "COMPLETED", 0)], look([task(0, "RUNNING"), waiting("1-2")], total=3))
"""The operator was away when tasks 0 and 1 ended."""


def told(*tasks: JobRecord) -> History:
    return History(records.of_history(tasks, LACKING.array, LACKING.tasks))


def record(planned: Plan) -> Record:
    """What a plan shows that Slurm says."""
    assert isinstance(planned.news, Record)
    return planned.news


def test_slurmdbd_is_asked_for_tasks_whose_end_was_not_seen() -> None:
    assert (LACKING.unseen, arrays.is_lacking(LACKING)) == (2, True)
    assert plan(snapshot(LACKING)).step == AskHistory()
    shown = record(plan(snapshot(LACKING, history=told(ended(0), ended(1, "FAILED", 4))))).seen
    assert (shown.shown.reason, shown.shown.exit_code, counts(shown)) == (ShownReason.EXIT_CODE, 4, (0, 0, 2, 1))


def test_slurmdbd_has_time_to_hear_of_them() -> None:
    late = plan(snapshot(LACKING, history=told(ended(0), ended(1, "RUNNING"))))
    assert (record(late).seen.shown.phase, late.wake is not None) == (Phase.ENDING, True)
    assert record(late).seen.tasks == LACKING.tasks
    away = record(without_history(snapshot(LACKING), NOW))
    assert away.note is not None
    assert away.note.reason is Reason.ACCOUNTING_DOWN
    status = report.status(snapshot(LACKING), away)
    assert (status.state, status.tasks) == ("Ending", LACKING.tasks)


def test_what_slurmdbd_does_not_know_was_cancelled_before_it_started() -> None:
    known = told(ended(0), ended(2))
    early = record(plan(snapshot(LACKING, history=known))).seen
    assert early.shown.phase is Phase.ENDING
    planned = record(plan(snapshot(LACKING, history=known, waited=True)))
    assert not planned.is_followed
    assert (planned.seen.shown.phase, planned.seen.shown.reason) == (Phase.FAILED, ShownReason.CANCELLED)
    assert counts(planned.seen) == (0, 0, 2, 1)
    assert "tasks of the array were cancelled before they started (1 of 3)" in planned.seen.shown.message


def test_after_the_last_record_is_gone_slurmdbd_is_asked_for_all() -> None:
    """slurmctld lists nothing of the array any more."""
    waits = replace(snapshot(None, history=told(ended(0), ended(2))), job=job(LACKING))
    assert record(plan(waits)).seen.shown.phase is Phase.ENDING
    seen = record(plan(replace(waits, history=told(ended(0), ended(1), ended(2))))).seen
    assert (seen.shown.phase, counts(seen)) == (Phase.SUCCEEDED, (0, 0, 3, 0))


def test_without_accounting_it_is_said_what_is_known_at_least() -> None:
    planned = plan(snapshot(LACKING, keeps=False))
    status = report.status(snapshot(LACKING, keeps=False), planned.news)
    assert (status.state, status.reason) == ("Unknown", "EndNotSeen")
    assert status.array == ArrayCounts(succeeded=1)
    finished = find(status.conditions, SlurmJobCondition.FINISHED)
    assert finished is not None
    assert finished.status == "True"
    assert "2 of its tasks" in finished.message
    assert "at least 1 have succeeded" in finished.message


def test_without_accounting_a_failure_that_was_seen_is_certain() -> None:
    seen = look([task(2, "FAILED", 3)], LACKING)
    planned = record(plan(snapshot(seen, keeps=False)))
    assert (planned.seen.shown.phase, planned.seen.shown.exit_code, planned.is_followed) == (Phase.FAILED, 3, False)
    assert "at least 1 have failed" in planned.seen.shown.message


def test_nobody_submits_again_what_somebody_has_cancelled() -> None:
    some = look([task(0, "FAILED", 3), task(1, "CANCELLED"), task(2, "COMPLETED", 0)], total=3)
    assert some.shown.reason is ShownReason.EXIT_CODE
    assert not attempts.is_followed(job(backoffLimit=1), some)
    gone = look([task(0, "FAILED", 3)], look([task(1, "CANCELLED"), task(2, "COMPLETED", 0), task(0, "RUNNING")]))
    assert not attempts.is_followed(job(backoffLimit=1), gone)
    failed = look([task(0, "FAILED", 3), task(1, "FAILED", 1), task(2, "COMPLETED", 0)], total=3)
    assert attempts.is_followed(job(backoffLimit=1), failed)


def test_a_job_that_runs_in_another_cluster_is_not_submitted_again() -> None:
    seen = records.of_queue([Job(id=7, user="alice", state=JobState("CANCELLED", frozenset({"REVOKED"})))])
    assert seen is not None
    assert seen.shown.reason is ShownReason.REVOKED
    assert not attempts.is_followed(job(backoffLimit=2), seen)
