"""Two electors, a frozen leader, and what the API server saw of it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership import lease
from slinky_operator.kube.leadership.fence import DeadlineFence, OpenFence
from slinky_operator.kube.leadership.lease import Elector, LeadershipLost
from slinky_operator.kube.resources import CONFIGMAPS, LEASES, NAMESPACES
from tests.integration.kube.writer import LOST
from tests.support import audit
from tests.support.control_plane import ControlPlane

ROOT = Path(__file__).parents[3]


class Clock:
    """The clock of one process; it jumps when the process was frozen."""

    def __init__(self) -> None:
        self.jump = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.jump


class Replica:
    """One operator process: elector, fence and a client for its work."""

    def __init__(self, connection: Connection, namespace: str, identity: str) -> None:
        self.clock = Clock()
        self.fence = DeadlineFence(self.clock)
        self.client = KubeClient(connection, fence=self.fence, field_manager=identity)
        self.elector = Elector(
            KubeClient(connection, fence=OpenFence(), field_manager=identity),
            namespace=namespace,
            name="lease",
            identity=identity,
            fence=self.fence,
            duration=12.0,
            renew_deadline=9.0,
            retry_period=0.5,
            clock=self.clock,
        )
        self.task = asyncio.create_task(self.elector.run())

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[Connection]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield connection


@pytest.fixture
async def namespace(connection: Connection) -> str:
    name = f"lease-{uuid.uuid4().hex[:8]}"
    client = KubeClient(connection, fence=OpenFence(), field_manager="test")
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


async def test_a_frozen_leader_writes_nothing_after_its_successor_began(connection: Connection, namespace: str) -> None:
    first = Replica(connection, namespace, "first")
    await first.elector.leading.wait()
    body = {"metadata": {"name": "state", "namespace": namespace}, "data": {"writer": "first"}}
    await first.client.apply(CONFIGMAPS, body)

    # The elector's task is cancelled to stand for a process that does not run; nobody tells its fence.
    await first.end()
    second = Replica(connection, namespace, "second")
    await second.elector.leading.wait()
    await second.client.apply(CONFIGMAPS, {**body, "data": {"writer": "second"}})

    for write in (
        first.client.apply(CONFIGMAPS, body),
        first.client.delete(CONFIGMAPS, "state", namespace, uid=None),
        first.client.merge_patch(CONFIGMAPS, "state", {"data": {"writer": "first"}}, namespace),
    ):
        with pytest.raises(errors.Fenced):
            await write
    state = await second.client.get(CONFIGMAPS, "state", namespace)
    assert state["data"] == {"writer": "second"}
    taken = await second.client.get(LEASES, "lease", namespace)
    assert taken["spec"]["holderIdentity"] == "second"
    assert taken["spec"]["leaseTransitions"] == 1
    await second.end()


async def test_a_leader_whose_clock_jumped_ends_and_its_writes_are_held_back_at_once(
    connection: Connection, namespace: str
) -> None:
    first = Replica(connection, namespace, "first")
    await first.elector.leading.wait()
    first.clock.jump = 60.0
    with pytest.raises(errors.Fenced, match="not renewed in time"):
        await first.client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": namespace}})
    with pytest.raises(LeadershipLost):
        await first.task
    second = Replica(connection, namespace, "second")
    await second.elector.leading.wait()
    await second.end()


async def test_a_lease_given_back_is_taken_at_once(
    connection: Connection, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RELEASE_TIMEOUT", 60.0)
    first = Replica(connection, namespace, "first")
    await first.elector.leading.wait()
    second = Replica(connection, namespace, "second")
    await first.end()
    await first.elector.release()
    given = await second.client.get(LEASES, "lease", namespace)
    assert given["spec"]["holderIdentity"] in {"", "second"}
    await second.elector.leading.wait()
    with pytest.raises(errors.Fenced, match="given up"):
        await first.client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": namespace}})
    await second.end()


def written(log: Path, namespace: str, identity: str) -> list[datetime]:
    """When the API server received writes of this process, by its audit log."""
    times: list[datetime] = []
    for entry in audit.events(log):
        ref = entry.get("objectRef") or {}
        if ref.get("namespace") == namespace and ref.get("name") == f"written-by-{identity}":
            times.append(datetime.fromisoformat(entry["requestReceivedTimestamp"]))
    return times


async def start_writer(control_plane: ControlPlane, namespace: str, identity: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.kube.writer",
        str(control_plane.kubeconfig),
        namespace,
        identity,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )


async def writing(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    assert await process.stdout.readline() == b"writing\n"


async def test_a_process_stopped_among_its_writes_sends_none_of_them_when_it_goes_on(
    control_plane: ControlPlane, connection: Connection, namespace: str
) -> None:
    first = await start_writer(control_plane, namespace, "first")
    await writing(first)
    while len(written(control_plane.audit_log, namespace, "first")) < 50:
        assert first.returncode is None
        await asyncio.sleep(0.1)
    first.send_signal(signal.SIGSTOP)
    second = await start_writer(control_plane, namespace, "second")
    await writing(second)
    first.send_signal(signal.SIGCONT)
    assert await first.wait() == LOST
    second.kill()
    await second.wait()
    client = KubeClient(connection, fence=OpenFence(), field_manager="test")
    taken = await client.get(LEASES, "lease", namespace)
    acquired = datetime.fromisoformat(taken["spec"]["acquireTime"])
    assert taken["spec"]["holderIdentity"] == "second"
    of_first = written(control_plane.audit_log, namespace, "first")
    of_second = written(control_plane.audit_log, namespace, "second")
    assert max(of_first) < acquired < min(of_second)
