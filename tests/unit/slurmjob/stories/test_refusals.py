"""What is not submitted, and what the user reads about it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_operator.jobs import translation
from slinky_operator.slurmjob import translations
from slinky_operator.slurmjob.execute import resubmission, slurm_calls
from slinky_operator.slurmjob.execute.resubmission import PAUSES_S, Resubmissions
from slinky_operator.slurmjob.model.stages.submission import LABELS_S
from slurm_client import JobSpec, errors
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


async def refused(world: JobWorld, reason: str, name: str = "hello", namespace: str = "team") -> str:
    """Wait for a reason, and return the message; nothing must have been submitted."""
    await world.until(lambda: world.condition("Submitted", name, namespace)[1] == reason)
    assert world.in_slurm() == []
    status = world.status(name, namespace)
    assert (status["state"], status["reason"]) == ("Waiting", reason)
    assert reason in world.events.reasons()
    return world.condition("Submitted", name, namespace)[2]


async def test_a_namespace_that_is_granted_nothing(world: JobWorld) -> None:
    world.job(namespace="other")
    message = await refused(world, "JobsNotAllowed", namespace="other")
    assert "grants namespace other no user" in message
    assert "spec.jobs.tenants" in message


async def test_labels_that_a_namespace_gets_later_are_noticed(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{"namespaceLabels": {"team": "chemistry"}, "user": "carol"}]})
    world.job()
    await refused(world, "JobsNotAllowed")
    assert (await world.step()).requeue_after == LABELS_S


@pytest.mark.parametrize("spec", [{"clusterName": "other"}, {"namespace": "other"}])
async def test_a_script_that_cannot_be_submitted_is_not_read_every_minute(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, spec: dict[str, str]
) -> None:
    read = list[str]()

    def translate(*arguments: Any, **options: Any) -> Any:
        read.append(options["name"])
        return translation.translate(*arguments, **options)

    monkeypatch.setattr(translations, "translate", translate)
    world.job(**spec)
    where = spec.get("namespace", "team")
    await world.step(namespace=where)
    assert world.condition("Submitted", namespace=where)[1] in {"JobsNotAllowed", "ClusterNotFound"}
    for _ in range(3):
        await world.step(namespace=where)
    assert read == ["hello"]
    world.job(**spec, backoffLimit=1)
    await world.step(namespace=where)
    assert read == ["hello"] * 2


async def test_what_a_tenant_may_not_ask_for_stays_said_without_slurm(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{**world.tenants[0], "partitions": ["main"]}]})
    world.job(partition="gpu")
    await refused(world, "JobsNotAllowed")
    await world.clients.close_all()
    await world.step()
    assert world.condition("Submitted")[1] == "JobsNotAllowed"


async def test_the_user_of_another(world: JobWorld) -> None:
    world.job(user="bob")
    message = await refused(world, "JobsNotAllowed")
    assert "does not grant user bob to namespace team, only alice" in message


@pytest.mark.parametrize(("field", "value"), [("partition", "gpu"), ("account", "chem"), ("qos", "high")])
async def test_what_the_tenant_may_not_ask_for(world: JobWorld, field: str, value: str) -> None:
    lists = {"partition": "partitions", "account": "accounts", "qos": "qos"}
    world.cluster(jobs={"tenants": [{**world.tenants[0], lists[field]: ["main"]}]})
    world.job(**{field: value})
    message = await refused(world, "JobsNotAllowed")
    assert message.startswith(f"spec.{field}: '{value}' is not granted")


async def test_a_line_of_the_script_does_not_help(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{**world.tenants[0], "partitions": ["main"]}]})
    world.job(script="#!/bin/sh\n#SBATCH --partition=main,gpu\ntrue\n")
    assert "'gpu' is not granted" in await refused(world, "JobsNotAllowed")


async def test_the_first_that_is_granted_is_that_of_a_job_that_names_none(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{**world.tenants[0], "partitions": ["main", "more"]}]})
    world.job()
    await world.submitted()
    assert world.in_slurm()[0].partition == "main"


async def test_tenants_by_label(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{"namespaceLabels": {"team": "physics"}, "user": "carol"}]})
    world.job()
    await world.submitted()
    assert world.in_slurm()[0].user == "carol"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"script": "echo hello\n"}, "spec.script"),
        ({"script": "#!/bin/sh\n#SBATCH --no-such-flag\n"}, "line 2"),
        ({"memory": "much"}, "spec.memory"),
        ({"command": ["true"]}, "spec.command"),
        ({"parameters": {"user_id": 0}}, "spec.parameters"),
    ],
)
async def test_a_spec_that_is_no_job(world: JobWorld, spec: dict[str, Any], words: str) -> None:
    world.job(**spec)
    assert words in await refused(world, "InvalidSpec")


async def test_what_slurm_refuses_is_said_and_tried_again(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resubmission, "PAUSES_S", (0.05,))
    world.job(partition="gone")
    message = await refused(world, "SubmissionRefused")
    assert "partition" in message.lower()
    world.slurm.world.add_partition("gone")
    await world.submitted()


def refuse(monkeypatch: pytest.MonkeyPatch, words: str = "Invalid account") -> list[str]:
    """Let Slurm refuse all jobs; returns the names of those that were tried."""
    tried = list[str]()

    async def refused(_client: Any, _user: Any, _key: Any, jobs: Sequence[JobSpec]) -> Any:
        tried.append(jobs[0].name or "")
        raise errors.InvalidRequest(words, reports=(errors.Report(number=2045, name="ESLURM_INVALID_ACCOUNT"),))

    monkeypatch.setattr(slurm_calls, "submit", refused)
    return tried


async def test_a_job_that_is_refused_again_and_again_is_tried_ever_more_rarely(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refuse(monkeypatch)
    world.job()
    await refused(world, "SubmissionRefused")
    for count, pause in enumerate(PAUSES_S, 1):
        wake = (await world.step()).requeue_after
        assert wake is not None
        assert 0.7 * pause < wake < 1.3 * pause
        assert len(tried) == count
        assert f"Slurm refused the job ({count}), next attempt 20" in world.condition("Submitted")[2]
        # What comes meanwhile brings no other submission.
        await world.step()
        assert len(tried) == count
        world.ahead += timedelta(seconds=wake + 1)
        await world.until(lambda count=count: len(tried) > count)  # type: ignore[misc]


async def test_one_that_was_changed_is_tried_at_once(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = refuse(monkeypatch)
    world.job()
    for count, pause in enumerate(PAUSES_S[:6], 1):
        await world.until(lambda count=count: len(tried) == count)  # type: ignore[misc]
        world.ahead += timedelta(seconds=1.3 * pause)
    await world.until(lambda: len(tried) == 7)
    world.job(suspend=True)
    await world.until(lambda: world.condition("Submitted")[1] == "Suspended")
    world.job(suspend=False)
    await world.until(lambda: len(tried) == 8)
    wake = (await world.step()).requeue_after
    assert wake is not None
    assert wake < 1.3 * PAUSES_S[0]


async def test_a_new_leader_tries_refused_jobs_of_a_namespace_in_turn(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = refuse(monkeypatch)
    names = [f"job-{number}" for number in range(12)]
    for name in names:
        world.job(name)
        await world.until(lambda name=name: world.condition("Submitted", name)[1] == "SubmissionRefused")  # type: ignore[misc]
    assert sorted(tried) == sorted(names)
    minute = world.now().replace(second=0, microsecond=0)
    monkeypatch.setattr(world, "now", lambda: minute + world.ahead)
    world.most_resubmissions = 5
    # A turn within the next second would never come by this clock, which stands still between steps.
    world.luck = itertools.cycle((0.2, 0.5, 0.8)).__next__
    await world.kill()
    tried.clear()
    wakes = [(await settled(world, name)) for name in names]
    # What is refused once more takes from the same minute.
    assert 0 < len(tried) <= 5
    assert max(wakes) > 60
    # The others have their turn in the minutes that follow.
    while set(tried) != set(names):
        before = len(tried)
        world.ahead += timedelta(seconds=60)
        for name in names:
            _ = await settled(world, name)
        assert len(tried) - before <= 5


async def settled(world: JobWorld, name: str) -> float:
    """Run passes until one has nothing to do at once; returns when the next is due."""
    while True:
        wake = (await world.step(name)).requeue_after
        if wake is not None and wake > 1:
            return wake


def test_pauses_grow_to_a_day_or_a_quarter_of_an_hour_and_differ() -> None:
    early, late = (Resubmissions(30, lambda luck=luck: luck) for luck in (0.0, 1.0))  # type: ignore[misc]
    for count, pause in enumerate((*PAUSES_S, PAUSES_S[-1])):
        assert early.pause(count).total_seconds() == pytest.approx(0.75 * pause)
        assert late.pause(count).total_seconds() == pytest.approx(1.25 * pause)
    assert PAUSES_S[-1] == 86_400


@pytest.mark.parametrize("passing", [True, False])
def test_a_job_that_can_never_run_is_submitted_a_few_times_a_day(passing: bool) -> None:
    plan, day = Resubmissions(30, lambda: 0.0), timedelta(days=1)
    at, tries = timedelta(0), list[timedelta]()
    while at < 3 * day:
        at += plan.pause(len(tries), passing=passing)
        tries.append(at)
    assert sum(one < day for one in tries) <= 18
    assert sum(2 * day <= one < 3 * day for one in tries) <= 8
    # What passes within the first hour is not waited for any longer than before.
    assert sum(one < timedelta(hours=1) for one in tries) >= 5


@pytest.mark.parametrize(("passing", "first", "other"), [(True, 16, 6), (False, 9, 1)])
def test_the_numbers_of_submissions_in_the_docs(passing: bool, first: int, other: int) -> None:
    """As docs/jobs.md has them, where luck makes no pause longer or shorter."""
    plan, day = Resubmissions(30, lambda: 0.5), timedelta(days=1)
    tries = [timedelta(0)]
    while tries[-1] < 4 * day:
        tries.append(tries[-1] + plan.pause(len(tries) - 1, passing=passing))
    by_day = Counter(one // day for one in tries)
    assert [by_day[number] for number in range(4)] == [first, *[other] * 3]


def test_a_minute_of_a_namespace_has_room_for_so_many() -> None:
    luck = random.Random(1).random  # noqa: S311 - a simulation
    plan, now = Resubmissions(30, luck), datetime(2026, 11, 22, 12, tzinfo=UTC)
    minutes = Counter(plan.reserve("team", now, plan.pause(0)).replace(second=0, microsecond=0) for _ in range(1000))
    assert max(minutes.values()) == 30
    assert max(minutes) - now < timedelta(minutes=36)
    # Another namespace has all of its room; what is over is forgotten.
    assert plan.reserve("other", now, timedelta(0)) == now
    later = now + timedelta(hours=2)
    assert plan.reserve("team", later, timedelta(0)) == later
    assert plan.kept == 1


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (errors.InvalidRequest("limit", reports=(errors.Report(number=2050, name="ESLURM_ACCOUNTING_POLICY"),)), True),
        (errors.Unauthorized("no"), True),
        (errors.InvalidRequest("no reason given"), True),
        (errors.InvalidRequest("account", reports=(errors.Report(number=2045, name="ESLURM_INVALID_ACCOUNT"),)), False),
    ],
)
def test_which_refusals_may_pass_by_themselves(error: errors.SlurmError, passes: bool) -> None:
    assert slurm_calls.may_pass(error) is passes


async def test_with_a_cluster_that_cannot_be_read(world: JobWorld) -> None:
    world.cluster(extraConf=7)
    world.job()
    assert "Cluster ns/slurm has an invalid spec" in await refused(world, "ClusterNotReady")


async def test_without_a_cluster(world: JobWorld) -> None:
    world.job(clusterName="none")
    assert "there is no Cluster ns/none" in await refused(world, "ClusterNotFound")
    world.delete()
    await world.until(lambda: not world.exists())


async def test_without_an_answer_nothing_is_deleted(world: JobWorld) -> None:
    world.job()
    await world.submitted()
    await world.clients.close("cluster-1")
    world.delete()
    for _ in range(3):
        await world.step()
    assert world.exists()
    assert "cancelled once Slurm answers" in world.status()["summary"]
    await world.start()
    await world.until(lambda: not world.exists())
    assert world.in_slurm()[0].state.base == "CANCELLED"
