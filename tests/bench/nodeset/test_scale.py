"""What many pods cost, beside the same pods made and deleted by a bare loop. Prints, asserts no time.

A real API server without Nodes; Slurm and the machines are played by another process (`played`), so that what is
measured here is the operator: its reconciler, its caches and its clients, in this process. The bare loop uses the same
client, 50 requests at a time, and pods with the same spec.

Run it with ``make bench``, or alone: ``pytest tests/bench/nodeset --capture=no``; ``BENCH_PODS=500`` for one size.
"""

from __future__ import annotations

import asyncio
import copy
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.connection import Connection
from slinky_operator.kube.fence import OpenFence
from slinky_operator.kube.informer import Informer
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, NODESETS, PODS, SERVICEACCOUNTS
from slinky_operator.runtime.loop_lag import LoopLag
from tests.integration.nodeset.conftest import CRDS, Site
from tests.support import control_plane
from tests.support.control_plane import ControlPlane

pytestmark = pytest.mark.timeout(900)

SIZES = [int(size) for size in os.environ.get("BENCH_PODS", "100,500,1000").split(",")]
IN_FLIGHT = 50
FLIPPING = 20.0
"""Seconds for which nodes change their states."""


@dataclass(frozen=True, slots=True)
class Address:
    """What `Site` needs of a slurmrestd that runs elsewhere."""

    url: str


@dataclass
class Row:
    """The figures of one size."""

    pods: int
    values: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("bench") as running:
        running.kubectl("apply", f"--kustomize={CRDS}")
        running.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        yield running


@asynccontextmanager
async def played(plane: ControlPlane, namespace: str) -> AsyncIterator[subprocess.Popen[str]]:
    """The other process."""
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-m", "tests.bench.nodeset.played", str(plane.kubeconfig), namespace],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ".:api"},
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        await asyncio.to_thread(process.communicate)


@asynccontextmanager
async def site(plane: ControlPlane) -> AsyncIterator[tuple[Site, subprocess.Popen[str]]]:
    """A namespace with a Cluster, and the controller over it."""
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    requests: list[tuple[str, str, str]] = []
    async with await Connection.connect(plane.kubeconfig) as connection:
        kube = KubeClient(
            connection,
            fence=OpenFence(),
            field_manager=labels.FIELD_MANAGER,
            observer=lambda *about: requests.append(about),
        )
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        await kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        async with played(plane, namespace) as process:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).strip()
            spec = {
                "server": url,
                "token": {"secretRef": "token"},
                "controller": {"external": {"host": "slurmctld"}},
            }
            body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "spec": spec}
            cluster = await kube.create(CLUSTERS, body | {"metadata": {"name": "c", "namespace": namespace}})
            status = {"isReady": True, "config": {"hash": "1", "appliedHash": "1", "nodeSets": ["a"]}}
            await kube.patch_status(CLUSTERS, "c", status, namespace)
            address: Any = Address(url)
            one = Site(plane.kubeconfig, kube, namespace, address, cluster, requests, poll_interval=1.0)
            await one.start()
            try:
                yield one, process
            finally:
                await one.crash()


