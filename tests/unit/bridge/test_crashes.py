"""The operator ends before and after each of its writes, in each order of its controllers: every pod runs once.

The same with real daemons, for some of them: `tests/integration/bridge/test_crashes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from slinky_operator.bridge.pods.model import next_job
from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob.model.stages import late_calls, submitted, unanswered
from tests.support.slurm_jobs import Killed
from tests.unit.bridge.crash_worlds import When, World, crash_world, forget, requeue

pytestmark = pytest.mark.thorough

LEAST, MOST = 10, 40
"""Writes in the life of a group."""


@pytest.fixture(autouse=True)
def no_late_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead operator has not sent never arrives."""
    now = late_calls.SETTLED * 0
    monkeypatch.setattr(late_calls, "settled", lambda _: now)
    for module in (unanswered, submitted):
        monkeypatch.setattr(module, "HISTORY_PATIENCE", now)
    monkeypatch.setattr(next_job, "FIRST_PAUSE_S", 0)


async def live(world: World, at: tuple[int, When] | None, *, bridge_first: bool) -> bool:
    """A whole life, with a death at a write; whether there is such a write."""
    world.gang()
    world.death.at = at
    was_killed = False
    try:
        await world.run(world.is_over, bridge_first=bridge_first)
    except* Killed:
        was_killed = True
    if was_killed:
        await world.kill()
        await world.run(world.is_over, bridge_first=bridge_first)
    return was_killed


@pytest.mark.parametrize(("when", "bridge_first"), [("before", True), ("after", False)], ids=["before", "after"])
async def test_whenever_it_ends_each_pod_runs_once_and_no_job_is_left(
    when: When, monkeypatch: pytest.MonkeyPatch, *, bridge_first: bool
) -> None:
    for number in range(1, MOST):
        with monkeypatch.context() as patched:
            async with crash_world(patched) as world:
                was_killed = await live(world, (number, when), bridge_first=bridge_first)
                told = f"{when} write {number}: {world.death.writes}"
                assert sorted(name for name, _, _ in world.begun) == ["j-0", "j-1"], told
                assert all(is_run for _, _, is_run in world.begun), told
                assert len({job for _, job, _ in world.begun}) == 1, told
                assert len(world.slurm.world.jobs) == len(world.slurmjobs()) == 1, told
                assert world.slurmjobs()[0]["status"]["state"] == "Succeeded", told
        if not was_killed:
            break
    assert number > LEAST


@pytest.mark.parametrize("loses", [forget, requeue], ids=["forgets", "requeues"])
async def test_whenever_slurmctld_loses_the_job_each_pod_runs_once_and_no_job_is_left(
    loses: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, MOST):
        with monkeypatch.context() as patched:
            async with crash_world(patched) as world:
                world.gang()
                world.death.at = (number, "after")
                world.death.strike = partial(loses, world)
                await world.run(partial(have_ended, world), bridge_first=True)
                told = f"after write {number}: {world.death.writes}"
                assert sorted(name for name, _, _ in world.begun) == ["j-0", "j-1"], told
                was_reached = world.death.at is None
        if not was_reached:
            break
    assert number > LEAST


def have_ended(world: World) -> bool:
    """Whether all pods have, and no job is left; what slurmdbd never heard of, its accounting will not have."""
    pods = [one["status"]["phase"] for one in world.gang_pods()]
    return pods == ["Succeeded"] * 2 and not world.living() and all(ended(one) for one in world.slurmjobs())


def ended(job: Object) -> bool:
    """Whether a SlurmJob is over."""
    return (job.get("status") or {}).get("state") in {"Succeeded", "Failed", "Unknown"}
