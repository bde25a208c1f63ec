"""The follower of a SlurmJob reads the server of its node by what the controller has written for it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator

import pytest

from slinky_operator.kube.resources import PODS
from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.slurm import naming
from tests.support import job_logs
from tests.support.job_logs import FOLLOWER, Follower, Node
from tests.unit.slurmjob.log_worlds import KEY, UID, LogWorld, node_pod
from tests.unit.slurmjob.worlds import job_world


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A server whose folder and port are those of all nodes."""
    with job_logs.node() as one:
        assert job_logs.KEY == KEY
        (one.root / "job").mkdir(mode=0o755)
        monkeypatch.setattr(naming, "JOB_OUTPUT_FOLDER", str(one.output))
        monkeypatch.setattr(naming, "JOB_LOGS_PORT", one.port)
        yield one


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


async def test_the_output_is_printed_live_and_the_follower_ends_as_the_job(node: Node, logs: LogWorld) -> None:
    for number in range(4):
        logs.kube.put(PODS, node_pod(f"w-{number}", "127.0.0.1"))
    job = await logs.start()
    name = logs.world.status()["logs"]["name"]
    mounted = node.root / "job"

    def refresh() -> None:
        """Do what the kubelet does."""
        secret = logs.kube.objects["secrets", "team", "hello-logs"]
        new = mounted / ".new"
        new.write_bytes(base64.b64decode(secret["data"][job_file.NAME]))
        new.chmod(0o644)
        new.rename(mounted / job_file.NAME)

    refresh()
    output = node.write(f"{name}-{job}.out", b"one\n", UID)
    node.write(f"{name}-{job}.err", b"bad\n", UID)
    stdout, stderr = (Follower(mounted, stream, FOLLOWER, 60) for stream in ("stdout", "stderr"))
    try:
        await asyncio.to_thread(stdout.prints, b"one\n")
        with output.open("ab") as opened:
            opened.write(b"two\n")
        await asyncio.to_thread(stdout.prints, b"one\ntwo\n")
        logs.world.slurm.world.exit_job(job, 3)
        await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
        refresh()
        await asyncio.to_thread(stdout.ends_with, 3)
        await asyncio.to_thread(stderr.ends_with, 3)
        assert (stdout.printed, stderr.printed) == (b"one\ntwo\n", b"bad\n")
    finally:
        stdout.stop()
        stderr.stop()
