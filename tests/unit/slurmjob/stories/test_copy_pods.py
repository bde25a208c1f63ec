"""Pods that copy files and are evicted, or are on a node that is lost: others make the copies, a few times."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from slinky_operator.kube.resources import PODS
from slinky_operator.pod_programs.joblogs.copies.orders import Report
from slinky_operator.slurmjob.pods import pod_state
from tests.unit.slurmjob.file_worlds import FileWorld, file_world, result

COPIED = Report("", is_final=True, files=3, size=120)


@pytest.fixture
async def files() -> AsyncIterator[FileWorld]:
    async with file_world() as world:
        yield world


async def until_second(files: FileWorld) -> None:
    """Another pod makes the copies, after a pause."""
    await files.world.until(lambda: files.world.condition("ResultsCollected")[1] == "CopyFailed")
    files.world.ahead += timedelta(seconds=30)
    await files.world.until(lambda: "hello-results-2" in files.names())
    files.pod_ends([COPIED], "hello-results-2")
    await files.world.until(lambda: files.world.condition("ResultsCollected")[0] == "True")


async def test_an_evicted_pod_is_followed_by_another(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    files.pod_says(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    await until_second(files)


async def test_a_pod_on_a_lost_node_is_followed_by_another(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    pod = files.get(PODS, "hello-results")
    moment = files.world.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {**pod["metadata"], "deletionTimestamp": moment}
    spec = {**pod["spec"], "nodeName": "node-7"}
    files.kube.put(PODS, {**pod, "metadata": about, "spec": spec, "status": {"phase": "Running"}})
    await files.world.step()
    assert files.files()["results"].get("attempts", 0) == 0
    files.world.ahead += pod_state.LOST
    await files.world.until(lambda: files.files()["results"].get("attempts"))
    said = files.world.condition("ResultsCollected")[2]
    assert "pod hello-results was deleted, but node-7 has not removed it" in said
    await until_second(files)
