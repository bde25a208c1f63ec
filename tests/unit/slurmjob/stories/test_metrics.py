"""What SlurmJobs add to metrics: each once, whatever is repeated, refused, lost or killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs.phases import ENDS
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.metrics.job_changes import OUTCOMES
from slinky_operator.slurmjob.execute import resubmission, slurm_calls
from slinky_operator.slurmjob.model import metric_changes
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slurm_client import errors
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import JobWorld, job_world

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SUBMITTED = "slurmjob_submit_duration_seconds"
PENDING = "slurmjob_pending_duration_seconds"


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def calls(world: JobWorld, outcome: str) -> float | None:
    return world.count("slurmjob_submissions_total", outcome=outcome)


def ended(world: JobWorld, reason: str) -> float | None:
    return world.count("slurmjobs_ended_total", reason=reason)


async def killed_at(world: JobWorld, field: str) -> None:
    """Run passes until the operator ends right before it writes a field of the status, and start another."""

    def before(status: dict[str, Any]) -> None:
        if status.get(field):
            raise Killed

    world.kube.before_status = before
    with pytest.raises(Killed):
        await world.until(lambda: False)
    world.kube.before_status = None
    await world.kill()


async def gone(world: JobWorld) -> None:
    """Let slurmctld forget the only job, after which it may have been one or none."""
    await killed_at(world, "jobId")
    del world.slurm.world.jobs[world.in_slurm()[0].id]
    world.ahead += timedelta(hours=1)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionUnknown")


async def test_the_life_of_a_job_is_counted_once_whatever_is_restarted(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await world.kill()
    await world.until(lambda: world.status().get("state") == "Running")
    await world.kill()
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    await world.kill()
    for _ in range(3):
        await world.step()
    assert (calls(world, "accepted"), world.count(f"{SUBMITTED}_count"), world.count(f"{PENDING}_count")) == (1, 1, 1)
    assert ended(world, "NonZeroExitCode") == 1
    assert ended(world, "Completed") == 0


async def test_the_time_in_the_queue_is_that_until_the_first_start(world: JobWorld) -> None:
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(nodes=4)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Pending")
    before = world.count(f"{PENDING}_sum") or 0
    await world.clients.close_all()
    world.slurm.world.clock.advance(90)
    world.ahead += timedelta(seconds=90)
    await world.start()
    world.slurm.world.exit_job(world.status("first")["jobId"])
    await world.until(lambda: world.status().get("state") == "Running")
    assert world.count(f"{PENDING}_count") == 2
    assert 90 <= (world.count(f"{PENDING}_sum") or 0) - before < 150
    world.slurm.world.requeue_job(number)
    await world.until(lambda: world.status().get("state") == "Pending")
    world.slurm.world.schedule()
    await world.until(lambda: world.status().get("state") == "Running")
    assert world.count(f"{PENDING}_count") == 2


async def test_a_job_that_is_cancelled_in_the_queue_has_not_started(world: JobWorld) -> None:
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(nodes=4)
    number = await world.submitted()
    world.slurm.world.finish_job(number, "CANCELLED", start_time=world.slurm.world.now)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.count(f"{PENDING}_count"), ended(world, "Cancelled")) == (1, 1)


async def test_a_job_that_is_cancelled_with_its_object_has_ended(world: JobWorld) -> None:
    world.job()
    await world.until(lambda: world.status().get("state") == "Running")
    world.delete()
    await world.until(lambda: not world.exists())
    assert (ended(world, "Cancelled"), world.count("slurmjobs_left_behind_total")) == (1, 0)


async def test_time_for_which_it_was_suspended_does_not_count(world: JobWorld) -> None:
    world.job(suspend=True)
    await world.until(lambda: world.condition("Submitted")[1] == "Suspended")
    world.ahead += timedelta(hours=1)
    world.job(suspend=False)
    await world.submitted()
    assert world.count(f"{SUBMITTED}_count") == 1
    assert (world.count(f"{SUBMITTED}_sum") or 0) < 600


async def test_time_without_slurm_counts(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: Any) -> Any:
        raise errors.CircuitOpen("not tried")

    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", down)
        await world.until(lambda: world.condition("Submitted")[1] == "SlurmUnreachable")
    world.ahead += timedelta(hours=1)
    await world.kill()
    await world.submitted()
    assert (calls(world, "not-sent"), calls(world, "accepted")) == (1, 1)
    assert (world.count(f"{SUBMITTED}_sum") or 0) >= 3600


async def test_a_lost_answer_is_counted_with_the_job_that_is_found(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = slurm_calls.submit

    async def unanswered(*arguments: Any) -> Any:
        _ = await real(*arguments)
        raise errors.Timeout("no answer")

    monkeypatch.setattr(slurm_calls, "submit", unanswered)
    world.job()
    await world.submitted()
    assert (calls(world, "unanswered"), calls(world, "accepted")) == (1, 0)
    assert world.count(f"{SUBMITTED}_count") == 1


async def test_what_is_submitted_after_a_failure_adds_no_submission_and_no_end(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resubmission, "PAUSES_S", (0.01,))
    monkeypatch.setattr(resubmission, "PASSING_S", (0.01,))

    async def refused(*_: Any) -> Any:
        raise errors.InvalidRequest("Invalid account")

    world.job(backoffLimit=1)
    first = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(first, 3)
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", refused)
        await world.until(lambda: world.events.reasons().count("SubmissionRefused") > 2)
    assert calls(world, "refused") == world.events.reasons().count("SubmissionRefused")
    assert (world.count(f"{SUBMITTED}_count"), world.count(f"{PENDING}_count")) == (1, 1)
    await world.until(lambda: world.status().get("jobId") not in {None, first})
    await world.until(lambda: world.status().get("state") == "Running")
    # One for each job, and one for each SlurmJob.
    assert (world.count(f"{PENDING}_count"), world.count(f"{SUBMITTED}_count")) == (2, 1)
    assert ended(world, "NonZeroExitCode") == 0


async def test_a_submission_of_unknown_outcome_stays_shown_and_is_counted_once(world: JobWorld) -> None:
    world.job()
    await gone(world)
    shown = world.condition("Submitted")
    for _ in range(3):
        await world.kill()
        for _ in range(5):
            await world.step()
            assert world.condition("Submitted") == shown
    assert world.count("slurmjob_submissions_unknown_total") == 1
    assert world.events.reasons().count("SubmissionUnknown") == 1
    assert world.count(f"{SUBMITTED}_count") == 0


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_job_whose_cluster_is_gone_is_left_behind(world: JobWorld, *, is_known: bool) -> None:
    world.job()
    if is_known:
        words = f"job {await world.submitted()} was not cancelled"
    else:
        await gone(world)
        words = "Slurm's answer to the submission was lost"
    world.kube.forget(CLUSTERS, world.kube.objects["clusters", "ns", "slurm"])
    world.delete()
    await world.until(lambda: not world.exists())
    assert world.count("slurmjobs_left_behind_total") == 1
    assert next(text for _, reason, text in world.events.told if reason == "JobLeftBehind").startswith(words)


async def test_with_keep_no_job_is_left_behind(world: JobWorld) -> None:
    world.job(cancelPolicy="Keep")
    await world.submitted()
    world.kube.forget(CLUSTERS, world.kube.objects["clusters", "ns", "slurm"])
    world.delete()
    await world.until(lambda: not world.exists())
    assert world.count("slurmjobs_left_behind_total") == 0


async def test_a_dry_run_is_no_job_that_has_ended(world: JobWorld) -> None:
    world.job(dryRun=True)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert world.count(f"{SUBMITTED}_count") == 0
    assert {calls(world, outcome) for outcome in OUTCOMES} == {0}
    assert {ended(world, reason) for reason in (*ENDS, "RequestShown")} == {0, None}


async def test_an_operator_that_is_killed_before_it_has_the_number_counts_what_is_found(world: JobWorld) -> None:
    world.job()
    await killed_at(world, "jobId")
    assert world.count(f"{SUBMITTED}_count") == 0
    world.ahead += SETTLED
    await world.submitted()
    assert world.count(f"{SUBMITTED}_count") == 1


@pytest.mark.parametrize(
    ("reason", "before", "expected"),
    [
        (None, None, -timedelta(hours=1)),
        (Reason.SLURM_UNREACHABLE, None, -timedelta(hours=1)),
        (Reason.SLURM_UNREACHABLE, NOW - timedelta(minutes=1), -timedelta(minutes=1)),
        (Reason.SUSPENDED, None, timedelta(0)),
        (Reason.DEPENDENCY_NOT_FINISHED, NOW - timedelta(minutes=1), timedelta(0)),
    ],
)
def test_from_when_on_it_could_have_been_submitted(
    reason: Reason | None, before: datetime | None, expected: timedelta
) -> None:
    condition = {"type": "Submitted", "status": "False", "reason": reason, "message": "m"}
    job = SlurmJob.parse(
        {
            "metadata": {"name": "a", "namespace": "b", "creationTimestamp": "2026-11-23T11:00:00Z"},
            "spec": {"clusterName": "slurm", "script": "#!/bin/sh\n"},
            "status": {"conditions": [condition] if reason else []},
        }
    )
    assert metric_changes.ready_since(job, NOW, before) == NOW + expected
