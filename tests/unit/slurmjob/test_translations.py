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
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.cached import scripts
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.slurmjob import translations
from slinky_operator.slurmjob.translations import FRESH, Translations
from tests.support.memory_kube import MemoryKube
from tests.unit.slurmjob.worlds import job_world

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def raw(uid: str = "1", generation: int = 1, script: str = "#!/bin/sh\n", **spec: Any) -> Object:
    about = {"name": "hello", "namespace": "team", "uid": uid, "generation": generation}
    return {"metadata": about, "spec": {"clusterName": "slurm", "script": script, **spec}}


def job(uid: str = "1", generation: int = 1, script: str = "#!/bin/sh\n", **spec: Any) -> SlurmJob:
    return SlurmJob.parse(raw(uid, generation, script, **spec))


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
    found = Translations(MemoryKube())
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
    given = await Translations(MemoryKube()).of(job(script="#!/bin/sh\n#SBATCH -w a[1-65536]\n"), "alice", NOW)
    assert isinstance(given, Submission)
    assert threads != [threading.get_ident()]


async def test_a_refusal_is_kept_without_what_was_read(threads: list[int]) -> None:
    found = Translations(MemoryKube())
    for _ in range(2):
        given = await found.of(job(script="#!/bin/sh\n#SBATCH --nonsense\n"), "alice", NOW)
        assert isinstance(given, InvalidJob)
        assert given.__traceback__ is None
        assert given.__context__ is None
    assert len(threads) == 1


async def test_a_time_from_now_is_counted_from_the_submission(threads: list[int]) -> None:
    found, late = Translations(MemoryKube()), NOW + timedelta(hours=3)
    wanted = job(script="#!/bin/sh\n#SBATCH --begin=now+1hour\n")
    for moment in (NOW, NOW + FRESH / 2):
        await found.of(wanted, "alice", moment)
    given = await found.of(wanted, "alice", late)
    assert isinstance(given, Submission)
    assert given.job.begin_time == late + timedelta(hours=1)
    assert len(threads) == 2


async def test_what_is_kept_has_a_bound(threads: list[int]) -> None:
    found = Translations(MemoryKube(), room=160_000, largest=90_000)
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


async def test_a_long_script_is_read_when_it_is_translated_and_counts(threads: list[int]) -> None:
    kube = MemoryKube()
    script = "#!/bin/sh\n" + "#" * 100_000
    kube.put(SLURMJOBS, raw("1", script=script))
    stored = raw("1", script=script)
    prune_job(stored)
    cached = SlurmJob.parse(stored)
    assert len(cached.spec.script or "") < 200
    for largest, translated in ((20_000, 2), (200_000, 1)):
        threads.clear()
        found = Translations(kube, largest=largest)
        for _ in range(2):
            given = await found.of(cached, "alice", NOW)
            assert isinstance(given, Submission)
            assert given.job.script == script
        assert len(threads) == translated


@pytest.mark.parametrize("change", [{"uid": "2"}, {"generation": 2}, {"script": "#!/bin/sh\n" + "b" * 5000}])
async def test_the_script_of_another_job_is_not_taken_for_the_one_in_the_cache(change: dict[str, Any]) -> None:
    kube = MemoryKube()
    cached = raw("1", script="#!/bin/sh\n" + "a" * 5000)
    prune_job(cached)
    kube.put(SLURMJOBS, raw(**{"uid": "1", "script": "#!/bin/sh\n" + "a" * 5000, **change}))
    with pytest.raises(errors.Conflict):
        await Translations(kube).of(SlurmJob.parse(cached), "alice", NOW)


async def test_a_script_that_reads_like_one_that_was_left_out_is_the_users(threads: list[int]) -> None:
    kube = MemoryKube()
    script = f"{scripts.MARK}{'0' * 64}"
    kube.put(SLURMJOBS, raw("1", script=script))
    given = await Translations(kube).of(job(script=script), "alice", NOW)
    assert isinstance(given, Submission)
    assert given.job.script == script
    assert len(threads) == 1


async def test_a_long_script_is_submitted_as_it_was_written() -> None:
    script = "#!/bin/sh " + "#" * 5000
    async with job_world() as world:
        world.job(script=script)
        assert len(world.jobs.items()[0]["spec"]["script"]) < 200
        await world.submitted()
        (request,) = world.slurm.calls("post_job_submit")
        assert script in str(request.body)


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
