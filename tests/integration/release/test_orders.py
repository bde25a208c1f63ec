"""Operator, CRDs and objects come and go in any order: the operator goes on where it stopped, with what is there."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from hack.packaging.render import OPERATOR_CHART
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess, operator
from tests.support.served import wait_until_kinds_are_served

pytestmark = pytest.mark.full

CLUSTERS = "clusters.slinky.slurm.net"


class Site:
    """A namespace, and what is in it."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.kubectl = control_plane.kubectl
        self.namespace = f"orders-{uuid.uuid4().hex[:8]}"
        self.kubectl("create", "namespace", self.namespace)

    def cluster(self) -> dict[str, Any]:
        """A Cluster with all defaults."""
        place = {"name": "slurm", "namespace": self.namespace}
        return {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster", "metadata": place, "spec": {}}

    def names(self, kind: str) -> list[str]:
        items = self.kubectl.get(kind, f"--namespace={self.namespace}")["items"]
        return [one["metadata"]["name"] for one in items]

    async def until(self, run: OperatorProcess, kind: str, *names: str) -> None:
        """Wait until a kind has objects of these names and no others."""
        while await asyncio.to_thread(self.names, kind) != list(names):
            assert run.process.returncode is None, run.log.read_text()
            await asyncio.sleep(0.1)


@pytest.mark.timeout(120)
async def test_an_operator_without_its_crds_waits_for_them_and_one_that_comes_back_finishes_deletions(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    site = Site(control_plane)
    async with operator(control_plane.kubeconfig, site.namespace, tmp_path) as run:
        await run.until("slinky.slurm.net")
        assert await run.status("/readyz") != 200
        site.kubectl("apply", "--server-side", "--filename", str(OPERATOR_CHART / "crds"))
        wait_until_kinds_are_served(site.kubectl)
        await run.until_status("/readyz", 200)
        site.kubectl.apply([site.cluster()])
        await site.until(run, "statefulsets", "slurm-controller")
        assert await run.end() == 0

    site.kubectl("delete", CLUSTERS, "slurm", f"--namespace={site.namespace}", "--wait=false")
    assert site.names(CLUSTERS) == ["slurm"]
    async with operator(control_plane.kubeconfig, site.namespace, tmp_path) as run:
        await site.until(run, CLUSTERS)
        await site.until(run, "statefulsets")
