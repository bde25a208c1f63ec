"""The cost of many pods, compared with the same pods created and deleted by a bare loop. Prints, asserts no time.

A real API server without Nodes; Slurm and the machines are simulated by another process (`played`), so that only the
operator is measured here: its reconciler, its caches and its clients, in this process. The bare loop uses the same
client, 50 requests at a time, and pods with the same spec. What the figures mean:
docs/development/performance-journal.md.

Run it with ``make bench``, or alone: ``pytest tests/bench/nodeset --capture=no --override-ini=testpaths=tests/bench``;
``BENCH_PODS=500`` for one size, ``BENCH_ROUNDS=1`` for one round of each.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from slinky_api import labels
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, NODESETS, PODS, SERVICEACCOUNTS
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slinky_operator.runtime.loop_lag import INTERVAL, LoopLag
from tests.bench.figures import Figures
from tests.bench.nodeset import calls
from tests.bench.nodeset.calls import Counting
from tests.bench.nodeset.played import BARE
from tests.bench.nodeset.servers import Servers
from tests.bench.nodeset.table import Table
from tests.integration.nodeset.conftest import Site
from tests.support import control_plane
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_crds
from tests.support.turns import Turns

pytestmark = pytest.mark.timeout(900)

SIZES = [int(size) for size in os.environ.get("BENCH_PODS", "100,250,500,1000").split(",")]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
"""Of times the best counts, which was disturbed least; of lags and turns the worst."""
IN_FLIGHT = 50
OF = "pods, the NodeSet controller alone"
LOOP = "a bare loop, 50 at a time"
SETTLING = 3.0
"""Seconds until all is quiet."""
RESTING = 8.0
"""Seconds for which nothing happens."""
FLIPPING = 12.0
"""Seconds for which nodes change their states."""
LOOKS = 0.02
"""Seconds between two looks at the lag of the loop; at rest they are as rare as in the operator."""


@dataclass(frozen=True, slots=True)
class Address:
    """What `Site` needs of a slurmrestd that runs elsewhere."""

    url: str


@dataclass(slots=True)
class Measured:
    """What was used from its beginning until `end`."""

    meter: Meter
    seconds: float = 0.0
    cpu: float = 0.0
    servers: float = 0.0
    requests: int = 0
    slurm: Counter[str] = field(default_factory=Counter)
    lags: list[float] = field(default_factory=list)
    turn: float = 0.0

    def end(self) -> Self:
        """Stop measuring."""
        meter = self.meter
        self.seconds = time.monotonic() - self.seconds
        self.cpu = time.process_time() - self.cpu
        self.servers = meter.servers.cpu_seconds() - self.servers
        self.requests = len(meter.requests) - self.requests
        self.slurm = meter.slurm.read() - self.slurm
        self.lags, self.turn = list(meter.lags), meter.turns.longest()
        return self

    def lag(self) -> str:
        """How late the loop was at most in ninety-nine of a hundred looks, and in the worst, in milliseconds."""
        if len(self.lags) < 2:
            return "-"
        return f"{_ms(statistics.quantiles(self.lags, n=100)[98])}, {_ms(max(self.lags))}"


@dataclass(slots=True)
class Meter:
    """What everything is read from."""

    servers: Servers
    requests: list[tuple[str, str, str]]
    slurm: Counting
    turns: Turns
    lags: list[float]

    def begin(self) -> Measured:
        """Begin to measure."""
        self.turns.begin()
        self.lags.clear()
        used = self.servers.cpu_seconds()
        return Measured(self, time.monotonic(), time.process_time(), used, len(self.requests), self.slurm.read())


@dataclass(slots=True)
class Hall:
    """One namespace with everything in it."""

    site: Site
    process: subprocess.Popen[str]
    meter: Meter
    pods: Informer
    """All pods, those of the bare loop too."""
    nodesets: Informer
    lag: asyncio.Task[None]
    """Looks how late the loop is."""

    async def look_at_lag(self, every: float) -> None:
        """Look so often, in seconds, from now on: the looks are no small part of what is used at rest."""
        self.lag.cancel()
        await asyncio.gather(self.lag, return_exceptions=True)
        self.lag = asyncio.create_task(LoopLag(self.meter.lags.append, interval=every).run())

    def has(self, pods: int) -> bool:
        """Whether the API server has shown that many pods."""
        return len(self.pods.store) == pods

    def is_ready(self, pods: int) -> bool:
        """Whether the NodeSet says that so many are ready."""
        found = self.nodesets.store.get(self.site.namespace, "a") or {}
        status = found.get("status") or {}
        return bool(status.get("readyReplicas", 0) == pods == status.get("replicas", 0))

    def records(self) -> int:
        """How many nodes of its NodeSet the operator sees in Slurm."""
        assert self.site._clients is not None
        entry = self.site._clients.get(self.site.cluster["metadata"]["uid"])
        assert entry is not None
        own = f"{self.site.namespace}/a"
        return sum(1 for node in entry.nodes.values() if node.extra == own)

    def flip(self, nodes: int) -> None:
        """Let so many nodes change their state in a minute."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{nodes}\n")
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("bench") as running:
        apply_crds(running.kubectl)
        yield running


