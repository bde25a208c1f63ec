"""Holds, releases and cancellations: when they are given, what is shown if Slurm refuses them, and how often they are
given again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs import phases, tenants
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.news import Note, Record
from slinky_operator.slurmjob.model.slurm_records import returned
from slinky_operator.slurmjob.model.slurm_records.records import HELD_BY_ADMIN, HELD_BY_USER, Seen
from slinky_operator.slurmjob.model.snapshot import Looked, Snapshot
from slinky_operator.slurmjob.model.stages import holds_and_cancels
from slinky_operator.slurmjob.model.stages.holds_and_cancels import held as plan_hold
from slinky_operator.slurmjob.model.steps import GiveOrder, Nothing, OrderKind, Plan
from slurm_client import errors
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.worlds import JobWorld, job_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PAUSE = timedelta(hours=1)
WAITS = phases.Shown(phases.Phase.PENDING, phases.Reason.QUEUED, "")
IS_HELD = phases.Shown(phases.Phase.PENDING, phases.Reason.HELD, "")
AGAIN_HELD = phases.Shown(phases.Phase.PENDING, phases.Reason.REQUEUED_AND_HELD, "")
RUNS = phases.Shown(phases.Phase.RUNNING, phases.Reason.RUNNING, "")
LEAVES = phases.Shown(phases.Phase.ENDING, phases.Reason.COMPLETING, "")


def snapshot(
    *, suspend: bool, held: bool = False, seen: Seen, generation: int = 1, age: timedelta = 0 * SECOND
) -> Snapshot:
    job = SlurmJob.model_validate(
        {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": "a", "namespace": "team", "uid": "uid", "generation": generation},
            "spec": {"clusterName": "slurm", "script": "#!/bin/sh\n", "suspend": suspend},
            "status": {"jobId": 7, "held": held or None},
        }
    )
    return Snapshot(job, NOW, None, tenants.Refused(""), None, Looked(NOW - age, seen))


def seen(shown: phases.Shown, slurm_reason: str = "", *, is_held: bool | None = None) -> Seen:
    known = slurm_reason in {HELD_BY_USER, HELD_BY_ADMIN}
    return Seen(7, shown, slurm_reason=slurm_reason, is_held=known if is_held is None else is_held)


@pytest.mark.parametrize(
    ("suspend", "held", "job", "due"),
    [
        (True, False, seen(WAITS), OrderKind.HOLD),
        # Somebody has released it: the spec says otherwise.
        (True, True, seen(WAITS), OrderKind.HOLD),
        (True, True, seen(IS_HELD, HELD_BY_USER), None),
        (True, False, seen(IS_HELD, HELD_BY_USER), None),
        (True, False, seen(IS_HELD, HELD_BY_ADMIN), None),
        (True, True, seen(AGAIN_HELD, HELD_BY_USER), None),
        # Held by a requeue, which ends without the operator's doing.
        (True, False, seen(AGAIN_HELD, is_held=True), OrderKind.HOLD),
        (True, False, seen(RUNS), None),
        (True, False, seen(LEAVES), None),
        (False, True, seen(IS_HELD, HELD_BY_USER), OrderKind.RELEASE),
        (False, True, seen(IS_HELD, HELD_BY_ADMIN), None),
        (False, False, seen(IS_HELD, HELD_BY_USER), None),
        # Slurm takes a hold of a job that runs, and keeps it until the job is requeued.
        (False, True, seen(RUNS, HELD_BY_USER), OrderKind.RELEASE),
        (False, True, seen(LEAVES, HELD_BY_USER), OrderKind.RELEASE),
        (False, True, seen(RUNS), None),
        (False, True, seen(WAITS), None),
    ],
)
def test_what_is_due(suspend: bool, held: bool, job: Seen, due: OrderKind | None) -> None:
    step = plan_hold(snapshot(suspend=suspend, held=held, seen=job), job).step
    assert step == (Nothing() if due is None else GiveOrder(due, job))


def test_whose_hold_it_is() -> None:
    ours = seen(IS_HELD, HELD_BY_USER)
    assert plan_hold(snapshot(suspend=True, seen=ours), ours).news == Record(ours, is_held=True)
    free = seen(WAITS)
    assert plan_hold(snapshot(suspend=False, held=True, seen=free), free).news == Record(free, is_held=False)
    admins = seen(IS_HELD, HELD_BY_ADMIN)
    assert plan_hold(snapshot(suspend=True, seen=admins), admins).news == Record(admins)


def test_a_list_from_before_the_last_order_shows_nothing_of_it() -> None:
    """Suspended, resumed and suspended again while one list is current."""
    old = seen(IS_HELD, HELD_BY_USER)
    known = snapshot(suspend=True, seen=old, age=SECOND)
    order = holds_and_cancels.answered(OrderKind.RELEASE, old, 1, None, NOW - SECOND / 2)
    behind = plan_hold(replace(known, order=order), old)
    assert behind == Plan(news=Record(old), wake=holds_and_cancels.SOON_S)
    fresh = replace(known, order=order, looked=Looked(NOW, seen(WAITS)))
    assert plan_hold(fresh, seen(WAITS)).step == GiveOrder(OrderKind.HOLD, seen(WAITS))


def test_an_order_that_leads_to_nothing_is_given_again_later() -> None:
    free = seen(WAITS)
    order = holds_and_cancels.answered(OrderKind.HOLD, free, 1, None, NOW - SECOND)
    assert plan_hold(replace(snapshot(suspend=True, held=True, seen=free), order=order), free).step == Nothing()
    later = holds_and_cancels.answered(OrderKind.HOLD, free, 1, None, NOW - holds_and_cancels.AGAIN)
    assert plan_hold(replace(snapshot(suspend=True, held=True, seen=free), order=later), free).step == GiveOrder(
        OrderKind.HOLD, free
    )


def test_a_refused_order_is_given_ever_more_rarely() -> None:
    job, order = seen(IS_HELD, HELD_BY_USER), None
    pauses = []
    for _ in range(7):
        order = holds_and_cancels.answered(OrderKind.RELEASE, job, 1, order, NOW, "no")
        pauses.append((order.again - order.at).total_seconds())
        planned = plan_hold(replace(snapshot(suspend=False, held=True, seen=job), order=order), job)
        assert (planned.step, planned.wake) == (Nothing(), pauses[-1])
        words = "Slurm did not release job 7; the operator tries again: no"
        assert planned.news == Record(job, Note(Reason.RELEASE_REFUSED, words))
    assert pauses == [5, 10, 30, 60, 300, 300, 300]
    # A spec that was changed since is tried at once.
    changed = replace(snapshot(suspend=False, held=True, seen=job, generation=2), order=order)
    assert plan_hold(changed, job).step == GiveOrder(OrderKind.RELEASE, job)


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


async def waiting(world: JobWorld) -> int:
    """A job that waits, since another has all nodes."""
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(nodes=4)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Pending")
    return number


def by_its_pass_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the list cancels no job of a SlurmJob that is about to go."""
    monkeypatch.setattr(returned, "is_back", lambda *_: False)


