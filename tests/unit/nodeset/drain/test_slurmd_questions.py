"""What slurmds prove about jobs that slurmctld shows, and about nodes that it has forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.nodeset.drain import forgotten_ends, slurmd_questions
from slinky_operator.nodeset.execute import end_jobs
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.execute.queries import pod_queries
from slinky_operator.nodeset.model.actions import CancelForgotten, StepQuestion
from slinky_operator.nodeset.model.pod_state import Doubt, Draining, State, Unknown
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.slurm.connection.slurmd_status import NoStatus, SlurmdStatus
from slurm_client import errors
from slurm_client.models import Job
from tests.unit.nodeset.builders import NOW, a_pod, job

LONG_AGO = NOW - timedelta(hours=1)
POD = a_pod(address="10.0.0.1")
OTHER = a_pod(name="a-1", uid="v", address="10.0.0.2")


def ago(**values: float) -> datetime:
    return NOW - timedelta(**values)


def batch(number: int = 7, words: str = "RUNNING", **values: Any) -> Job:
    made = job(words, number, user="alice", start_time=LONG_AGO, batch=True)
    return replace(made, **values)


def status(*jobs: int, started: datetime = LONG_AGO, heard: datetime | None = None, node: str = "a-0") -> SlurmdStatus:
    return SlurmdStatus(node, started, heard, frozenset(jobs))


def draining(*jobs: Job) -> dict[str, State]:
    return {"a-0": Draining(frozenset({Cause.SCALE_IN}), ago(minutes=3), jobs)}


def snapshot(*pods: Any, steps: dict[str, StepsSeen] | None = None) -> Any:
    return SimpleNamespace(pods=pods or (POD,), steps=steps or {})


def seen_for(minutes: float, *asked: int) -> StepsSeen:
    first = running_steps.after(None, status(), asked, ago(minutes=minutes))
    return running_steps.after(first, status(), asked, NOW)


# Who is asked


def test_slurmds_of_forgotten_nodes_and_those_with_late_batch_jobs_are_asked() -> None:
    lost: dict[str, State] = {"a-1": Unknown("", Doubt.FORGOTTEN)}
    asked = slurmd_questions.questions(snapshot(POD, OTHER), {**draining(batch()), **lost}, NOW)
    assert asked == (StepQuestion(POD, frozenset({7})), StepQuestion(OTHER))


def test_each_is_asked_once_a_minute_and_not_all_at_once() -> None:
    pods = [a_pod(name=f"a-{number}", uid=f"u{number}", address="10.0.0.1") for number in range(99)]
    states: dict[str, State] = {pod.name: Unknown("", Doubt.FORGOTTEN) for pod in pods}
    first = slurmd_questions.questions(snapshot(*pods), states, NOW)
    assert len(first) == slurmd_questions.MOST
    steps = {one.pod.uid: running_steps.unanswered("", ago(seconds=59)) for one in first}
    second = slurmd_questions.questions(snapshot(*pods, steps=steps), states, NOW)
    assert not {one.pod.uid for one in first} & {one.pod.uid for one in second}


@pytest.mark.parametrize(
    "shown",
    [
        batch(batch=False),
        batch(words="SUSPENDED"),
        batch(words="COMPLETING"),
        batch(start_time=ago(minutes=9)),
        batch(het_job_id=7),
        # A node of another NodeSet cannot be asked.
        batch(nodes=("a-0", "b-0")),
    ],
)
def test_of_these_jobs_nothing_can_be_proven(shown: Job) -> None:
    assert slurmd_questions.questions(snapshot(), draining(shown), NOW) == ()
    assert slurmd_questions.gone(snapshot(steps={"u": seen_for(5, 7)}), [shown], NOW) == {}


# What counts


@pytest.mark.parametrize(
    ("steps", "proven"),
    [
        (seen_for(2, 7), True),
        (seen_for(1.9, 7), False),
        # It was not asked about this job.
        (seen_for(5, 8), False),
        (running_steps.after(seen_for(5, 7), status(7), [7], NOW), False),
        # Another slurmd has answered by now.
        (running_steps.after(seen_for(5, 7), status(started=ago(minutes=1)), [7], NOW), False),
        (running_steps.unanswered("away", NOW), False),
        (replace(seen_for(5, 7), asked_at=ago(minutes=4)), False),
        (None, False),
    ],
)
def test_only_answers_without_a_step_over_minutes_prove_an_end(steps: StepsSeen | None, *, proven: bool) -> None:
    found = slurmd_questions.gone(snapshot(steps={"u": steps} if steps else {}), [batch()], NOW)
    assert (7 in found) is proven


def test_each_node_of_a_job_must_show_it() -> None:
    both = batch(nodes=("a-0", "a-1"))
    one = {"u": seen_for(5, 7)}
    assert slurmd_questions.gone(snapshot(POD, OTHER, steps=one), [both], NOW) == {}
    assert slurmd_questions.gone(snapshot(POD, OTHER, steps={**one, "v": seen_for(3, 7)}), [both], NOW) == {
        7: ago(minutes=3)
    }


def test_an_absence_from_before_its_start_proves_nothing_of_this_run() -> None:
    assert slurmd_questions.gone(snapshot(steps={"u": seen_for(70, 7)}), [batch()], NOW) == {}


def test_a_node_to_which_slurmctld_has_spoken_is_not_idle_yet() -> None:
    first = running_steps.after(None, status(heard=LONG_AGO), (), ago(minutes=5))
    assert running_steps.is_idle(running_steps.after(first, status(heard=LONG_AGO), (), NOW), NOW)
    assert not running_steps.is_idle(running_steps.after(first, status(heard=ago(minutes=4)), (), NOW), NOW)


def test_it_is_said_what_shows_the_end() -> None:
    found = forgotten_ends.over([batch()], RecordedEnds(), {7: ago(minutes=3)}, NOW)
    assert forgotten_ends.told(found) == "job 7 (slurmd has no step of it since 2026-01-01T11:57:00Z)"


# What is done


class Slurm:
    """slurmctld without accounting, and the slurmds."""

    def __init__(self, shown: list[Job], answers: dict[str, SlurmdStatus]) -> None:
        self.client = self.db = self
        self.shown, self.answers = shown, answers
        self.cancelled: list[int] = []

    async def fresh_jobs(self) -> list[Job]:
        return self.shown

    async def job_records(self, job_id: int) -> list[Any]:
        raise errors.NotSupported("there is no accounting")

    async def steps_at(self, address: str) -> SlurmdStatus:
        if address not in self.answers:
            raise NoStatus("nobody listens")
        return self.answers[address]

    async def cancel_job(self, job: Job) -> None:
        self.cancelled.append(job.id)


def context(slurm: Slurm, steps: dict[str, StepsSeen]) -> Any:
    outcome = PassOutcome()
    return SimpleNamespace(
        reach=lambda: slurm,
        now=lambda: NOW,
        clock=lambda: 0.0,
        outcome=outcome,
        steps=steps,
        unseen=False,
        warn=lambda *_: None,
    )


@pytest.mark.parametrize(
    ("shown", "answers", "cancelled"),
    [
        ([batch()], {"10.0.0.1": status()}, [7]),
        ([batch()], {"10.0.0.1": status(7)}, []),
        ([batch()], {"10.0.0.1": status(node="b-0")}, []),
        ([batch()], {}, []),
        ([], {"10.0.0.1": status()}, []),
        ([batch(start_time=NOW)], {"10.0.0.1": status()}, []),
    ],
    ids=["gone", "a step after all", "another node", "no answer", "slurmctld knows", "it runs again"],
)
async def test_slurmds_are_asked_again_before_a_job_is_cancelled(
    shown: list[Job], answers: dict[str, SlurmdStatus], cancelled: list[int]
) -> None:
    slurm = Slurm(shown, answers)
    await end_jobs.cancel_forgotten(context(slurm, {"u": seen_for(5, 7)}), CancelForgotten((batch(),), (POD,)))
    assert slurm.cancelled == cancelled


async def test_slurmds_are_asked_again_before_a_pod_of_a_lost_node_is_deleted() -> None:
    steps = {"u": seen_for(5), "v": seen_for(1)}
    slurm = Slurm([], {"10.0.0.1": status(), "10.0.0.2": status(node="a-1")})
    assert await pod_queries.still_idle(context(slurm, steps), (POD, OTHER)) == {"u"}
    slurm.answers["10.0.0.1"] = status(7)
    assert await pod_queries.still_idle(context(slurm, steps), (POD, OTHER)) == frozenset()