@pytest.fixture(scope="module", autouse=True)
def collector() -> Iterator[None]:
    """The garbage collector as the operator sets it up."""
    before = gc.get_threshold()
    relax_collector()
    freeze_caches()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    made = Table("pods")
    yield made
    print(f"\n\n{made}")


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
async def hall(plane: ControlPlane) -> AsyncIterator[Hall]:
    """A namespace with a Cluster, the controller over it, and all that measures."""
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    requests: list[tuple[str, str, str]] = []
    slurm = Counting()
    async with await Connection.connect(plane.kubeconfig) as connection:
        fence, manager = OpenFence(), labels.FIELD_MANAGER
        kube = KubeClient(
            connection, fence=fence, field_manager=manager, observer=lambda *about: requests.append(about[:3])
        )
        watching = KubeClient(connection, fence=fence, field_manager=manager)
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        await kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        async with played(plane, namespace) as process:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).strip()
            cluster = await _cluster(kube, namespace, url)
            address: Any = Address(url)
            site = Site(
                plane.kubeconfig,
                kube,
                namespace,
                address,
                cluster,
                requests,
                poll_interval=1.0,
                transport=lambda _: slurm,
            )
            lags: list[float] = []
            meter = Meter(Servers(plane.kubeconfig.parent), requests, slurm, Turns(), lags)
            pods, nodesets = (Informer(watching, kind, namespaces=[namespace]) for kind in (PODS, NODESETS))
            await site.start()
            tasks = [asyncio.create_task(one) for one in (pods.run(), nodesets.run())]
            lag = asyncio.create_task(LoopLag(lags.append, interval=LOOKS).run())
            made = Hall(site, process, meter, pods, nodesets, lag)
            try:
                yield made
            finally:
                tasks.append(made.lag)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await site.crash()


async def _cluster(kube: KubeClient, namespace: str, url: str) -> Object:
    spec = {"server": url, "token": {"secretRef": "token"}, "controller": {"external": {"host": "slurmctld"}}}
    body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "spec": spec}
    cluster = await kube.create(CLUSTERS, body | {"metadata": {"name": "c", "namespace": namespace}})
    status = {"isReady": True, "config": {"hash": "1", "appliedHash": "1", "nodeSets": ["a"]}}
    await kube.patch_status(CLUSTERS, "c", status, namespace)
    return cluster


