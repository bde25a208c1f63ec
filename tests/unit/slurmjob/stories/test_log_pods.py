"""Pods with output that are evicted, or never start: others take their place, and nobody can make that a hot loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.follower.job_file import JobState
from slinky_operator.slurmjob.pods import bodies, pod_state
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.log_worlds import LogWorld
from tests.unit.slurmjob.worlds import job_world

EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


def says(logs: LogWorld, status: Object, **metadata: Any) -> str:
    """Let Kubernetes say something of the pod, and return its uid."""
    pod = logs.pod
    logs.kube.put(PODS, {**pod, "metadata": {**pod["metadata"], **metadata}, "status": status})
    uid: str = pod["metadata"]["uid"]
    return uid


def counted(logs: LogWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kinds that are read from the API server."""
    read, found = logs.kube.get, list[str]()

    async def get(resource: Resource, name: str, namespace: str | None = None) -> Object:
        found.append(resource.kind)
        return await read(resource, name, namespace)

    monkeypatch.setattr(logs.kube, "get", get)
    return found


async def test_an_evicted_pod_is_replaced_while_the_job_runs(logs: LogWorld) -> None:
    await logs.start()
    spec = logs.pod["spec"]
    async with logs.world.working():
        old = says(logs, EVICTED)
        await until(lambda: logs.find(PODS) is not None and logs.pod["metadata"]["uid"] != old)
    assert logs.pod["spec"] == spec
    assert logs.condition[:2] == ("True", "LogsShown")


async def test_each_further_one_comes_later(logs: LogWorld) -> None:
    await logs.start()
    for pause in (0, 30, 120, 600, 600):
        old = says(logs, EVICTED)
        result = await logs.world.step()
        if pause:
            assert logs.pod["metadata"]["uid"] == old
            words = "pod hello-logs ended before its job: Evicted: The node was low on resource: memory."
            assert logs.condition == (
                "False",
                "LogPodEnded",
                f"{words}; the operator creates another one within 10 min",
            )
            assert 0 < (result.requeue_after or 0) <= pause
        logs.world.ahead += timedelta(seconds=pause)
        await logs.world.step()
        assert logs.pod["metadata"]["uid"] != old
        assert logs.condition[:2] == ("True", "LogsShown")


async def test_a_job_that_ends_meanwhile_is_shown_to_its_end(logs: LogWorld) -> None:
    number = await logs.start()
    says(logs, EVICTED)
    await logs.world.step()
    old = says(logs, EVICTED)
    await logs.world.step()
    assert logs.condition[1] == "LogPodEnded"
    logs.world.slurm.world.exit_job(number, 3)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert (logs.file.state, logs.file.status) == (JobState.ENDED, 3)
    assert logs.pod["metadata"]["uid"] != old
    new = says(logs, EVICTED)
    await logs.world.kill()
    await logs.world.step()
    assert logs.pod["metadata"]["uid"] == new


async def test_a_pod_that_has_ended_with_its_job_stays(logs: LogWorld) -> None:
    number = await logs.start()
    logs.world.slurm.world.exit_job(number, 3)

    def ends(status: Object) -> None:
        """The pod ends as the job did, and the operator right after it."""
        if any(one["type"] == "Finished" and one["status"] == "True" for one in status.get("conditions") or ()):
            says(logs, {"phase": "Failed"})
            logs.kube.before_status = None
            raise InterruptedError

    logs.kube.before_status = ends
    with pytest.raises(InterruptedError):
        await logs.world.until(lambda: False)
    uid = logs.pod["metadata"]["uid"]
    await logs.world.kill()
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    assert logs.pod["metadata"]["uid"] == uid


async def test_one_that_somebody_keeps_is_waited_for(logs: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await logs.start()

    async def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is being deleted")

    monkeypatch.setattr(logs.kube, "delete", never)
    old = says(logs, EVICTED, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["tenant.example/kept"])
    result = await logs.world.step()
    assert (result.requeue_after or 0) > 1
    why = pod_state.end_message(logs.pod)
    assert logs.condition[1:] == (
        "LogPodEnded",
        f"pod hello-logs ended before its job: {why}; the operator creates another one once it is gone",
    )
    logs.kube.forget(PODS, logs.pod)
    await logs.world.step()
    assert logs.pod["metadata"]["uid"] != old


async def test_the_secret_of_a_pod_that_does_not_start_comes_back(
    logs: LogWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await logs.start()
    says(logs, {"phase": "Pending"})
    before = logs.file
    secret = logs.find(SECRETS)
    assert secret is not None
    del logs.kube.objects["secrets", "team", "hello-logs"]
    read = counted(logs, monkeypatch)
    result = await logs.world.step()
    assert 0 < (result.requeue_after or 0) <= pod_state.LOOKS_S[0]
    assert read == []
    logs.world.ahead += timedelta(seconds=pod_state.LOOKS_S[0])
    result = await logs.world.step()
    assert logs.file == before
    assert read == ["Secret", "Pod"]
    # Something else may be due before.
    assert 0 < (result.requeue_after or 0) <= pod_state.LOOKS_S[1]


async def test_a_pod_that_runs_costs_no_request(logs: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await logs.start()
    says(logs, {"phase": "Running"})
    read = counted(logs, monkeypatch)
    await logs.world.step()
    await logs.world.step()
    result = await logs.world.step()
    assert read == []
    assert (result.requeue_after or 0) > pod_state.LOOKS_S[0]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (EVICTED, "Evicted: The node was low on resource: memory."),
        ({"phase": "Failed"}, "Kubernetes does not say why"),
        ({"phase": "Failed", "message": "x" * 1000}, "x" * (pod_state.LONGEST - 1) + "…"),
        (
            {
                "containerStatuses": [
                    {"name": "stdout", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
                    {"name": "stderr", "state": {"running": {}}},
                ]
            },
            "stdout with exit code 137, OOMKilled",
        ),
    ],
)
def test_why_it_has_ended_is_said(status: Object, words: str) -> None:
    assert pod_state.end_message({"metadata": {"name": "a"}, "status": status}) == words


def test_what_is_kept_of_a_pod_tells_its_end() -> None:
    pod = {"metadata": {"name": "a", "namespace": "b"}, "spec": {}, "status": EVICTED}
    bodies.prune_pod(pod)
    assert pod_state.has_ended(pod)


async def test_a_pod_that_is_deleted_after_the_end_is_said_to_be_gone(logs: LogWorld) -> None:
    number = await logs.start()
    logs.world.slurm.world.exit_job(number)
    await logs.world.until(lambda: logs.world.status()["logs"].get("isComplete"))
    assert logs.condition[:2] == ("True", "LogsShown")
    for _ in range(3):
        await logs.world.step()
    assert logs.condition[:2] == ("True", "LogsShown")
    await logs.kube.delete(PODS, "hello-logs", "team")
    await logs.world.until(lambda: logs.condition[0] == "False")
    assert logs.condition[1] == "LogPodGone"
    assert "pod hello-logs was deleted after the job ended; the operator does not create it again" in logs.condition[2]
    for _ in range(3):
        await logs.world.step()
    assert logs.find(PODS) is None


async def test_a_pod_that_the_cache_does_not_have_yet_is_not_gone(
    logs: LogWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await logs.start()
    logs.world.slurm.world.exit_job(number)
    await logs.world.until(lambda: logs.world.status()["logs"].get("isComplete"))
    monkeypatch.setattr(logs.world.logs, "pods", Store())
    for _ in range(3):
        await logs.world.step()
    assert logs.condition[:2] == ("True", "LogsShown")