async def reached(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> float:
    """Wait, and return how long it took."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - looked at as often as a person might notice
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None
    return time.monotonic() - began


async def in_flight(calls: list[Callable[[], Awaitable[Any]]]) -> None:
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call()

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


@pytest.mark.parametrize("count", SIZES)
async def test_out_and_in(plane: ControlPlane, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(count)
    async with site(plane) as (one, process):
        everything = Informer(one.kube, PODS, namespaces=[one.namespace])
        watching = asyncio.create_task(everything.run())
        lags: list[float] = []
        lag = asyncio.create_task(LoopLag(lags.append, interval=0.02).run())
        try:
            await _operator_out(one, row, lags)
            template = one.pods.store.get(one.namespace, "a-0")
            assert template is not None
            await _steady(one, row, process, lags)
            await _operator_in(one, row, everything, lags)
            await _bare(one, row, everything, template)
        finally:
            for task in (watching, lag):
                task.cancel()
            await asyncio.gather(watching, lag, return_exceptions=True)
    with capsys.disabled():
        print(f"\n{count} pods")
        for name, value in row.values.items():
            print(f"  {name:<48} {value}")


def _calls(one: Site) -> int:
    assert one._clients is not None
    entry = one._clients.get(one.cluster["metadata"]["uid"])
    assert entry is not None
    return entry.client.calls


async def _operator_out(one: Site, row: Row, lags: list[float]) -> None:
    await one.apply(0)
    await asyncio.sleep(1.0)
    slurm, api, cpu = _calls(one), len(one.requests), time.process_time()
    lags.clear()
    began = time.monotonic()
    await one.apply(row.pods)
    await reached(lambda: len(one.pods.store) >= row.pods, "all pods exist")
    row.values["operator out: pods exist"] = f"{time.monotonic() - began:.2f} s"
    row.values["_out"] = str(time.monotonic() - began)

    async def ready() -> bool:
        return await one.ready(row.pods)

    await one.until(ready, "all are ready", 120)
    row.values["operator out: all registered, status says so"] = f"{time.monotonic() - began:.2f} s"
    row.values["operator out: Slurm calls, API calls"] = f"{_calls(one) - slurm}, {len(one.requests) - api}"
    row.values["operator out: CPU, p99 loop lag"] = f"{time.process_time() - cpu:.2f} s, {_p99(lags)}"


async def _steady(one: Site, row: Row, process: subprocess.Popen[str], lags: list[float]) -> None:
    await asyncio.sleep(3.0)
    took = []
    for _ in range(5):
        cpu = time.process_time()
        patch = {"metadata": {"annotations": {"bench": uuid.uuid4().hex}}}
        await one.kube.merge_patch(NODESETS, "a", patch, one.namespace)
        await asyncio.sleep(0.5)
        took.append(time.process_time() - cpu)
    row.values["a reconcile that changes nothing, with its event"] = f"{statistics.median(took) * 1000:.0f} ms of CPU"
    lags.clear()
    slurm, api, cpu = _calls(one), len(one.requests), time.process_time()
    assert process.stdin is not None
    process.stdin.write(f"{row.pods}\n")
    process.stdin.flush()
    await asyncio.sleep(FLIPPING)
    process.stdin.write("0\n")
    process.stdin.flush()
    row.values["each node flips once a minute: CPU, p99 loop lag"] = (
        f"{(time.process_time() - cpu) / FLIPPING:.0%}, {_p99(lags)}"
    )
    minute = 60 / FLIPPING
    row.values["each node flips once a minute: Slurm, API calls"] = (
        f"{(_calls(one) - slurm) * minute:.0f}, {(len(one.requests) - api) * minute:.0f} a minute"
    )
    await asyncio.sleep(2.0)


async def _operator_in(one: Site, row: Row, everything: Informer, lags: list[float]) -> None:
    lags.clear()
    slurm, api, cpu = _calls(one), len(one.requests), time.process_time()
    began = time.monotonic()
    await one.scale(0)
    await reached(lambda: len(everything.store) == 0, "all pods are gone")
    row.values["operator in: pods gone"] = f"{time.monotonic() - began:.2f} s"
    row.values["_in"] = str(time.monotonic() - began)
    assert one._clients is not None
    entry = one._clients.get(one.cluster["metadata"]["uid"])
    assert entry is not None
    await reached(lambda: not entry.nodes, "all records are gone")
    row.values["operator in: records gone"] = f"{time.monotonic() - began:.2f} s"
    row.values["operator in: Slurm calls, API calls"] = f"{_calls(one) - slurm}, {len(one.requests) - api}"
    row.values["operator in: CPU, p99 loop lag"] = f"{time.process_time() - cpu:.2f} s, {_p99(lags)}"


async def _bare(one: Site, row: Row, everything: Informer, template: Object) -> None:
    """The same pods without an operator: what the API server, the machines and this client can do."""
    own = template["metadata"]
    kept = {key: value for key, value in own["labels"].items() if not key.startswith(labels.NODESET_PREFIX)}
    spec = copy.deepcopy(template["spec"])
    spec.pop("nodeName", None)
    bodies: list[Object] = []
    for number in range(row.pods):
        metadata = {"name": f"b-{number}", "labels": kept, "ownerReferences": own["ownerReferences"]}
        bodies.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata | {"namespace": one.namespace},
                "spec": spec | {"hostname": f"b-{number}"},
            }
        )
    kube = one.kube
    began = time.monotonic()
    await in_flight([lambda body=body: kube.create(PODS, body) for body in bodies])  # type: ignore[misc]
    await reached(lambda: len(everything.store) >= row.pods, "all pods exist")
    out = time.monotonic() - began
    await reached(
        lambda: all((pod.get("status") or {}).get("phase") == "Running" for pod in everything.store), "all run"
    )
    began = time.monotonic()
    names = [body["metadata"]["name"] for body in bodies]
    await in_flight([lambda name=name: kube.delete(PODS, name, one.namespace, uid=None) for name in names])  # type: ignore[misc]
    await reached(lambda: len(everything.store) == 0, "all pods are gone")
    gone = time.monotonic() - began
    row.values["bare loop out, in"] = f"{out:.2f} s, {gone:.2f} s"
    ratios = float(row.values.pop("_out")) / out, float(row.values.pop("_in")) / gone
    row.values["operator / bare loop: out, in"] = f"{ratios[0]:.2f}, {ratios[1]:.2f}"


def _p99(lags: list[float]) -> str:
    return f"{statistics.quantiles(lags, n=100)[98] * 1000:.0f} ms" if len(lags) > 1 else "-"
