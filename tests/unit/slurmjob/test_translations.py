"""A SlurmJob is translated once, off the event loop, and what is kept of that has a bound."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs import translation
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import Submission
from slinky_operator.slurmjob import translations
from slinky_operator.slurmjob.translations import FRESH, Translations
from tests.unit.slurmjob.worlds import job_world

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def job(uid: str = "1", generation: int = 1, script: str = "#!/bin/sh\n", **spec: Any) -> SlurmJob:
    about = {"name": "hello", "namespace": "team", "uid": uid, "generation": generation}
    return SlurmJob.parse({"metadata": about, "spec": {"clusterName": "slurm", "script": script, **spec}})


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread of each translation that was made."""
    made: list[int] = []

    def counted(*given: Any, **options: Any) -> Submission:
        made.append(threading.get_ident())
        return translation.translate(*given, **options)

    monkeypatch.setattr(translations, "translate", counted)
    return made


async def test_one_for_each_version_and_user(threads: list[int]) -> None:
    found = Translations()
    for _ in range(3):
        given = await found.of(job(), "alice", NOW)
        assert isinstance(given, Submission)
        assert (given.job.environment or {})["USER"] == "alice"
    assert len(threads) == 1
    given = await found.of(job(), "bob", NOW)
    assert isinstance(given, Submission)
    assert (given.job.environment or {})["USER"] == "bob"
    given = await found.of(job(generation=2, partition="night"), "bob", NOW)
    assert isinstance(given, Submission)
    assert given.job.partition == "night"
    assert len(threads) == 3


async def test_a_short_text_that_means_many_names_does_not_hold_up_the_event_loop(threads: list[int]) -> None:
    given = await Translations().of(job(script="#!/bin/sh\n#SBATCH -w a[1-65536]\n"), "alice", NOW)
    assert isinstance(given, Submission)
    assert threads != [threading.get_ident()]


async def test_a_refusal_is_kept_without_what_was_read(threads: list[int]) -> None:
    found = Translations()
    for _ in range(2):
        given = await found.of(job(script="#!/bin/sh\n#SBATCH --nonsense\n"), "alice", NOW)
        assert isinstance(given, InvalidJob)
        assert given.__traceback__ is None
        assert given.__context__ is None
    assert len(threads) == 1


async def test_a_time_from_now_is_counted_from_the_submission(threads: list[int]) -> None:
    found, late = Translations(), NOW + timedelta(hours=3)
    wanted = job(script="#!/bin/sh\n#SBATCH --begin=now+1hour\n")
    for moment in (NOW, NOW + FRESH / 2):
        await found.of(wanted, "alice", moment)
    given = await found.of(wanted, "alice", late)
    assert isinstance(given, Submission)
    assert given.job.begin_time == late + timedelta(hours=1)
    assert len(threads) == 2


async def test_what_is_kept_has_a_bound(threads: list[int]) -> None:
    found = Translations(room=160_000, largest=90_000)
    large = [{"name": f"B{number}", "value": "b" * 30_000} for number in range(3)]
    for _ in range(2):
        await found.of(job("large", env=large), "alice", NOW)
    assert len(threads) == 2
    some = [{"name": "A", "value": "b" * 30_000}, {"name": "B", "value": "b" * 30_000}]
    for uid in ("1", "2", "3", "1"):
        await found.of(job(uid, env=some), "alice", NOW)
    assert len(threads) == 6
    await found.of(job("3", env=some), "alice", NOW)
    assert len(threads) == 6
    found.forget("3")
    await found.of(job("3", env=some), "alice", NOW)
    assert len(threads) == 7


async def test_the_script_is_the_objects_own(threads: list[int]) -> None:
    found = Translations(largest=20_000)
    for _ in range(2):
        await found.of(job(script="#!/bin/sh\n" + "#" * 100_000), "alice", NOW)
    assert len(threads) == 1


async def test_a_job_that_runs_is_not_translated_in_each_pass(threads: list[int]) -> None:
    async with job_world() as world:
        world.job(backoffLimit=3)
        await world.submitted()
        await world.until(lambda: world.status().get("state") == "Running")
        for _ in range(10):
            await world.step()
        assert len(threads) == 1
        world.delete()
        await world.until(lambda: not world.exists())
