"""A submission whose answer is not known is taken for a job of slurmdbd only if that was submitted at that time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.snapshot import History
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slurm_client import errors
from slurm_client.models import Job, JobRecord
from slurm_client.models.job import JobState

BEGUN = datetime(2026, 11, 23, 12, tzinfo=UTC)
MARK = Mark("uid-1", 0)
WANTED = slurm_calls.HistoryQuery(MARK, "alice", "hello", BEGUN)
OURS = JobRecord(
    id=7,
    user="alice",
    name="hello",
    extra=MARK.text,
    submit_time=BEGUN + timedelta(seconds=1),
    state=JobState.from_words(["COMPLETED"]),
)
FORGED = replace(OURS, id=6, name="forged", state=JobState.from_words(["FAILED"]))
"""A job of the same user in another namespace, which was given the mark."""


async def found(*records: JobRecord, wanted: slurm_calls.HistoryQuery = WANTED) -> History:
    class Database:
        async def jobs(self, start: datetime, *_: Any, **__: Any) -> tuple[JobRecord, ...]:
            return tuple(one for one in records if one.submit_time is None or one.submit_time >= start)

        async def job_records(self, number: int) -> tuple[JobRecord, ...]:
            return tuple(one for one in records if one.id == number)

    class Client:
        db = Database()

    return await slurm_calls.history(cast("Any", Client()), wanted, BEGUN + timedelta(hours=1))


async def number(*records: JobRecord) -> int | None:
    seen = (await found(*records)).seen
    return seen.job_id if seen is not None else None


async def test_two_jobs_with_the_mark_are_never_shown_as_one() -> None:
    history = await found(FORGED, OURS)
    assert history.seen is not None
    assert (history.seen.job_id, history.seen.shown.phase) == (7, "Succeeded")
    assert history.candidates == ()


@pytest.mark.parametrize("late", [timedelta(minutes=5), timedelta(minutes=-5), timedelta(minutes=-14)])
async def test_a_job_of_another_time_is_neither_taken_nor_taken_for_nothing(late: timedelta) -> None:
    other = replace(FORGED, name="hello", submit_time=BEGUN + late)
    assert await found(other) == History(candidates=(6,))
    assert await number(other, OURS) == 7


async def test_a_renamed_job_is_found_all_the_same() -> None:
    assert await number(replace(OURS, name="renamed", account="other")) == 7


async def test_a_job_that_was_requeued_hours_later_is_found() -> None:
    again = replace(OURS, submit_time=BEGUN + timedelta(hours=2), state=JobState.from_words(["FAILED"]))
    history = await found(OURS, again)
    assert history.seen is not None
    assert (history.seen.job_id, history.seen.shown.phase) == (7, "Failed")


async def test_tasks_of_an_array_are_one_job() -> None:
    tasks = [replace(OURS, id=7 + task, array_job_id=7, array_task_id=task) for task in range(3)]
    history = await found(*tasks)
    assert history.seen is not None
    assert history.seen.array is not None
    assert (history.seen.job_id, history.seen.array.succeeded) == (7, 3)


async def test_the_slowest_call_is_waited_for() -> None:
    assert await number(replace(OURS, submit_time=BEGUN + SETTLED)) == 7


async def test_without_marks_the_name_makes_a_candidate() -> None:
    assert await found(replace(OURS, extra="")) == History(candidates=(7,))
    assert await found(replace(OURS, extra="", name="other")) == History()
    assert await found(replace(OURS, user="bob")) == History()


async def test_the_record_of_another_slurmjob_with_the_same_number_is_not_its_own() -> None:
    """slurmctld has forgotten the job with its state, and given its number to a later one of the same user."""
    known = replace(WANTED, job_id=7)
    begun = replace(OURS, state=JobState.from_words(["RUNNING"]))
    for mark in (Mark("another", 0), Mark(MARK.uid, MARK.attempt + 1)):
        later = replace(OURS, extra=mark.text, submit_time=BEGUN + timedelta(seconds=22))
        seen = (await found(begun, later, wanted=known)).seen
        assert seen is not None
        assert seen.shown.phase == "Running"
        assert (await found(later, wanted=known)).seen is None


async def test_of_two_jobs_that_had_the_number_the_one_with_the_mark_counts() -> None:
    """slurmctld has forgotten the job, and given its number to one that its user submitted by hand."""
    lost = replace(OURS, state=JobState.from_words(["RUNNING"]))
    later = replace(OURS, extra="", submit_time=BEGUN + timedelta(seconds=22))
    seen = (await found(lost, later, wanted=replace(WANTED, job_id=7))).seen
    assert seen is not None
    assert seen.shown.phase == "Running"


async def test_a_known_job_whose_user_has_changed_its_mark_is_its_own() -> None:
    seen = (await found(replace(OURS, extra="mine"), wanted=replace(WANTED, job_id=7))).seen
    assert seen is not None
    assert seen.shown.phase == "Succeeded"


@pytest.mark.parametrize(
    ("parts", "attempt", "is_ours"),
    [
        ([{}], 0, True),
        ([{}], None, True),
        ([{}], 1, False),
        ([{"extra": ""}], 0, False),
        ([{"user": "bob"}], 0, False),
        ([{"state": "COMPLETED"}], 0, False),
        ([{"extra": "its user's"}, {}], 0, True),
        ([], 0, False),
    ],
)
async def test_whose_a_number_is_before_an_order(
    parts: list[dict[str, str]], attempt: int | None, *, is_ours: bool
) -> None:
    class Client:
        async def job_parts(self, *_: Any, **__: Any) -> tuple[Job, ...]:
            given = [{"extra": MARK.text, "user": "alice", "state": "RUNNING", **one} for one in parts]
            if not given:
                raise errors.NotFound("no such job")
            return tuple(
                Job(id=7, user=one["user"], extra=one["extra"], state=JobState.from_words([one["state"]]))
                for one in given
            )

    assert await slurm_calls.is_still_of(cast("Any", Client()), 7, "alice", MARK.uid, attempt) is is_ours
