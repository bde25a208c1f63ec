"""Jobs that slurmctld has forgotten the end of: when slurmdbd is asked, what counts, what is said and what is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.spec import ForgottenJobs
from slinky_operator.nodeset.drain import forgotten_ends
from slinky_operator.nodeset.execute import end_jobs
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.actions import CancelForgotten
from slinky_operator.nodeset.model.pod_state import Draining, Ready, State
from slinky_operator.nodeset.report import forgotten
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnd, RecordedEnds, of_record
from slurm_client import errors
from slurm_client.models import Job
from slurm_client.models.database.history import JobRecord
from slurm_client.models.job import JobState
from tests.unit.nodeset.builders import NOW, a_pod, job, nodeset

STARTED = NOW - timedelta(hours=1)
ENDED = NOW - timedelta(minutes=5)
END = RecordedEnd("alice", STARTED, ENDED, "COMPLETED")


def running(number: int = 7, words: str = "RUNNING", **values: Any) -> Job:
    return job(words, number, **{"user": "alice", "start_time": STARTED, **values})


def draining(*jobs: Job, minutes: float = 3) -> Draining:
    return Draining(frozenset({Cause.SCALE_IN}), NOW - timedelta(minutes=minutes), jobs)


def record(number: int = 7, word: str = "COMPLETED", **values: Any) -> JobRecord:
    given = {"user": "alice", "start_time": STARTED, "end_time": ENDED, **values}
    return JobRecord(id=number, state=JobState.from_words([word]), **given)


# When slurmdbd is asked


def test_only_jobs_that_delay_a_drain_for_minutes_are_asked_about() -> None:
    ending = draining(running(3, "COMPLETING"))
    states: list[State] = [draining(running(1)), draining(running(2), minutes=1), Ready(), ending]
    asked = forgotten_ends.questions(states, RecordedEnds(), NOW)
    assert [one.id for one in asked] == [1]


def test_they_are_asked_about_once_a_minute_and_not_all_at_once() -> None:
    states = [draining(*(running(number) for number in range(1, 100)))]
    assert len(forgotten_ends.questions(states, RecordedEnds(), NOW)) == forgotten_ends.MOST
    assert not forgotten_ends.questions(states, RecordedEnds(NOW - timedelta(seconds=59)), NOW)
    assert forgotten_ends.questions(states, RecordedEnds(NOW - timedelta(seconds=60)), NOW)


# What counts


@pytest.mark.parametrize(
    ("shown", "end", "over"),
    [
        (running(), END, True),
        (running(words="SUSPENDED"), END, True),
        # slurmctld knows that it is ending.
        (running(words="COMPLETING"), END, False),
        # It was requeued, and this is its next run.
        (running(start_time=STARTED + timedelta(minutes=10)), END, False),
        # Its number was given again after slurmctld had lost its state.
        (running(user="bob"), END, False),
        # It has just ended: slurmctld cleans up after it.
        (running(), replace(END, ended_at=NOW - timedelta(seconds=119)), False),
        (running(8), END, False),
    ],
)
def test_only_an_end_of_this_very_run_counts(shown: Job, end: RecordedEnd, *, over: bool) -> None:
    found = forgotten_ends.forgotten([shown], RecordedEnds(NOW, {7: end}), NOW)
    assert found == ({7: end} if over else {})


@pytest.mark.parametrize(
    "shown",
    [record(word="RUNNING", end_time=None), record(word="RUNNING"), record(end_time=None), record(start_time=None)],
)
def test_a_record_without_an_end_shows_none(shown: JobRecord) -> None:
    assert of_record(shown) is None


def test_jobs_are_cancelled_only_if_the_spec_says_so() -> None:
    states, recorded = [draining(running(), running(8))], RecordedEnds(NOW, {7: END})
    assert forgotten_ends.to_cancel(states, recorded, {}, ForgottenJobs.REPORT, NOW) == ()
    assert forgotten_ends.to_cancel(states, recorded, {}, ForgottenJobs.CANCEL, NOW) == (running(),)


# What is said


@pytest.mark.parametrize(
    ("mode", "what"), [("Report", "scancel 7 ends them"), ("Cancel", "they are cancelled in slurmctld")]
)
def test_the_condition_names_the_jobs_and_what_to_do(mode: str, what: str) -> None:
    snapshot: Any = SimpleNamespace(
        pods=(a_pod(),), recorded=RecordedEnds(NOW, {7: END}), steps={}, nodeset=nodeset(drain={"forgottenJobs": mode})
    )
    assessment: Any = SimpleNamespace(states={"a-0": draining(running(), running(8))})
    ((reason, text, brief, nodes),) = forgotten.jobs(snapshot, assessment, NOW)
    assert reason == "JobEndForgotten"
    assert text == (
        f"slurmctld was killed and shows jobs as running that have ended; {what}: on a-0: job 7 "
        "(COMPLETED at 2026-01-01T11:55:00Z in slurmdbd)"
    )
    assert (brief, nodes) == ("jobs 7 have ended, and block drains", frozenset({"a-0"}))
    assessment.states = {"a-0": draining(running(8))}
    assert list(forgotten.jobs(snapshot, assessment, NOW)) == []


# What is done


class Slurm:
    """slurmctld and slurmdbd."""

    def __init__(self, shown: list[Job], records: dict[int, Any]) -> None:
        self.client = self.db = self
        self.shown, self.records = shown, records
        self.cancelled: list[int] = []
        self.time, self.takes = 0.0, 0.0
        self.now: list[Job] = shown

    async def fresh_jobs(self) -> list[Job]:
        self.time += self.takes
        return self.shown

    async def job(self, job_id: int, *, details: bool) -> Job:
        assert not details
        for one in self.now:
            if one.id == job_id:
                return one
        raise errors.NotFound(f"job {job_id}")

    async def job_records(self, job_id: int) -> list[JobRecord]:
        found = self.records.get(job_id, [])
        if isinstance(found, errors.SlurmError):
            raise found
        return list(found)

    async def cancel_job(self, job: Job) -> None:
        self.cancelled.append(job.id)


async def test_the_last_run_of_just_that_job_is_read() -> None:
    early = record(start_time=STARTED - timedelta(hours=1), word="NODE_FAIL")
    slurm: Any = Slurm([], {7: [early, record(), record(6, word="FAILED")], 8: [record(9)]})
    found = await slurm_queries.recorded_ends(slurm, [running(), running(8)], RecordedEnds(), NOW)
    assert found == RecordedEnds(NOW, {7: END})


@pytest.mark.parametrize("error", [errors.DatabaseDown("gone"), errors.NotSupported("no"), errors.Timeout("late")])
async def test_a_slurmdbd_that_is_away_delays_nothing_and_keeps_what_was_known(error: errors.SlurmError) -> None:
    slurm: Any = Slurm([], {7: [record()], 8: error})
    before = RecordedEnds(NOW - timedelta(minutes=5), {5: END})
    found = await slurm_queries.recorded_ends(slurm, [running(), running(8), running(9)], before, NOW)
    assert found == RecordedEnds(NOW, {5: END, 7: END})


@pytest.mark.parametrize(
    ("shown", "records", "cancelled"),
    [
        ([running()], {7: [record()]}, [7]),
        # It has gone, or runs again, by now.
        ([], {7: [record()]}, []),
        ([running(start_time=NOW)], {7: [record()]}, []),
        # slurmdbd takes it back, or is away.
        ([running()], {7: [record(word="RUNNING", end_time=None)]}, []),
        ([running()], {7: errors.DatabaseDown("gone")}, []),
    ],
)
async def test_both_are_asked_again_right_before_a_job_is_cancelled(
    shown: list[Job], records: dict[int, Any], cancelled: list[int]
) -> None:
    slurm = Slurm(shown, records)
    told: list[str] = []
    context = means_of(slurm, told)
    await end_jobs.cancel_forgotten(context, CancelForgotten((running(),)))
    assert slurm.cancelled == cancelled
    said = ["cancelled in slurmctld: job 7 (COMPLETED at 2026-01-01T11:55:00Z in slurmdbd)"] if cancelled else []
    assert told == said


def means_of(slurm: Slurm, told: list[str]) -> Any:
    return SimpleNamespace(
        reach=lambda: slurm,
        now=lambda: NOW,
        clock=lambda: slurm.time,
        outcome=PassOutcome(),
        steps={},
        warn=lambda reason, text: told.append(text),
    )


@pytest.mark.parametrize(
    ("now", "cancelled"),
    [([running()], [7]), ([running(start_time=NOW)], []), ([replace(running(), nodes=("b-0",))], []), ([], [])],
    ids=["as listed", "it runs again", "elsewhere", "gone"],
)
async def test_a_job_is_shown_again_where_the_list_took_minutes(now: list[Job], cancelled: list[int]) -> None:
    """It was requeued, and started again, after its record was read."""
    slurm = Slurm([running()], {7: [record()]})
    slurm.takes, slurm.now = 180.0, now
    await end_jobs.cancel_forgotten(means_of(slurm, []), CancelForgotten((running(),)))
    assert slurm.cancelled == cancelled


def test_what_was_learnt_is_remembered() -> None:
    memory = Memory()
    memory.note(None, RecordedEnds(NOW, {7: END}))
    memory.note(3.0, None)
    assert (memory.told_slurm_at, memory.recorded.ends) == (3.0, {7: END})
