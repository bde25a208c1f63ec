"""A site of which only Slurm and the machines are pretended: a real API server, and the operator's own process.

Each namespace has one Cluster, whose Slurm runs elsewhere, and some NodeSets. What is measured is read from outside:
CPU and memory of the process, its turns (`watched`), requests as the API server and slurmrestd have seen them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, NODESETS, PODS, SECRETS, SERVICEACCOUNTS
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess, operator
from tests.support.web import fetch

PATIENCE = 900.0
SERVER = "cluster.slinky.slurm.net/server"


@dataclass(frozen=True, slots=True)
class Used:
    """What the operator has used between two looks."""

    seconds: float
    cpu: float
    p99: float
    longest: float
    rss: float
    most: float
    calls: dict[str, int]
    bytes: int
    requests: float

    @property
    def share(self) -> float:
        """Part of a core."""
        return self.cpu / self.seconds


@dataclass(slots=True)
class Site:
    """Everything around one operator."""

    plane: ControlPlane
    folder: Path
    kube: KubeClient
    namespaces: list[str]
    play: subprocess.Popen[str]
    urls: list[str]
    pods: Informer
    nodesets: Informer
    flags: tuple[str, ...] = ()
    process: OperatorProcess | None = None
    _last: dict[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The first one, with Cluster `c` and its NodeSet `a-0`."""
        return self.namespaces[0]

    async def order(self, name: str, *arguments: Any) -> Any:
        """Let the pretended Slurm do something."""
        assert self.play.stdin is not None
        assert self.play.stdout is not None
        self.play.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.play.stdin.flush()
        return json.loads(await asyncio.to_thread(self.play.stdout.readline))

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """While the operator runs; it is killed at the end."""
        watched = self.folder / "watched.json"
        first = f"import os; os.environ['WATCHED'] = {str(watched)!r}; import tests.bench.whole.watched"
        everywhere = f"--namespaces={','.join(self.namespaces)}"
        # On a machine that is busy with other things a Lease is not renewed in time, and the process ends.
        flags = (everywhere, "--no-watch-nodes", "--no-leader-election", *self.flags)
        async with operator(self.plane.kubeconfig, self.namespace, self.folder, *flags, first=first) as process:
            self.process = process
            try:
                yield
            finally:
                self.process = None

    async def begin(self) -> None:
        """Begin to measure."""
        _ = await self.used()

    async def used(self) -> Used:
        """What was used since the last look, or `begin`."""
        assert self.process is not None
        watched = self.folder / "watched.json"
        watched.unlink(missing_ok=True)
        os.kill(self.process.process.pid, signal.SIGRTMIN)
        while not watched.exists():
            assert self.process.process.returncode is None, self.process.log.read_text()[-4000:]
            await asyncio.sleep(0.01)
        now = {**json.loads(watched.read_text()), "at": time.monotonic(), "requests": await self._requests()}
        asked, last = await self.order("asked"), self._last or now
        self._last = now
        return Used(
            now["at"] - last["at"],
            now["cpu"] - last["cpu"],
            now["p99"],
            now["longest"],
            now["rss"],
            now["most"],
            asked["calls"],
            asked["bytes"],
            now["requests"] - last["requests"],
        )

    def cpu(self) -> float:
        """Seconds of CPU that the operator has used since its start, imports included."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def _requests(self) -> float:
        assert self.process is not None
        url = f"http://127.0.0.1:{self.process.port}/metrics"
        lines = (await asyncio.to_thread(fetch, url)).body.decode().splitlines()
        counted = "slurm_operator_kubernetes_requests_total"
        return sum(float(line.split()[-1]) for line in lines if line.startswith(counted))

    async def reached(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the watches of the bench show it, while the operator lives."""

        def held() -> bool:
            lives = self.process is None or self.process.process.returncode is None
            assert lives, f"the operator has ended before: {what}"
            return condition()

        await reached(held, what)

    def status(self, name: str = "a-0", namespace: str = "") -> Object:
        """Status of a NodeSet as its watch has shown it."""
        found = self.nodesets.store.get(namespace or self.namespace, name) or {}
        status: Object = found.get("status") or {}
        return status

    def ready(self, count: int) -> bool:
        """Whether all NodeSets together say that so many pods are ready, and are all."""
        found = [one.get("status") or {} for one in self.nodesets.store]
        return all(sum(one.get(key, 0) for one in found) == count for key in ("readyReplicas", "replicas"))

    def pods_of(self, name: str) -> Object | None:
        """A pod of the first Cluster."""
        return self.pods.store.get(self.namespace, name)

    async def scale(self, replicas: int, name: str = "a-0", namespace: str = "") -> None:
        """Ask for so many nodes of a NodeSet."""
        _ = await self.kube.scale(NODESETS, name, namespace or self.namespace, replicas)


async def reached(condition: Callable[[], bool], what: str) -> None:
    """Wait until the watches of the bench show it."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - what is looked at has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


@asynccontextmanager
async def site(plane: ControlPlane, folder: Path, *, clusters: int = 1, nodesets: int = 1) -> AsyncIterator[Site]:
    """So many Clusters, each with so many NodeSets of no nodes yet."""
    stem = f"whole-{uuid.uuid4().hex[:8]}"
    namespaces = [f"{stem}-{number}" for number in range(clusters)]
    async with await Connection.connect(plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="bench")
        for namespace in namespaces:
            _ = await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
            _ = await kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        command = [sys.executable, "-m", "tests.bench.whole.played", str(plane.kubeconfig), *namespaces]
        # Of the blocking kind: an order is a line written and a line read, and nothing else is to happen meanwhile.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as play:  # noqa: ASYNC220
            assert play.stdout is not None
            urls = json.loads(await asyncio.to_thread(play.stdout.readline))
            for namespace, url in zip(namespaces, urls, strict=True):
                await _furnish(kube, namespace, url, nodesets)
            pods, shown = (Informer(kube, kind, namespaces=namespaces) for kind in (PODS, NODESETS))
            tasks = [asyncio.create_task(one.run()) for one in (pods, shown)]
            try:
                yield Site(plane, folder, kube, namespaces, play, urls, pods, shown)
            finally:
                play.kill()
                for task in tasks:
                    task.cancel()
                _ = await asyncio.gather(*tasks, return_exceptions=True)


async def _furnish(kube: KubeClient, namespace: str, url: str, nodesets: int) -> None:
    head = {"apiVersion": CLUSTERS.api_version}
    key = {"slurm.key": base64.b64encode(b"k" * 64).decode()}
    token = {"auth-token": base64.b64encode(b"token").decode()}
    for name, data in (("key", key), ("token", token)):
        about = {"name": name, "namespace": namespace, "annotations": {SERVER: url}}
        _ = await kube.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data})
    spec = {
        "server": url,
        "token": {"secretRef": {"name": "token", "key": "auth-token"}},
        "auth": {"slurmKeyRef": {"name": "key", "key": "slurm.key"}},
        "controller": {"external": {"host": "slurmctld"}},
    }
    about = {"name": "c", "namespace": namespace}
    _ = await kube.create(CLUSTERS, {**head, "kind": "Cluster", "metadata": about, "spec": spec})
    for number in range(nodesets):
        about = {"name": f"a-{number}", "namespace": namespace}
        strategy = {"rollingUpdate": {"maxUnavailable": "100%"}}
        wanted = {"clusterName": "c", "replicas": 0, "image": "slurmd:1", "updateStrategy": strategy}
        _ = await kube.create(NODESETS, {**head, "kind": "NodeSet", "metadata": about, "spec": wanted})
