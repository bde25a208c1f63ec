"""The operator's process and Leases of the name of Slinky's operator, on a real API server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import EVENTS, LEASES, NAMESPACES
from slinky_operator.nodeset.model.takeover import LEASE
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import operator

SOONER = """
from slinky_operator.kube.leadership import legacy_operator
legacy_operator.LOOK_EVERY, legacy_operator.SHORTEST, legacy_operator.MARGIN = 0.5, {}, 2.0
"""
"""A Lease counts as given up after so many seconds and two, instead of after 20; the times themselves are tested in
`tests/unit/kube/leadership/test_legacy_operator.py`."""


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test")


async def namespace(kube: KubeClient, name: str) -> str:
    whole = f"{name}-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": whole}})
    return whole


async def hold(kube: KubeClient, namespace: str, renewed: str) -> Object:
    spec = {"holderIdentity": "manager-0_x", "leaseDurationSeconds": 1, "renewTime": renewed, "acquireTime": renewed}
    return await kube.create(LEASES, {"metadata": {"name": LEASE}, "spec": spec}, namespace)


async def renew(kube: KubeClient, namespace: str) -> None:
    while True:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await kube.merge_patch(LEASES, LEASE, {"spec": {"renewTime": now}}, namespace)
        await asyncio.sleep(0.5)


async def test_a_lease_of_2099_that_a_tenant_has_written_holds_up_nothing(
    control_plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    own, tenant = await namespace(kube, "own"), await namespace(kube, "tenant")
    await hold(kube, tenant, "2099-01-01T00:00:00.000000Z")
    renewing = asyncio.create_task(renew(kube, tenant))
    async with operator(control_plane.kubeconfig, own, tmp_path, f"--namespaces={own},{tenant}") as running:
        await running.until_status("/readyz", 200)
        (line,) = [line for line in running.said() if LEASE in line]
        assert f"in namespaces {tenant} are not waited for" in line
        assert await running.end() == 0
    assert not renewing.done()
    renewing.cancel()


async def test_slinkys_operator_is_waited_for_as_long_as_it_is_seen_at_work(
    control_plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    own, home = await namespace(kube, "own"), await namespace(kube, "slinky")
    # Its machine's clock is far behind.
    await hold(kube, home, "2020-01-01T00:00:00.000000Z")
    renewing = asyncio.create_task(renew(kube, home))
    flags = (f"--namespaces={own},{home}", f"--slinky-namespaces={home}")
    async with operator(control_plane.kubeconfig, own, tmp_path, *flags, first=SOONER.format(8.0)) as running:
        await running.until(f"manager-0_x renews Lease {home}/{LEASE}: another operator is at work")
        assert (await running.status("/livez"), await running.status("/readyz")) == (200, 503)
        while not (await kube.list(EVENTS, home)).items:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
        assert not renewing.done()
        renewing.cancel()
        await running.until_status("/readyz", 200)
        assert await running.end() == 0


async def test_what_a_former_holder_has_left_is_not_waited_for_long(
    control_plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> None:
    own = await namespace(kube, "own")
    await hold(kube, own, "2099-01-01T00:00:00.000000Z")
    async with operator(control_plane.kubeconfig, own, tmp_path, first=SOONER.format(1.0)) as running:
        await running.until("it is watched for a while whether that is still renewed")
        await running.until_status("/readyz", 200)
        assert "another operator is at work" not in running.log.read_text()
        assert await running.end() == 0