async def reached(condition: Callable[[], bool], what: str, seconds: float = 180.0) -> None:
    """Wait, looking as often as a person might notice."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - what is looked at has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


async def in_flight(calls: list[Callable[[], Awaitable[Any]]]) -> None:
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call()

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


@dataclass(slots=True)
class Rounds:
    """What each round has measured."""

    out: list[Measured] = field(default_factory=list)
    ready: list[Measured] = field(default_factory=list)
    gone: list[Measured] = field(default_factory=list)
    settled: list[Measured] = field(default_factory=list)
    bare_out: list[Measured] = field(default_factory=list)
    bare_gone: list[Measured] = field(default_factory=list)


@pytest.mark.parametrize("count", SIZES)
async def test_out_and_in(plane: ControlPlane, table: Table, figures: Figures, count: int) -> None:
    rounds = Rounds()
    async with hall(plane) as one:
        await one.site.apply(0)
        await asyncio.sleep(SETTLING)
        for number in range(ROUNDS):
            await _operator_out(one, count, rounds)
            template = one.pods.store.get(one.site.namespace, "a-0")
            assert template is not None
            if not number:
                await _steady(one, count, table)
            await _operator_in(one, rounds)
            await _bare(one, count, rounds, template)
            await asyncio.sleep(SETTLING)
    _note(table, count, rounds)
    for what, done, bare in (
        ("out: pods exist", rounds.out, rounds.bare_out),
        ("in: pods gone", rounds.gone, rounds.bare_gone),
    ):
        ours, theirs = _best(done), _best(bare)
        figures.note(what, OF, count, ours.seconds, "s", theirs.seconds, LOOP)
        figures.note(f"{what}: CPU a pod", OF, count, ours.cpu / count * 1e3, "ms", theirs.cpu / count * 1e3, LOOP)
        figures.note(f"{what}: longest turn of the loop", OF, count, max(one.turn for one in done) * 1e3, "ms of CPU")


async def _operator_out(one: Hall, count: int, rounds: Rounds) -> None:
    out, ready = one.meter.begin(), one.meter.begin()
    await one.site.scale(count)
    await reached(lambda: one.has(count), "all pods exist")
    rounds.out.append(out.end())
    await reached(lambda: one.is_ready(count), "all are ready")
    rounds.ready.append(ready.end())


async def _operator_in(one: Hall, rounds: Rounds) -> None:
    gone, settled = one.meter.begin(), one.meter.begin()
    await one.site.scale(0)
    await reached(lambda: one.has(0), "all pods are gone")
    rounds.gone.append(gone.end())
    await reached(lambda: one.records() == 0 and one.is_ready(0), "all records are gone")
    rounds.settled.append(settled.end())


async def _steady(one: Hall, count: int, table: Table) -> None:
    await asyncio.sleep(SETTLING)
    took = []
    for _ in range(5):
        cpu = time.process_time()
        patch = {"metadata": {"annotations": {"bench": uuid.uuid4().hex}}}
        await one.site.kube.merge_patch(NODESETS, "a", patch, one.site.namespace)
        await asyncio.sleep(0.5)
        took.append(time.process_time() - cpu)
    table.note(count, "a reconcile that changes nothing, with its event: CPU, ms", _ms(statistics.median(took)))
    await one.look_at_lag(INTERVAL)
    resting = one.meter.begin()
    await asyncio.sleep(RESTING)
    resting.end()
    await one.look_at_lag(LOOKS)
    table.note(count, "at rest: CPU, % of a core", f"{resting.cpu / resting.seconds:.1%}".removesuffix("%"))
    table.note(count, "at rest: Slurm calls + polls in a minute", calls.told(resting.slurm, 60 / resting.seconds))
    flipping = one.meter.begin()
    one.flip(count)
    await asyncio.sleep(FLIPPING)
    flipping.end()
    one.flip(0)
    told = "each node flips once a minute"
    table.note(count, f"{told}: CPU, % of a core", f"{flipping.cpu / flipping.seconds:.1%}".removesuffix("%"))
    table.note(count, f"{told}: Slurm calls + polls in a minute", calls.told(flipping.slurm, 60 / flipping.seconds))
    table.note(count, f"{told}: API calls in a minute", f"{flipping.requests * 60 / flipping.seconds:.0f}")
    table.note(count, f"{told}: lag p99, longest, ms", flipping.lag())
    table.note(count, f"{told}: longest turn, ms of CPU", _ms(flipping.turn))
    await asyncio.sleep(SETTLING)


async def _bare(one: Hall, count: int, rounds: Rounds, template: Object) -> None:
    """The same pods without an operator: what the API server, the machines and this client can do."""
    kube, bodies = one.site.kube, [_like(template, number) for number in range(count)]
    out = one.meter.begin()
    await in_flight([lambda body=body: kube.create(PODS, body) for body in bodies])  # type: ignore[misc]
    await reached(lambda: one.has(count), "all pods exist")
    rounds.bare_out.append(out.end())
    await reached(lambda: all((pod.get("status") or {}).get("phase") == "Running" for pod in one.pods.store), "all run")
    await asyncio.sleep(1.0)
    names = [body["metadata"]["name"] for body in bodies]
    gone = one.meter.begin()
    await in_flight([lambda name=name: kube.delete(PODS, name, one.site.namespace, uid=None) for name in names])  # type: ignore[misc]
    await reached(lambda: one.has(0), "all pods are gone")
    rounds.bare_gone.append(gone.end())


def _like(template: Object, number: int) -> Object:
    """A pod with the spec of one of the operator's, which the operator does not take for its own."""
    own, spec = template["metadata"], copy.deepcopy(template["spec"])
    spec.pop("nodeName", None)
    arguments = spec["containers"][0]["args"]
    # Their records are to be nobody's either, or the operator would have them to settle.
    arguments[arguments.index("--extra") + 1] = BARE
    kept = {key: value for key, value in own["labels"].items() if not key.startswith(labels.NODESET_PREFIX)}
    metadata = {
        "name": f"b-{number}",
        "namespace": own["namespace"],
        "labels": kept,
        "ownerReferences": own["ownerReferences"],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | {"hostname": f"b-{number}"}}


def _note(table: Table, count: int, rounds: Rounds) -> None:
    for what, made, done, settled, bare in (
        ("out", "pods exist", rounds.out, rounds.ready, rounds.bare_out),
        ("in", "pods gone", rounds.gone, rounds.settled, rounds.bare_gone),
    ):
        ours, theirs = _best(done), _best(bare)
        end = "all ready" if what == "out" else "records gone"
        whole = _best(settled)
        table.note(count, f"{what}: {made}, s (bare loop)", f"{ours.seconds:.2f} ({theirs.seconds:.2f})")
        table.note(count, f"{what}: operator / bare loop", f"{ours.seconds / theirs.seconds:.2f}")
        table.note(count, f"{what}: {end}, s", f"{whole.seconds:.2f}")
        table.note(count, f"{what}: Slurm calls + polls", " ".join(calls.told(one.slurm) for one in settled))
        table.note(count, f"{what}: API calls a pod", f"{whole.requests / count:.2f}")
        table.note(count, f"{what}: CPU a pod, ms (bare loop)", f"{_each(ours, count)} ({_each(theirs, count)})")
        table.note(
            count,
            f"{what}: CPU of the API server, s (bare loop)",
            f"{ours.servers:.1f} ({theirs.servers:.1f})",
        )
        table.note(count, f"{what}: lag p99, longest, ms", max(settled, key=lambda one: max(one.lags)).lag())
        table.note(count, f"{what}: longest turn, ms of CPU", _ms(max(one.turn for one in settled)))


def _best(rounds: list[Measured]) -> Measured:
    return min(rounds, key=lambda one: one.seconds)


def _each(measured: Measured, count: int) -> str:
    return f"{measured.cpu / count * 1000:.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
