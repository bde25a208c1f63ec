"""The tests of jobs without a script are effective: each rule that is broken is caught by the test beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from slinky_operator.jobs import phases
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model import requests
from slinky_operator.slurmjob.model.slurm_records import allocations, components, returned
from slinky_operator.slurmjob.model.stages import external, lost, submission
from tests.unit.slurmjob.stories import test_external, test_lost, test_returned
from tests.unit.slurmjob.worlds import JobWorld

pytestmark = pytest.mark.thorough

MOST_LOOKS: Final = 200
"""Looks after which what a test waits for does not come; with the rules as they are it comes within fifty."""

Rule = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[JobWorld], Awaitable[None]]


def any_number_is_ours(patch: pytest.MonkeyPatch) -> None:
    """What slurmctld says under the number of the job is about the job."""
    patch.setattr(allocations, "is_of", lambda *_: True)


def numbers_stay(patch: pytest.MonkeyPatch) -> None:
    """The job that has the number is cancelled."""

    async def yes(*_: Any) -> bool:
        return True

    patch.setattr(slurm_calls, "is_still_of", yes)


def it_runs_before_its_nodes_are_known(patch: pytest.MonkeyPatch) -> None:
    """The state is Running when Slurm says so."""
    patch.setattr(external, "awaiting", lambda seen: seen)


def every_end_is_that_of_the_work(patch: pytest.MonkeyPatch) -> None:
    """What came first is not told."""
    real = external.ended

    def ended(snapshot: Any, seen: Any) -> Any:
        cancelled = replace(seen, shown=replace(seen.shown, reason=phases.Reason.CANCELLED))
        return real(snapshot, cancelled)

    patch.setattr(external, "ended", ended)


def one_start_is_enough(patch: pytest.MonkeyPatch) -> None:
    """What a job was given is read once."""
    real = external.needs_allocation
    patch.setattr(external, "needs_allocation", lambda one, seen: real(one, seen) and not one.job.status.allocation)


def one_component_may_end_alone(patch: pytest.MonkeyPatch) -> None:
    """The others go on without it."""
    real = components.whole
    patch.setattr(components, "whole", lambda parts: (real(parts)[0], None))


def what_is_left_goes_on(patch: pytest.MonkeyPatch) -> None:
    """Another job is submitted beside the one that waits again."""

    def followed(snapshot: Any, failure: Any) -> Any:
        begun = snapshot.job.status.submission
        return submission.submit(snapshot, begun.attempt + 1, failed=failure.job_id, again=True)

    patch.setattr(lost, "followed", followed)


def other_nodes_are_as_good(patch: pytest.MonkeyPatch) -> None:
    """A job that has started once more may be anywhere."""
    patch.setattr(allocations, "is_same", lambda *_: True)


def tasks_are_spread_as_slurm_likes(patch: pytest.MonkeyPatch) -> None:
    """The nodes are asked for, but not how many tasks each has."""

    def shares(allocation: Any, parts: Any) -> Any:
        return (allocations.Share(0, 2, tuple(one.node for one in allocation)),)

    patch.setattr(requests, "shares_of", shares)


def any_user_is_ours(patch: pytest.MonkeyPatch) -> None:
    """Whose job it is that seems to be back does not count."""
    real = returned.is_back

    def is_back(obj: Any, mark: Any, record: Any) -> bool:
        return real(obj, mark, replace(record, user=obj["status"]["user"]))

    patch.setattr(returned, "is_back", is_back)


def every_end_is_for_good(patch: pytest.MonkeyPatch) -> None:
    """Nobody requeues a job with a script."""
    patch.setattr(returned, "is_unwanted", lambda _: True)


MUTANTS: Final[Mapping[str, tuple[Rule, Test]]] = {
    "any number is ours": (any_number_is_ours, test_external.test_a_number_without_the_mark_is_another_job),
    "numbers stay": (numbers_stay, test_external.test_a_number_that_was_given_to_another_job_is_not_cancelled),
    "it runs before its nodes are known": (
        it_runs_before_its_nodes_are_known,
        test_external.test_it_is_not_running_before_slurm_has_said_what_it_was_given,
    ),
    "every end is that of the work": (every_end_is_that_of_the_work, test_external.test_what_came_first_is_told),
    "one start is enough": (one_start_is_enough, test_lost.test_one_that_started_elsewhere_comes_back_to_its_nodes),
    "one component may end alone": (
        one_component_may_end_alone,
        test_external.test_a_component_that_ends_alone_ends_the_job,
    ),
    "what is left goes on": (
        what_is_left_goes_on,
        partial(test_lost.test_a_lost_job_is_submitted_again_for_its_nodes_with_as_many_tasks_on_each, is_gone=False),
    ),
    "other nodes are as good": (
        other_nodes_are_as_good,
        test_lost.test_one_that_started_elsewhere_comes_back_to_its_nodes,
    ),
    "any user is ours": (
        any_user_is_ours,
        partial(test_returned.test_what_is_not_that_job_is_left_alone, what="user"),
    ),
    "every end is for good": (
        every_end_is_for_good,
        test_returned.test_one_with_a_script_that_has_ended_by_itself_may_be_requeued,
    ),
    "tasks are spread as slurm likes": (
        tasks_are_spread_as_slurm_likes,
        partial(test_lost.test_a_lost_job_is_submitted_again_for_its_nodes_with_as_many_tasks_on_each, is_gone=False),
    ),
}


def bounded(patch: pytest.MonkeyPatch) -> None:
    """Let a test that waits for ever fail: looks are counted, not seconds."""

    async def until(self: JobWorld, holds: Callable[[], Any]) -> None:
        looks = 0
        while not holds():
            looks += 1
            assert looks < MOST_LOOKS
            for _, namespace, name in [key for key in self.kube.objects if key[0] == "slurmjobs"]:
                await self.step(name, namespace)
            await asyncio.sleep(0.005)

    patch.setattr(JobWorld, "until", until)


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_test_tells_of_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_rule, test = MUTANTS[name]
    bounded(monkeypatch)
    async with test_external.external_world() as world:
        await test(world)
    break_rule(monkeypatch)
    async with test_external.external_world() as world:
        with pytest.raises(AssertionError):
            await test(world)
