"""A namespace with the CRDs, and substitutes for kubelet and Slurm."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
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
    STATEFULSETS,
)
from slinky_operator.pod_programs.agent.server import serve
from slinky_operator.slurm.conf import TextProblem, parse_words
from slurm_client.models import PartitionState
from slurm_client.testing import FakeSlurmrestd
from tests.integration.cluster.harness import Running, running
from tests.support.control_plane import ControlPlane
from tests.support.played_pods import ended

FIRST_JWT_KEY = b"k" * 32

PATIENCE = 240.0
"""Seconds for which a condition is waited for, less than a test may take."""


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield KubeClient(connection, fence=OpenFence(), field_manager="test")


@pytest.fixture
async def namespace(kube: KubeClient) -> str:
    name = f"cluster-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    # No controller manager runs here, and the API server takes no pod without it.
    await kube.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, name)
    return name


@pytest.fixture
async def slurm() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd() as fake:
        yield fake


class Kubelet:
    """Runs slurmctld's pod as far as this needs no Node: creates it, mounts its ConfigMap, answers as the agent."""

    def __init__(self, kube: KubeClient, namespace: str, folder: Path, slurm: FakeSlurmrestd) -> None:
        self.kube = kube
        self.namespace = namespace
        self.folder = folder
        self.slurm = slurm
        self.mounts = True
        self.address = "127.0.0.1"
        """Of its pods."""
        self.agent_port = 0

    def start_agent(self, port: int = 0) -> None:
        ports: Queue[int] = Queue()
        arguments = {"host": self.address, "ready": ports.put}
        threading.Thread(target=serve, args=(self.folder, port), kwargs=arguments, daemon=True).start()
        self.agent_port = ports.get(timeout=60)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            await self._once()

    async def _once(self) -> None:
        for one in (await self.kube.list(STATEFULSETS, self.namespace)).items:
            name = f"{one['metadata']['name']}-0"
            template = one["spec"]["template"]
            try:
                pod = await self.kube.get(PODS, name, self.namespace)
            except errors.NotFound:
                spec = {**template["spec"], "automountServiceAccountToken": False}
                spec["volumes"] = [*spec["volumes"], {"name": "state", "emptyDir": {}}]
                owner = {
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True,
                    "name": one["metadata"]["name"], "uid": one["metadata"]["uid"],
                }  # fmt: skip
                metadata = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner]}
                pod = await self.kube.create(PODS, {"metadata": metadata, "spec": spec}, self.namespace)
                await self.kube.patch_status(PODS, name, {"podIP": self.address, "phase": "Running"}, self.namespace)
            for name in await self._preflights():
                await self._try(name)
            if self.mounts and labels.ANNOTATION_CONFIG_TOUCH in (pod["metadata"].get("annotations") or {}):
                await self._mount(one["metadata"]["name"].removesuffix("-controller"))

    async def _preflights(self) -> list[str]:
        pods = await self.kube.list(PODS, self.namespace, label_selector="app.kubernetes.io/component=preflight")
        return [pod["metadata"]["name"] for pod in pods.items if (pod.get("status") or {}).get("phase") == "Pending"]

    async def _try(self, name: str) -> None:
        """End a preflight as its daemons would: slurmctld knows every key but `Bogus`."""
        try:
            found = await self.kube.get(CONFIGMAPS, name, self.namespace)
        except errors.NotFound:
            return
        refused = "Bogus" in found["data"]["slurm.conf"]
        words = "slurmctld: fatal: Parsing error at unrecognized key: Bogus" if refused else ""
        status = ended("slurmctld", code=int(refused), message=words)
        try:
            await self.kube.patch_status(PODS, name, status, self.namespace)
        except errors.NotFound:
            return

    async def _mount(self, cluster: str) -> None:
        try:
            found = await self.kube.get(CONFIGMAPS, f"{cluster}-config", self.namespace)
        except errors.NotFound:
            # It goes with its Cluster; what is mounted stays.
            return
        for name, text in found["data"].items():
            (self.folder / name).write_text(text)
        for path in self.folder.iterdir():
            if path.name not in found["data"]:
                path.unlink()
        wanted: dict[str, tuple[str, PartitionState]] = {}
        for line in found["data"]["slurm.conf"].split("\n"):
            words = parse_words(line)
            values = {} if isinstance(words, TextProblem) else {word.folded: word.value for word in words}
            if "partitionname" in values:
                wanted[values["partitionname"]] = values["nodes"], PartitionState(values["state"].upper())
        for name, (nodes, state) in wanted.items():
            if name not in self.slurm.world.partitions:
                self.slurm.world.add_partition(name, node_sets=nodes)
            # As slurmctld does: whatever the state was, it is that of the line now.
            self.slurm.world.partitions[name] = replace(self.slurm.world.partitions[name], state=state)
        for name in [one for one in self.slurm.world.partitions if one not in wanted]:
            self.slurm.world.delete_partition(name)


@pytest.fixture
async def kubelet(kube: KubeClient, namespace: str, tmp_path: Path, slurm: FakeSlurmrestd) -> AsyncIterator[Kubelet]:
    one = Kubelet(kube, namespace, tmp_path, slurm)
    one.start_agent()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.run())
        yield one
        task.cancel()


async def wait_until(holds: Callable[[], Any]) -> None:
    """Wait for a condition in this process."""
    async with asyncio.timeout(120):
        while not holds():  # noqa: ASYNC110 - what is waited for belongs to others, who set no event
            await asyncio.sleep(0.01)