def refusing(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Let Slurm refuse; the operator asks again as often as the clock is set ahead, however long passes take."""
    monkeypatch.setattr(holds_and_cancels, "REFUSED_S", (PAUSE.total_seconds(),))
    calls: list[Any] = []

    async def refused(*arguments: Any, **options: Any) -> None:
        calls.append((arguments, options))
        raise errors.PermissionDenied("Access/permission denied")

    monkeypatch.setattr(slurm_calls, name, refused)
    return calls


async def test_a_refused_release_is_shown_and_tried_again(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    number = await waiting(world)
    world.job(suspend=True)
    await world.until(lambda: world.status()["reason"] == "Held")
    world.job(suspend=False)
    with monkeypatch.context() as patched:
        calls = refusing(patched, "hold")
        await world.until(lambda: world.condition("Submitted")[1] == "ReleaseRefused")
        assert world.condition("Submitted")[0] == "True"
        message = f"Slurm did not release job {number}; the operator tries again: Access/permission denied"
        assert world.condition("Submitted")[2] == world.status()["summary"] == message
        assert ("Warning", "ReleaseRefused", message) in world.events.told
        assert world.status()["held"] is True
        for _ in range(3):
            await world.step()
        assert len(calls) == 1
        world.ahead += PAUSE
        await world.until(lambda: len(calls) == 2)
        assert world.events.reasons().count("ReleaseRefused") == 1
    world.ahead += PAUSE
    await world.until(lambda: world.status()["reason"] == "Queued" and not world.status().get("held"))
    assert world.condition("Submitted")[1] == "Submitted"


async def test_a_refused_hold_is_shown_and_is_none(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await waiting(world)
    world.job(suspend=True)
    with monkeypatch.context() as patched:
        _ = refusing(patched, "hold")
        await world.until(lambda: world.condition("Submitted")[1] == "HoldRefused")
    assert "held" not in world.status()
    world.job(suspend=False)
    await world.until(lambda: world.condition("Submitted")[1] == "Submitted")


async def test_a_refused_cancellation_is_shown_and_tried_again(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await waiting(world)
    by_its_pass_alone(monkeypatch)
    world.delete()
    with monkeypatch.context() as patched:
        _ = refusing(patched, "cancel")
        await world.until(lambda: world.condition("Submitted")[1] == "CancelRefused")
    assert world.exists()
    assert "did not cancel" in world.status()["summary"]
    world.ahead += PAUSE
    await world.until(lambda: not world.exists())


async def test_a_cancellation_that_takes_long_is_reported_once(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    async def nothing(_: Any, number: int) -> None:
        asked.append(number)

    await waiting(world)
    by_its_pass_alone(monkeypatch)
    world.delete()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "cancel", nothing)
        for count in range(1, 5):
            await world.until(lambda count=count: len(asked) >= count)  # type: ignore[misc]
            world.ahead += holds_and_cancels.AGAIN
    await world.until(lambda: not world.exists())
    assert world.events.reasons().count("JobCancelled") == 1


async def test_a_change_of_suspend_alone_wakes_the_operator(world: JobWorld) -> None:
    """While nothing changes in Slurm, and no pass is due."""
    await waiting(world)
    async with world.working():
        world.job(suspend=True)
        await until(lambda: world.status()["reason"] == "Held")
        world.job(suspend=False)
        await until(lambda: world.status()["reason"] == "Queued" and not world.status().get("held"))


async def test_what_others_release_is_held_again(world: JobWorld) -> None:
    number = await waiting(world)
    world.job(suspend=True)
    await world.until(lambda: world.status()["reason"] == "Held")
    job = world.slurm.world.jobs[number]
    world.slurm.world.jobs[number] = replace(job, hold=False, priority=1, state_reason="None")
    world.ahead += holds_and_cancels.AGAIN
    await world.until(lambda: world.slurm.world.jobs[number].hold)
