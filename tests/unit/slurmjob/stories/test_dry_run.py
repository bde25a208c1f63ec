"""Dry runs: the request that would be sent is shown, it is the one that is sent otherwise, and nothing is submitted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.kube.resources import SECRETS
from slurm_client.testing import RecordedRequest
from tests.support.slurm_jobs import SCRIPT, Killed, until
from tests.unit.slurmjob.worlds import JobWorld, job_world

KIB = 1024


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def sent(world: JobWorld) -> list[RecordedRequest]:
    return world.slurm.calls("post_job_submit")


async def shown(world: JobWorld, **spec: Any) -> dict[str, Any]:
    """The request of a dry run that has come to its end."""
    world.job(dryRun=True, **spec)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["state"], world.status()["reason"]) == ("DryRun", "RequestShown")
    assert sent(world) == []
    request: dict[str, Any] = world.status()["request"]
    return request


async def really(world: JobWorld, **spec: Any) -> RecordedRequest:
    """What is sent for the same spec, by a SlurmJob of the same name and uid."""
    world.delete()
    world.job(**spec)
    await world.submitted()
    (request,) = sent(world)
    return request


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"script": "#!/bin/sh\n#SBATCH --time=5 --comment='grüße'\ntrue\n", "partition": "main", "nodes": 2},
        {"script": None, "command": ["hostname", "-f"], "env": [{"name": "A", "value": "b c"}], "array": "0-3%2"},
        {"parameters": {"nice": 10, "dependency": "singleton"}, "backoffLimit": 3, "ttlSecondsAfterFinished": 3600},
        {"logs": {}, "output": "/data/%j", "user": "alice"},
    ],
)
async def test_the_request_is_the_one_that_would_be_sent(world: JobWorld, spec: dict[str, Any]) -> None:
    request = await shown(world, **spec)
    real = await really(world, **spec)
    assert (request["method"], request["path"]) == (real.method, real.path)
    assert json.loads(request["body"]) == real.body
    content = request["body"].encode()
    assert str(len(content)) == str(request["size"]) == real.headers["Content-Length"]
    assert request["sha256"] == hashlib.sha256(content).hexdigest()
    assert real.body["job"]["extra"] == "slurmjob.slinky.slurm.net/uid=uid-team-hello.0"


async def test_it_names_the_numbers_of_jobs_that_it_waits_for(world: JobWorld) -> None:
    world.job(dryRun=True, dependsOn=[{"name": "first"}])
    await world.until(lambda: world.condition("Submitted")[1] == "DependencyNotSubmitted")
    world.job("first")
    number = await world.submitted("first")
    await world.until(lambda: world.condition("Finished")[0] == "True")
    body = json.loads(world.status()["request"]["body"])
    assert body["job"]["dependency"] == f"afterok:{number}"
    assert len(sent(world)) == 1


async def test_it_ends_without_a_job(world: JobWorld) -> None:
    _ = await shown(world)
    for kind, value in {"Submitted": "False", "Running": "False", "Finished": "True"}.items():
        assert world.condition(kind)[:2] == (value, "RequestShown")
    assert world.condition("Finished")[2] == (
        "dry run: nothing is submitted; status.request has the request that would be sent, "
        "POST /slurm/v0.0.45/job/submit"
    )
    status = world.status()
    assert status["user"] == "alice"
    assert "jobId" not in status
    assert "submission" not in status
    for _ in range(3):
        await world.step()
    assert world.events.told == [("Normal", "RequestShown", world.condition("Finished")[2])]
    assert not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers")
    world.delete()
    assert not world.exists()


async def test_lines_that_lose_are_named(world: JobWorld) -> None:
    _ = await shown(world, script="#!/bin/sh\n#SBATCH --time=5\ntrue\n", time="10")
    assert "--time" in world.condition("Submitted")[2]


async def test_no_token_is_shown(world: JobWorld) -> None:
    _ = await shown(world)
    written = json.dumps([world.kube.statuses, world.events.told])
    assert "eyJ" not in written
    assert not any(one.headers["X-SLURM-USER-TOKEN"] in written for one in world.slurm.requests)


@pytest.mark.parametrize("arguments", [0, 4])
async def test_a_long_script_is_left_out(world: JobWorld, arguments: int) -> None:
    script = SCRIPT + "#" * 128 * KIB
    spec = {"script": script, "args": ["a" * 32 * KIB] * arguments}
    request = await shown(world, **spec)
    real = await really(world, **spec)
    assert (request["scriptSize"], request["scriptSha256"]) == (
        len(script),
        hashlib.sha256(script.encode()).hexdigest(),
    )
    assert str(request["size"]) == real.headers["Content-Length"]
    content = json.dumps(real.body, separators=(",", ":")).encode()
    assert request["sha256"] == hashlib.sha256(content).hexdigest()
    if arguments:
        assert "body" not in request
        assert "without its body" in world.events.told[0][2]
    else:
        assert json.loads(request["body"]) == {key: value for key, value in real.body.items() if key != "script"}
        assert "without the script" in world.events.told[0][2]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"script": "echo hello\n"}, "InvalidSpec"),
        ({"user": "bob"}, "JobsNotAllowed"),
        ({"suspend": True}, "Suspended"),
        ({"clusterName": "none"}, "ClusterNotFound"),
        ({"results": [{"volume": {"persistentVolumeClaim": {"claimName": "out"}}}]}, "VolumeNotFound"),
        ({"parameters": {"nosuch": 1}}, "InvalidSpec"),
    ],
)
async def test_what_is_wrong_is_said_as_without_it(world: JobWorld, spec: dict[str, Any], reason: str) -> None:
    world.job(dryRun=True, **spec)
    world.job("real", **spec)
    await world.until(lambda: all(world.condition("Submitted", name)[1] == reason for name in ("hello", "real")))
    assert world.condition("Submitted") == world.condition("Submitted", "real")
    assert world.condition("Finished")[0] == "False"
    assert "request" not in world.status()


async def test_what_the_data_parser_lacks_is_said(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async with job_world() as old:
        old.slurm.versions = ("v0.0.40",)
        await old.kill()
        old.job(dryRun=True, parameters={"segment_size": 2})
        old.job("real", parameters={"segment_size": 2})
        await old.until(
            lambda: all(old.condition("Submitted", name)[1] == "SubmissionRefused" for name in ("hello", "real"))
        )
        assert "segment_size" in old.condition("Submitted")[2]
        assert "request" not in old.status()


async def test_without_slurm_or_its_key_it_waits(world: JobWorld) -> None:
    secret = world.kube.objects["secrets", "ns", "slurm-auth-copy"]
    world.kube.put(SECRETS, {**secret, "data": {}})
    world.job(dryRun=True)
    await world.until(lambda: world.condition("Submitted")[1] == "KeyPending")
    await world.clients.close("cluster-1")
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotReady")
    world.kube.put(SECRETS, secret)
    await world.start()
    await world.until(lambda: world.status()["state"] == "DryRun")


async def test_the_operator_may_end_before_it_is_written(world: JobWorld) -> None:
    def before(status: dict[str, Any]) -> None:
        if status.get("request"):
            raise Killed

    world.job(dryRun=True)
    world.kube.before_status = before
    with pytest.raises(Killed):
        await world.until(lambda: False)
    world.kube.before_status = None
    await world.kill()
    await world.until(lambda: world.status().get("request"))
    assert sent(world) == []


async def test_it_goes_after_its_time(world: JobWorld) -> None:
    async with world.working():
        world.job(dryRun=True, ttlSecondsAfterFinished=0)
        await until(lambda: not world.exists())
    assert sent(world) == []
