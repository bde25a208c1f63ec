"""What is not submitted, and what the user reads about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.jobs import translation
from slinky_operator.slurmjob import translations
from slinky_operator.slurmjob.execute import submission
from slinky_operator.slurmjob.model.stages.submission import LABELS_S
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
    monkeypatch.setattr(submission, "REFUSED_S", (0.05,))
    world.job(partition="gone")
    message = await refused(world, "SubmissionRefused")
    assert "partition" in message.lower()
    world.slurm.world.add_partition("gone")
    await world.submitted()


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
