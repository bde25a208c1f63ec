"""Warnings of jobs that wait in the queue for something that may need help."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model import report
from slurm_client.errors import Report
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def status(reason: str | None, state: str = "Pending", job_id: int = 7) -> SlurmJobStatus:
    return SlurmJobStatus(state=state, job_id=job_id, slurm_reason=reason)


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionDown",
        "PartitionInactive",
        "PartitionTimeLimit",
        "AssocGrpCpuLimit",
        "AssocMaxJobsLimit",
        "QOSMaxJobsPerUserLimit",
        "ReqNodeNotAvail, UnavailableNodes:w-[0-3]",
    ],
)
def test_what_may_need_help_is_said_once(reason: str) -> None:
    found = report.waits(status(None), status(reason))
    assert found is not None
    assert found[0] == reason.partition(",")[0]
    assert reason in found[1]
    assert report.waits(status(reason), status(reason)) is None
    assert report.waits(status(f"{reason}, more"), status(reason)) is None
    assert report.waits(status(reason), status(reason, job_id=8)) is not None
    assert report.waits(status(None), status(reason, state="Running")) is None


@pytest.mark.parametrize("reason", [None, "Resources", "Priority", "JobHeldUser", "Dependency"])
def test_other_words_are_no_news(reason: str | None) -> None:
    assert report.waits(status(None), status(reason)) is None


async def test_a_reason_that_comes_and_goes_is_one_event(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = report.status
    words = ["Priority", "QOSGrpCpuLimit", "Priority", "QOSGrpCpuLimit", "PartitionDown", "Priority"]
    left = list(words)

    def changing(*arguments: object) -> SlurmJobStatus:
        word = left.pop(0) if left else "Priority"
        return shown(*arguments).model_copy(  # type: ignore[arg-type]
            update={"slurm_reason": word, "state": "Pending"}
        )

    world.job()
    await world.submitted()
    monkeypatch.setattr(report, "status", changing)
    await world.until(lambda: not left)
    told = [message.partition("(")[2].partition(")")[0] for _, why, message in world.events.told if why == "JobWaits"]
    assert told == ["QOSGrpCpuLimit", "PartitionDown"]


async def test_what_slurm_says_twice_is_said_once(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    real = slurm_calls.submit
    held = "Job is in held state, pending scheduler release"

    async def wordy(*arguments: object) -> object:
        taken = await real(*arguments)  # type: ignore[arg-type]
        return replace(taken, message=held, warnings=(Report(description=f"non-zero return code: {held}"),))

    monkeypatch.setattr(slurm_calls, "submit", wordy)
    world.job()
    await world.submitted()
    (told,) = [message for _, reason, message in world.events.told if reason == "JobSubmitted"]
    assert told == f"Slurm accepted job {world.status()['jobId']}; non-zero return code: {held}"
