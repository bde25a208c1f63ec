"""The operator's process while its API server is away: it waits, says so once, and ends without a trace."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.control_plane import ControlPlane
from tests.support.gate import Gate, gate_before
from tests.support.operator_process import OperatorProcess, operator

PATIENCE: Final = 120

MANY: Final = 30
"""Attempts of all that waits for the API server: each has tried more than once by then."""


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    name = f"away-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    return name


@pytest.fixture
async def gate(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Gate]:
    async with gate_before(control_plane.kubeconfig, tmp_path / "kubeconfig") as one:
        yield one


async def until_tried(gate: Gate, operator: OperatorProcess) -> None:
    while gate.cut < MANY:
        assert operator.process.returncode is None, operator.log.read_text()
        await asyncio.sleep(0.05)


async def until_it_watches(control_plane: ControlPlane, namespace: str) -> None:
    """Wait until a leader answers for an object: what it begins with, such as the search for kinds, is over then."""
    kubectl, name = control_plane.kubectl, ("nodesets.slinky.slurm.net", "a", f"--namespace={namespace}")
    metadata = {"name": "a", "namespace": namespace}
    body = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "metadata": metadata}
    # The gate is served by this loop.
    await asyncio.to_thread(kubectl.apply, [{**body, "spec": {"clusterName": "none"}}])
    await asyncio.to_thread(wait_for, "its status", lambda: "status" in kubectl.get(*name), PATIENCE)


async def test_it_starts_while_the_api_server_is_away_and_waits_for_it(
    gate: Gate, namespace: str, tmp_path: Path
) -> None:
    gate.shut()
    async with operator(tmp_path / "kubeconfig", namespace, tmp_path) as running:
        await running.until("the API server does not answer, waiting for it")
        await until_tried(gate, running)
        assert (await running.status("/livez"), await running.status("/readyz")) == (200, 503)
        # Besides that it has said where it listens, and why it cannot have the Lease.
        said = [line for line in running.said() if "has been blocked" not in line]
        assert len(said) <= 4, running.log.read_text()
        gate.open()
        await running.until("the API server answers again")
        await running.until_status("/readyz", 200)
        await running.until("became leader")
        assert await running.end() == 0
        assert "Traceback" not in running.log.read_text()


async def test_asked_to_end_while_it_waits_it_ends(gate: Gate, namespace: str, tmp_path: Path) -> None:
    gate.shut()
    async with operator(tmp_path / "kubeconfig", namespace, tmp_path) as running:
        await running.until("waiting for it")
        await until_tried(gate, running)
        assert await running.end() == 0
        assert "Traceback" not in running.log.read_text()


async def test_a_leader_whose_api_server_goes_away_ends_with_one_line(
    control_plane: ControlPlane, gate: Gate, namespace: str, tmp_path: Path
) -> None:
    brief = ("--lease-duration=6", "--lease-renew-deadline=4", "--lease-retry-period=1")
    async with operator(tmp_path / "kubeconfig", namespace, tmp_path, *brief) as running:
        await running.until("became leader")
        await running.until_status("/readyz", 200)
        await until_it_watches(control_plane, namespace)
        gate.shut()
        assert await running.process.wait() == 1
        said = running.said()
        assert "Traceback" not in running.log.read_text()
        (line,) = [line for line in said if "leadership lost" in line]
        assert "the operator exits: leadership lost: not renewed" in line
