"""SlurmJobs of a Slurm that runs elsewhere, which goes away and comes back: a Cluster with `server`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurm.connection.contact import ContactState
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.stages.late_calls import LONG, SETTLED
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE
from slurm_client import errors
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        one.cluster(server=one.slurm.url, token={"secretRef": "operator"})
        yield one


async def reaches(world: JobWorld, *, is_ready: bool) -> None:
    """Wait until the operator has noticed whether Slurm answers."""
    entry = world.clients.get("cluster-1")
    assert entry is not None
    await until(lambda: (entry.contact.state is ContactState.READY) is is_ready)


async def goes_away(world: JobWorld) -> None:
    world.slurm.faults.disconnect(times=None)
    await reaches(world, is_ready=False)


async def comes_back(world: JobWorld) -> None:
    world.slurm.faults.clear()
    await reaches(world, is_ready=True)


async def test_the_operators_own_token_stands_for_the_user(world: JobWorld) -> None:
    world.job()
    await world.submitted()
    (job,) = world.in_slurm()
    assert job.user == "alice"
    (call,) = [one for one in world.slurm.requests if one.path.endswith("submit")]
    assert {key.lower(): value for key, value in call.headers.items()}["x-slurm-user-name"] == "alice"


async def test_a_job_waits_for_slurm_and_is_submitted_once(world: JobWorld) -> None:
    await goes_away(world)
    world.job()
    await world.until(lambda: world.condition("Submitted")[0])
    status, reason, message = world.condition("Submitted")
    assert (status, reason) == ("False", "SlurmUnreachable")
    assert message.startswith("Slurm does not answer: ")
    assert (world.status()["state"], "submission" in world.status()) == ("Waiting", False)
    for _ in range(3):
        await world.step()
    await comes_back(world)
    await world.submitted()
    assert len(world.in_slurm()) == 1


async def test_what_was_last_seen_stays_while_slurm_is_away(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status()["state"] == "Running")
    await goes_away(world)
    await world.until(lambda: world.condition("Submitted")[1] == "SlurmUnreachable")
    world.ahead += timedelta(days=1)
    for _ in range(3):
        await world.step()
    assert (world.status()["state"], world.status()["jobId"]) == ("Running", number)
    assert world.condition("Finished")[0] != "True"
    world.slurm.world.exit_job(number)
    await comes_back(world)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert world.status()["state"] == "Succeeded"
    assert world.condition("Submitted")[0] == "True"


async def test_a_deleted_one_stays_until_its_job_can_be_cancelled(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await goes_away(world)
    world.delete()
    for _ in range(3):
        result = await world.step()
        assert result.requeue_after is not None
    assert world.exists()
    assert world.condition("Submitted")[1] == "SlurmUnreachable"
    await comes_back(world)
    await world.until(lambda: not world.exists())
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"
    assert "JobLeftBehind" not in world.events.reasons()


async def test_of_a_cluster_that_is_gone_too_the_job_is_named(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await goes_away(world)
    cluster = world.kube.find(CLUSTERS, "slurm", "ns")
    assert cluster is not None
    world.kube.forget(CLUSTERS, cluster)
    world.delete()
    await world.until(lambda: not world.exists())
    (told,) = [message for _, reason, message in world.events.told if reason == "JobLeftBehind"]
    assert str(number) in told


async def test_a_lost_submission_is_repeated_only_when_no_call_can_be_under_way_and_slurmdbd_knows_of_none(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any) -> Any:
        raise errors.Timeout("no answer")

    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", lost)
        await world.until(lambda: world.condition("Submitted")[1] == "Submitting")
    await goes_away(world)
    world.ahead += SETTLED
    for _ in range(3):
        await world.step()
    assert world.condition("Submitted")[0] == "Unknown"
    await comes_back(world)
    # Its slurm.conf is not known: slurmrestd may ask for minutes.
    for _ in range(3):
        await world.step()
    assert world.in_slurm() == []
    world.ahead += LONG
    before = world.condition("Submitted")
    await world.until(lambda: world.condition("Submitted") != before)
    assert world.condition("Submitted")[:2] == ("Unknown", "Submitting")
    assert world.in_slurm() == []
    # slurmctld may have forgotten the job by then; slurmdbd knows of none for long enough.
    world.ahead += HISTORY_PATIENCE
    await world.submitted()
    assert len(world.in_slurm()) == 1
