"""When slurmctld is made to look through its queue: jobs without a script that end and others that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from slinky_operator.slurmjob.rescheduling import Rescheduling
from slurm_client import JobSpec, errors
from slurm_client.encode.jobs import EXTERNAL
from slurm_client.models import Job
from slurm_client.models.job import JobState

FLAGS = frozenset({EXTERNAL})


def job(number: int, state: str, *, flags: frozenset[str] = FLAGS, hold: bool = False) -> Job:
    return Job(id=number, name=f"job-{number}", state=JobState(state), flags=flags, hold=hold)


class Slurm:
    """Remembers changes of jobs, and refuses them where a test wants it."""

    def __init__(self) -> None:
        self.changes: list[tuple[int, JobSpec]] = []
        self.fails = False
        self.before: Callable[[], None] = lambda: None

    async def update_job(self, job_id: int, spec: JobSpec) -> None:
        self.before()
        self.changes.append((job_id, spec))
        if self.fails:
            raise errors.InvalidTransition("job has ended")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


WAITING = [job(9, "PENDING"), job(5, "PENDING"), job(3, "PENDING", hold=True), job(2, "RUNNING")]


@pytest.mark.parametrize("new", [job(1, "CANCELLED"), job(1, "TIMEOUT"), None])
async def test_the_first_job_that_waits_is_given_the_name_that_it_has(new: Job | None) -> None:
    slurm = Slurm()
    Rescheduling(slurm, lambda: WAITING, 0).changed(job(1, "RUNNING"), new)
    await settle()
    assert slurm.changes == [(5, JobSpec(name="job-5"))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, job(1, "RUNNING")),
        (job(1, "PENDING"), job(1, "CANCELLED")),
        (job(1, "RUNNING"), job(1, "SUSPENDED")),
        (job(1, "RUNNING", flags=frozenset()), job(1, "CANCELLED", flags=frozenset())),
    ],
)
async def test_nothing_is_asked_where_no_node_was_left_without_a_word(old: Job | None, new: Job | None) -> None:
    slurm = Slurm()
    Rescheduling(slurm, lambda: WAITING, 0).changed(old, new)
    await settle()
    assert slurm.changes == []


async def test_nothing_is_asked_while_no_job_without_a_script_waits() -> None:
    slurm = Slurm()
    waiting = [job(2, "PENDING", flags=frozenset()), job(3, "PENDING", hold=True), job(4, "RUNNING")]
    Rescheduling(slurm, lambda: waiting, 0).changed(job(1, "RUNNING"), None)
    await settle()
    assert slurm.changes == []


async def test_many_that_end_together_are_one_call_and_one_that_ends_meanwhile_another() -> None:
    slurm = Slurm()
    rescheduling = Rescheduling(slurm, lambda: WAITING, 0)
    for number in range(100, 200):
        rescheduling.changed(job(number, "RUNNING"), None)
    slurm.fails = True
    slurm.before = lambda: rescheduling.changed(job(1, "RUNNING"), None) if not slurm.changes else None
    await settle()
    assert len(slurm.changes) == 2


async def test_a_pause_lies_between_two_calls_and_a_stop_ends_it() -> None:
    slurm = Slurm()
    rescheduling = Rescheduling(slurm, lambda: WAITING, 3600)
    rescheduling.changed(job(1, "RUNNING"), None)
    await settle()
    rescheduling.changed(job(1, "RUNNING"), None)
    await settle()
    assert len(slurm.changes) == 1
    rescheduling.stop()
    await settle()
    assert not [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
