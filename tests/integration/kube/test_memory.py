"""What anybody puts into the cluster does not fill the operator's memory, and who owns the namespace gets to know."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    NAMESPACES,
    NODESETS,
    PODS,
    SERVICEACCOUNTS,
    SLURMJOBS,
    Resource,
)
from tests.support import served
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess, operator

pytestmark = pytest.mark.long(180)

MIB = 2**20

MANY = 100
"""Objects of a megabyte each: more than 300 MiB once they were decoded and kept."""

SLACK = 2.0
"""How much more memory a start may take at most with them than without: pages of lists, of some kinds at once, and
what waits for the garbage collector. It was more than four times as much."""

LONG = "x" * 1_000_000

OURS = {
    labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
    labels.LABEL_CLUSTER_NAME: "slurm",
    labels.LABEL_CLUSTER_UID: "made-up",
    labels.LABEL_NODESET_NAME: "w",
    labels.LABEL_NODESET_UID: "made-up",
}

CLUSTER = {"server": "http://127.0.0.1:9", "token": {"secretRef": "token"}}
"""A Slurm elsewhere that does not answer."""


@pytest.fixture(autouse=True, scope="module")
def _jobs(control_plane: ControlPlane) -> None:
    served.apply_job_crds(control_plane.kubectl)


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test")


@pytest.fixture
async def namespaces(client: KubeClient) -> AsyncIterator[tuple[str, str]]:
    """One with a Cluster, and a stranger's."""
    stem = f"memory-{uuid.uuid4().hex[:8]}"
    names = stem, f"{stem}-foreign"
    for name in names:
        await create(client, NAMESPACES, {"metadata": {"name": name}})
    await create(client, CLUSTERS, {"metadata": {"name": "slurm", "namespace": stem}, "spec": CLUSTER})
    yield names
    for name in names:
        # What is left would fill the memory of the operators of other tests.
        for resource in (CONFIGMAPS, PODS, SLURMJOBS):
            for obj in (await client.list(resource, name)).items:
                about: dict[str, Any] = {"metadata": {"finalizers": None}}
                await client.merge_patch(resource, obj["metadata"]["name"], about, name)
                await client.delete(resource, obj["metadata"]["name"], name, uid=obj["metadata"]["uid"])


async def create(client: KubeClient, resource: Resource, body: Object) -> None:
    await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **body})


async def make(client: KubeClient, resource: Resource, namespace: str, count: int, body: Object) -> None:
    """Create objects of a megabyte, a few at a time."""
    gate = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with gate:
            about = {"name": f"{resource.plural}-{number}", "namespace": namespace, **body.get("metadata", {})}
            await create(client, resource, {**body, "metadata": about})

    await asyncio.gather(*map(one, range(count)))


async def peak(control_plane: ControlPlane, namespaces: tuple[str, str], folder: Path, *flags: str) -> float:
    """MiB that the process has taken at most when it is ready and has looked at everything."""
    async with watching(control_plane, namespaces, folder, *flags) as process:
        return await settled_peak(process)


def watching(control_plane: ControlPlane, namespaces: tuple[str, str], folder: Path, *flags: str) -> Any:
    both = f"--namespaces={','.join(namespaces)}"
    return operator(control_plane.kubeconfig, namespaces[0], folder, both, "--slurmjobs", "--no-watch-nodes", *flags)


async def settled_peak(process: OperatorProcess) -> float:
    await process.until_status("/readyz", 200)
    await process.until("all caches are filled")
    return await highest(process)


async def highest(process: OperatorProcess) -> float:
    """MiB that a process has taken at most so far."""
    status = await asyncio.to_thread(Path(f"/proc/{process.process.pid}/status").read_text)
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


async def condition(client: KubeClient, resource: Resource, name: str, namespace: str, reason: str) -> str:
    """Wait for a condition of a reason on an object; returns its message."""
    while True:
        found = (await client.get(resource, name, namespace)).get("status") or {}
        for one in found.get("conditions") or ():
            if one.get("reason") == reason:
                return str(one["message"])
        await asyncio.sleep(0.1)