async def passes(operator: Running, key: tuple[str, str], count: int) -> None:
    """Let the controller make passes over a Cluster, one after the other."""
    queue = operator.controller.queue
    for _ in range(count):
        queue.add(key)
        await wait_until(lambda: not len(queue) and not queue.processing)


def ready(status: Object) -> bool:
    """Whether Slurm serves with the wanted configuration, nothing is on its way, and nothing but a NodeSet refused."""
    config, by_type = status.get("config") or {}, {one["type"]: one for one in status.get("conditions", ())}
    if not status.get("isReady") or config.get("hash") != config.get("appliedHash"):
        return False
    return (
        by_type["Progressing"]["status"] == "False"
        and by_type["Degraded"]["reason"] in {"AsExpected", "ConfigRefused"}
        and by_type.get("ConfigApplied", {"status": "True"})["status"] == "True"
    )


def live(generation: int, status: Object) -> bool:
    """Whether Slurm runs with the configuration of a generation or a later one, whatever else is wrong."""
    config = status.get("config") or {}
    seen = int(status.get("observedGeneration") or 0) >= generation
    is_applied = any(
        one["type"] == "ConfigApplied" and one["status"] == "True" and one["observedGeneration"] >= generation
        for one in status.get("conditions") or ()
    )
    return seen and is_applied and config.get("hash") == config.get("appliedHash")


def applied(generation: int, status: Object) -> bool:
    """Whether that holds for this generation of the spec or a later one."""
    return ready(status) and int(status["observedGeneration"]) >= generation


def reason(kind: str, word: str) -> Callable[[Object], bool]:
    """Make a condition: whether one of that type has that reason."""

    def holds(status: Object) -> bool:
        return any(one["type"] == kind and one["reason"] == word for one in status.get("conditions", ()))

    return holds


def message(status: Object, kind: str) -> str:
    """The message of a condition."""
    return str(next(one["message"] for one in status["conditions"] if one["type"] == kind))


class Bench:
    """What a test works with."""

    def __init__(
        self, kube: KubeClient, namespace: str, slurm: FakeSlurmrestd, kubelet: Kubelet, kubeconfig: Path
    ) -> None:
        self.kube = kube
        self.namespace = namespace
        self.slurm = slurm
        self.kubelet = kubelet
        self.kubeconfig = kubeconfig

    @asynccontextmanager
    async def operator(self, **options: Any) -> AsyncIterator[Running]:
        """The controller, with Slurm and the agent where they are here."""
        async with running(
            self.kubeconfig,
            namespace=self.namespace,
            server=lambda cluster, _: cluster.spec.server or self.slurm.url,
            agent=lambda _: f"http://127.0.0.1:{self.kubelet.agent_port}",
            **options,
        ) as one:
            yield one

    async def create(self, spec: Object | None = None, name: str = "slurm") -> Object:
        return await self.kube.create(CLUSTERS, {"metadata": {"name": name}, "spec": spec or {}} | KIND, self.namespace)

    async def create_node_set(self, name: str, spec: Object | None = None) -> Object:
        body = {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "NodeSet",
            "metadata": {"name": name},
            "spec": {"clusterName": "slurm", "replicas": 0, **(spec or {})},
        }
        return await self.kube.create(NODESETS, body, self.namespace)

    async def edit(self, spec: Object, name: str = "slurm") -> int:
        """Merge fields into a Cluster's spec; returns the generation."""
        answer = await self.kube.merge_patch(CLUSTERS, name, {"spec": spec}, self.namespace)
        return int(answer["metadata"]["generation"])

    async def no_preflights(self) -> None:
        """Wait until nothing of any preflight is left."""
        await self.no_preflights_but()

    async def no_preflights_but(self, *names: str) -> None:
        """Wait until just these objects look as those of a preflight do."""
        selector = "app.kubernetes.io/component=preflight"
        for resource, left in ((CONFIGMAPS, set[str]()), (PODS, set(names))):
            while True:
                items = (await self.kube.list(resource, self.namespace, label_selector=selector)).items
                if {one["metadata"]["name"] for one in items} == left:
                    break
                await asyncio.sleep(0.02)

    async def cluster(self, name: str = "slurm") -> Object:
        return await self.kube.get(CLUSTERS, name, self.namespace)

    async def until(self, holds: Any, name: str = "slurm") -> Object:
        """Wait for a condition on the Cluster; a test that waits in vain shows what the Cluster says."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = await self.cluster(name)
            if holds(found.get("status") or {}):
                return found
            assert time.monotonic() < deadline, json.dumps(found.get("status"), indent=1)
            await asyncio.sleep(0.02)

    async def serving(self, name: str = "slurm") -> Object:
        """Wait until Slurm serves with the wanted configuration; of Slurm elsewhere nobody knows the configuration."""

        def serves(status: Object) -> bool:
            applied = [one["status"] for one in status.get("conditions", ()) if one["type"] == "ConfigApplied"]
            return status.get("isReady") is True and applied in ([], ["True"])

        return await self.until(serves, name)

    async def gone(self, resource: Any, name: str) -> None:
        """Wait until an object does not exist."""
        while True:
            try:
                await self.kube.get(resource, name, self.namespace)
            except errors.NotFound:
                return
            await asyncio.sleep(0.02)


KIND = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster"}


@pytest.fixture
def bench(
    kube: KubeClient, namespace: str, slurm: FakeSlurmrestd, kubelet: Kubelet, control_plane: ControlPlane
) -> Bench:
    return Bench(kube, namespace, slurm, kubelet, control_plane.kubeconfig)
