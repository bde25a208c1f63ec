"""What the same takes without an operator: the same writes and reads by its own client, and by httpx.

Each of these is the reference of a figure of the same run, on the same API server and the same pretended Slurm.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from tests.bench.nodeset.played import BARE
from tests.bench.whole.sites import Site, reached

IN_FLIGHT = 50
NODES = "/slurm/v0.0.45/nodes/"
HEADERS = {"X-SLURM-USER-TOKEN": "token", "X-SLURM-USER-NAME": "slurm"}
RESTARTED = """
import asyncio, sys
from pathlib import Path
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import PODS
import json

async def main():
    async with await Connection.connect(Path(sys.argv[1])) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="bench")
        async for page in kube.pages(PODS, sys.argv[2]):
            pass
        await kube.create(PODS, json.loads(sys.stdin.read()))

asyncio.run(main())
"""


def like(template: Object, number: int, image: str = "slurmd:1") -> Object:
    """A pod with the spec of one of the operator's, which the operator does not take for its own."""
    about, spec = template["metadata"], json.loads(json.dumps(template["spec"]))
    spec.pop("nodeName", None)
    container = spec["containers"][0]
    container["image"] = image
    container["args"][container["args"].index("--extra") + 1] = BARE
    name = f"b-{number}"
    kept = {"name": name, "namespace": about["namespace"], "labels": {"bench": "bare"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": {**spec, "hostname": name}}


async def in_flight(calls: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    """Make all calls, fifty at a time."""
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            _ = await call()

    _ = await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


async def out(site: Site, bodies: Sequence[Object]) -> tuple[float, float]:
    """Seconds until so many pods exist, and until all of them run."""
    kube, began = site.kube, time.monotonic()
    await in_flight([lambda body=body: kube.create(PODS, body) for body in bodies])  # type: ignore[misc]
    await reached(lambda: len(site.pods.store) == len(bodies), "all pods of the bare loop")
    exist = time.monotonic() - began
    await reached(lambda: all(_runs(pod) for pod in site.pods.store), "all run")
    return exist, time.monotonic() - began


async def gone(site: Site, bodies: Sequence[Object]) -> float:
    """Seconds until they are gone again."""
    kube, began = site.kube, time.monotonic()
    names = [body["metadata"]["name"] for body in bodies]
    await in_flight([lambda name=name: kube.delete(PODS, name, site.namespace, uid=None) for name in names])  # type: ignore[misc]
    await reached(lambda: not len(site.pods.store), "no pod of the bare loop")
    return time.monotonic() - began


async def replaced(site: Site, body: Object) -> float:
    """Seconds until one pod is deleted, gone, and there again."""
    name, began = body["metadata"]["name"], time.monotonic()
    _ = await site.kube.delete(PODS, name, site.namespace, uid=None)
    await reached(lambda: site.pods_of(name) is None, "the pod is gone")
    _ = await site.kube.create(PODS, body)
    await reached(lambda: site.pods_of(name) is not None, "the pod is there again")
    return time.monotonic() - began


async def restarted(site: Site, body: Object) -> float:
    """Seconds from the start of a program that lists the pods and creates one until that pod exists."""
    began = time.monotonic()
    arguments = (sys.executable, "-c", RESTARTED, str(site.plane.kubeconfig), site.namespace)
    process = await asyncio.create_subprocess_exec(*arguments, stdin=asyncio.subprocess.PIPE)
    _ = await process.communicate(json.dumps(body).encode())
    assert process.returncode == 0
    await reached(lambda: site.pods_of(body["metadata"]["name"]) is not None, "the pod of the bare program")
    return time.monotonic() - began


class Polls:
    """A loop of httpx that asks one Slurm once a second whether nodes have changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._client = httpx.AsyncClient(base_url=site.urls[0], headers=HEADERS, timeout=120, trust_env=False)
        self._since = 0
        self.size = 0
        """Bytes of the last list."""

    async def ask(self) -> Any:
        """The list of nodes, None if it has not changed."""
        answer = await self._client.get(NODES, params={"update_time": self._since} if self._since else {})
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return None
        found = json.loads(answer.content)
        self.size = len(answer.content)
        self._since = found["last_update"]["number"]
        return found["nodes"]

    async def whole(self) -> float:
        """CPU seconds of the whole list, asked for and decoded."""
        self._since, began = 0, time.process_time()
        _ = await self.ask()
        return time.process_time() - began

    async def at_rest(self, seconds: int) -> float:
        """Part of a core that asking once a second takes."""
        _ = await self.ask()
        began, cpu = time.monotonic(), time.process_time()
        for _ in range(seconds):
            _ = await self.ask()
            await asyncio.sleep(1)
        return (time.process_time() - cpu) / (time.monotonic() - began)

    async def seen(self, name: str, pause: float) -> float:
        """Seconds from a drain by hand, so many before the next poll, until the loop has decoded it."""
        at = await self._site.order("drain", name)
        while True:
            await asyncio.sleep(pause)
            pause = 1.0
            for node in await self.ask() or ():
                if node["name"] == name and "DRAIN" in node["state"]:
                    return time.time() - float(at)

    async def undrained(self, names: Sequence[str]) -> float:
        """Seconds of one call that undrains nodes, and a list that shows it."""
        began = time.monotonic()
        body = {"name": list(names), "state": ["UNDRAIN"]}
        _ = (await self._client.post(NODES, json=body)).raise_for_status()
        self._since = 0
        _ = await self.ask()
        return time.monotonic() - began

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"