@pytest.mark.full
async def test_labelled_objects_of_strangers_cost_no_memory(
    client: KubeClient, control_plane: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    without = await peak(control_plane, namespaces, tmp_path)
    foreign = namespaces[1]
    await make(client, CONFIGMAPS, foreign, MANY, {"metadata": {"labels": OURS}, "data": {"text": LONG}})
    container = {"name": "slurmd", "image": "x", "env": [{"name": "TEXT", "value": LONG}]}
    pod = {"metadata": {"labels": OURS}, "spec": {"containers": [container], "automountServiceAccountToken": False}}
    await create(client, SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": foreign}})
    await make(client, PODS, foreign, MANY, pod)
    within = await peak(control_plane, namespaces, tmp_path)
    assert within < SLACK * without, f"{without:.0f} MiB without, {within:.0f} MiB with"


@pytest.mark.full
async def test_long_scripts_cost_no_memory(
    client: KubeClient, control_plane: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    without = await peak(control_plane, namespaces, tmp_path)
    script = {"spec": {"clusterName": "slurm", "script": "#!/bin/sh\n#" + LONG}}
    await make(client, SLURMJOBS, namespaces[0], MANY, script)
    within = await peak(control_plane, namespaces, tmp_path)
    assert within < SLACK * without, f"{without:.0f} MiB without, {within:.0f} MiB with"


@pytest.mark.full
async def test_pods_of_strangers_cost_no_memory_when_a_cluster_goes(
    client: KubeClient, control_plane: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    """Before it lets a Cluster go, it looks at all pods of the namespace, past its caches."""
    own = namespaces[0]
    container = {"name": "any", "image": "x", "env": [{"name": "TEXT", "value": LONG}]}
    await create(client, SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": own}})
    pod = {"spec": {"containers": [container], "automountServiceAccountToken": False}}
    await make(client, PODS, own, MANY, pod)
    await create(client, CLUSTERS, {"metadata": {"name": "managed", "namespace": own}, "spec": {}})
    async with watching(control_plane, namespaces, tmp_path) as process:
        before = await settled_peak(process)
        while not (found := await client.get(CLUSTERS, "managed", own))["metadata"].get("finalizers"):
            assert process.process.returncode is None
            await asyncio.sleep(0.1)
        await client.delete(CLUSTERS, "managed", own, uid=found["metadata"]["uid"])
        with contextlib.suppress(errors.NotFound):
            while await client.get(CLUSTERS, "managed", own):
                assert process.process.returncode is None
                await asyncio.sleep(0.1)
        within = await highest(process)
    assert within < before + MANY / 3, f"{before:.0f} MiB before, {within:.0f} MiB with"


async def test_junk_beside_a_cluster_holds_up_nothing(
    client: KubeClient, control_plane: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    """Ten megabytes with our labels and a made-up uid beside a budget of eight: the Cluster goes on as without them."""
    own = namespaces[0]
    await make(client, CONFIGMAPS, own, 10, {"metadata": {"labels": OURS}, "data": {"text": LONG}})
    async with operator(control_plane.kubeconfig, own, tmp_path, "--no-watch-nodes", "--namespace-budget=8") as process:
        while not (found := (await client.get(CLUSTERS, "slurm", own)).get("status") or {}).get("conditions"):
            assert process.process.returncode is None
            await asyncio.sleep(0.1)
        assert "OverBudget" not in json.dumps(found)


async def test_the_owner_of_a_namespace_over_its_budget_is_told_and_gets_on_once_there_is_room(
    client: KubeClient, control_plane: ControlPlane, namespaces: tuple[str, str], tmp_path: Path
) -> None:
    own = namespaces[0]
    nodeset = {"clusterName": "slurm", "replicas": 0}
    await create(client, NODESETS, {"metadata": {"name": "w", "namespace": own}, "spec": nodeset})
    uid = (await client.get(CLUSTERS, "slurm", own))["metadata"]["uid"]
    ours = {**OURS, labels.LABEL_CLUSTER_UID: uid}
    await make(client, CONFIGMAPS, own, 20, {"metadata": {"labels": ours}, "data": {"text": LONG}})
    quick = "from slinky_operator.reconcile.cached import caches, gate\ncaches.REFILL_S = 0.5"
    async with operator(
        control_plane.kubeconfig,
        own,
        tmp_path,
        "--no-watch-nodes",
        "--namespace-budget=8",
        first=f"{quick}\nfrom slinky_operator.kube.cache import budget\nbudget.OverBudgetError.retry_after = 0.5",
    ) as process:
        message = await condition(client, CLUSTERS, "slurm", own, "OverBudget")
        assert f"namespace {own} is over the operator's memory budget of 8 MiB" in message
        # A NodeSet does not read ConfigMaps: nothing is missing for it.
        assert "OverBudget" not in json.dumps((await client.get(NODESETS, "w", own)).get("status"))
        for number in range(20):
            made = await client.get(CONFIGMAPS, f"configmaps-{number}", own)
            await client.delete(CONFIGMAPS, f"configmaps-{number}", own, uid=made["metadata"]["uid"])
        while "OverBudget" in json.dumps((await client.get(CLUSTERS, "slurm", own))["status"]):
            assert process.process.returncode is None
            await asyncio.sleep(0.1)
