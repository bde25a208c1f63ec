"""What the operator's process costs, and how long things take, by the number of nodes, NodeSets and Clusters.

Prints, asserts no time. The API server and the operator are real, Slurm and the machines are pretended by another
process (`played`). The references of each figure are in `bare`: the same writes and reads, by the operator's client or
by httpx, in the same run. ``BENCH_ALL=1`` for all sizes; alone: ``pytest tests/bench/whole --capture=no
--override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODESETS, PODS
from tests.bench.figures import Figures
from tests.bench.whole import bare
from tests.bench.whole.sites import Site, Used, reached, site
from tests.support import control_plane
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_crds

pytestmark = pytest.mark.timeout(3600)

ALL = bool(os.environ.get("BENCH_ALL"))


def sizes(name: str, quick: str, every: str) -> list[int]:
    """Sizes from the environment, else those of a quick run, or all."""
    return [int(size) for size in os.environ.get(name, every if ALL else quick).split(",")]


NODES = sizes("BENCH_NODES", "100,1000", "100,1000,5000")
SETS = sizes("BENCH_NODESETS", "1,10", "1,10,50")
CLUSTERS = sizes("BENCH_CLUSTERS", "1,5", "1,5,20")
PARTS = os.environ.get("BENCH_PARTS", "rest,seen,busy,edits,revert,update,restart,in").split(",")
"""What is done after nodes have come; `in` is compared with a bare loop, and so is all before it."""
TOGETHER = 200
"""Nodes of all NodeSets, or of all Clusters."""
SETTLING = 5.0
RESTING = 20.0
"""Seconds for which nothing happens."""
AGAIN = 5
"""Minutes after which the whole list of nodes is asked for again (`slurm_client.watch.Pace`)."""
EVENTS = 15
"""Nodes that change, one each second."""
SAMPLES = 16 if ALL else 6
"""Changes by hand, for times until the status shows them."""
SAMPLES_OF_BUSY = 20
"""The same while jobs come and go: so many have a longest but one, which is their 95th percentile."""
BUSY = 0.8
"""Share of the nodes that have a job."""
A_DAY = 100_000
"""Jobs in a day that 5,000 such nodes run; fewer nodes run fewer."""
EDITS = 3 if ALL else 1
POLLS = "a loop of httpx that asks once a second"
EMPTY = "the same process without nodes"
LIST = "httpx: the list of nodes, once, decoded"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("bench") as running:
        apply_crds(running.kubectl)
        yield running


@pytest.mark.parametrize("nodes", NODES)
async def test_nodes(plane: ControlPlane, tmp_path: Path, figures: Figures, nodes: int) -> None:
    bench = Bench(figures, "nodes", nodes, nodes)
    async with site(plane, tmp_path) as one:
        async with one.operating():
            await bench.out(one)
            for name in ("rest", "seen", "busy", "edits", "revert", "update"):
                if name in PARTS:
                    await getattr(bench, name)(one)
            assert one.process is not None
            _ = await one.process.end()
        if "restart" in PARTS:
            await bench.restart(one)
        if "in" in PARTS:
            await bench.gone(one)
            await bench.compare(one)


@pytest.mark.parametrize("sets", SETS)
async def test_nodesets(plane: ControlPlane, tmp_path: Path, figures: Figures, sets: int) -> None:
    bench = Bench(figures, f"NodeSets with {TOGETHER} nodes together", sets, TOGETHER)
    async with site(plane, tmp_path, nodesets=sets) as one, one.operating():
        await bench.out(one, nodesets=sets)
        await bench.rest(one)
        await bench.seen(one)
        await bench.edits(one)


@pytest.mark.parametrize("clusters", CLUSTERS)
async def test_clusters(plane: ControlPlane, tmp_path: Path, figures: Figures, clusters: int) -> None:
    bench = Bench(figures, f"Clusters with {TOGETHER} nodes together", clusters, TOGETHER)
    async with site(plane, tmp_path, clusters=clusters) as one, one.operating():
        await bench.out(one)
        await bench.rest(one)
        await bench.seen(one)
        await bench.edits(one)


class Bench:
    """Figures of one size.

    Parameters
    ----------
    of, size
        What is counted, and how many.
    nodes
        How many nodes there are in all.
    """

    def __init__(self, figures: Figures, of: str, size: int, nodes: int) -> None:
        self._figures, self._of, self._size, self._nodes = figures, of, size, nodes
        self._times: dict[str, float] = {}
        self._first: Object | None = None

    def _note(self, what: str, figure: float, unit: str, reference: float | None = None, against: str = "") -> None:
        self._figures.note(what, self._of, self._size, figure, unit, reference, against)
        told = f" ({figure / reference:.2f} of: {against})" if reference else ""
        print(f"\n{self._size} {self._of}: {what}: {figure:.3f} {unit}{told}", end="", flush=True)

    def _turns(self, what: str, used: Used) -> None:
        self._note(f"{what}: turn of the loop, p99", used.p99 * 1e3, "ms of CPU")
        self._note(f"{what}: longest turn of the loop", used.longest * 1e3, "ms of CPU")

    async def out(self, one: Site, nodesets: int = 1) -> None:
        """All nodes come at once."""
        assert one.process is not None
        await one.process.until_status("/readyz", 200)
        await asyncio.sleep(SETTLING)
        await one.begin()
        self._empty = (await one.used()).rss
        began = time.monotonic()
        each = self._nodes // (nodesets * len(one.namespaces))
        for namespace in one.namespaces:
            for number in range(nodesets):
                await one.scale(each, f"a-{number}", namespace)
        await one.reached(lambda: len(one.pods.store) == self._nodes, "all pods exist")
        self._times["out"] = time.monotonic() - began
        await one.reached(lambda: one.ready(self._nodes), "all are ready")
        self._times["ready"] = time.monotonic() - began
        used = await one.used()
        self._turns("out", used)
        self._note("out: CPU a node", used.cpu / self._nodes * 1e3, "ms")
        self._note("out: Slurm calls", sum(used.calls.values()), "calls")
        self._note("out: API calls a node", used.requests / self._nodes, "calls")
        if self._of != "nodes":
            self._note("out: all ready", self._times["ready"], "s")
        self._first = one.pods_of("a-0-0")
        assert self._first is not None

    async def rest(self, one: Site) -> None:
        """Nothing happens; and then a node changes each second."""
        await asyncio.sleep(SETTLING)
        _ = await one.used()
        await asyncio.sleep(RESTING)
        idle = await one.used()
        polls = bare.Polls(one)
        alone = await polls.at_rest(5)
        whole = await polls.whole()
        self._note("memory at rest", idle.rss, "MB", self._empty, EMPTY)
        self._note("memory at rest, most so far", idle.most, "MB", self._empty, EMPTY)
        self._note("at rest: CPU", idle.share * 100, "% of a core", alone * 100, POLLS)
        self._note("at rest: Slurm calls in a minute", sum(idle.calls.values()) / idle.seconds * 60, "calls")
        # The list that is asked for although nothing has changed comes each five minutes: it is counted by itself.
        small = idle.bytes % polls.size / idle.seconds * 60
        self._note("at rest: Slurm answers in a minute", (small + polls.size / AGAIN) / 1e3, "kB")
        self._note("at rest: of these what is no whole list", small / 1e3, "kB")
        self._note("at rest: API calls in a minute", idle.requests / idle.seconds * 60, "calls")
        self._turns("at rest", idle)
        await asyncio.sleep(SETTLING)
        _ = await one.used()
        for number in range(EVENTS):
            await one.order("flip", number)
            await asyncio.sleep(1)
        busy = await one.used()
        more = (busy.cpu - idle.share * busy.seconds) / EVENTS
        self._note("a node changes each second: CPU a change", more * 1e3, "ms", whole * 1e3, LIST)
        self._note("a node changes each second: Slurm answers a change", busy.bytes / EVENTS / 1e3, "kB")
        self._turns("a node changes each second", busy)
        for number in range(EVENTS):
            await one.order("flip", number)
        await polls.close()

    async def seen(self, one: Site) -> None:
        """An administrator drains a node; until the status of its NodeSet counts it."""
        luck, polls = random.Random(1), bare.Polls(one)  # noqa: S311 - to be repeated
        _ = await polls.ask()
        ours, theirs = [], []
        await asyncio.sleep(SETTLING)
        for number in range(SAMPLES):
            name = "a-0-0"
            at = float(await one.order("drain", name))
            await one.reached(lambda: one.status().get("slurmDrain") == 1, "the drain is shown")
            ours.append(time.time() - at)
            await one.order("undrain", name)
            await one.reached(lambda: one.status().get("slurmDrain", 0) == 0, "the end of the drain is shown")
            await asyncio.sleep(luck.random())
            if number < SAMPLES // 2:
                theirs.append(await polls.seen(name, luck.random()))
                await one.order("undrain", name)
                await asyncio.sleep(luck.random())
        await one.reached(lambda: one.status().get("slurmDrain", 0) == 0, "no drain is left")
        await polls.close()
        median = sorted(theirs)[len(theirs) // 2]
        self._note("a change in Slurm to status: median", sorted(ours)[SAMPLES // 2], "s", median, POLLS)
        self._note(f"a change in Slurm to status: longest of {SAMPLES}", max(ours), "s", max(theirs), POLLS)

    async def busy(self, one: Site) -> None:
        """The same while four nodes in five have a job, and jobs come and go."""
        luck = random.Random(2)  # noqa: S311 - to be repeated
        await one.order("occupy", BUSY, A_DAY / 86_400 * self._nodes / 5_000)
        await asyncio.sleep(SETTLING)
        _ = await one.used()
        ours = []
        for _ in range(SAMPLES_OF_BUSY):
            name = f"a-0-{luck.randrange(self._nodes)}"
            at = float(await one.order("drain", name))
            await one.reached(lambda: one.status().get("slurmDrain") == 1, "the drain is shown")
            ours.append(time.time() - at)
            await one.order("undrain", name)
            await one.reached(lambda: one.status().get("slurmDrain", 0) == 0, "the end of the drain is shown")
            await asyncio.sleep(luck.random() * 2)
        used = await one.used()
        ours.sort()
        told = f"of {SAMPLES_OF_BUSY}"
        self._note("busy: a change in Slurm to status, median", ours[SAMPLES_OF_BUSY // 2], "s")
        self._note(f"busy: a change in Slurm to status, 95th percentile {told}", ours[-2], "s")
        self._note(f"busy: a change in Slurm to status, longest {told}", ours[-1], "s")
        self._note("busy: CPU", used.share * 100, "% of a core")
        self._note("busy: Slurm answers in a minute", used.bytes / used.seconds * 60 / 1e3, "kB")
        self._turns("busy", used)
        await one.order("calm")
        await one.order("idle")
        await one.reached(lambda: one.ready(self._nodes), "all are ready after that")

    async def edits(self, one: Site) -> None:
        """Somebody deletes a pod; until another has its name."""
        took = []
        for number in range(EDITS):
            name = f"a-0-{number}"
            old = one.pods_of(name)
            assert old is not None
            began = time.monotonic()
            _ = await one.kube.delete(PODS, name, one.namespace, uid=None)
            await one.reached(lambda name=name, old=old: self._is_new(one, name, old), "another pod of the name")  # type: ignore[misc]
            took.append(time.monotonic() - began)
            await one.reached(lambda: one.ready(self._nodes), "all are ready again")
        self._times["edit"] = sorted(took)[EDITS // 2]
        if self._of != "nodes":
            self._note("a pod deleted by hand to its successor", self._times["edit"], "s")
            last = await one.used()
            self._note("memory", last.rss, "MB", self._empty, EMPTY)

    def _is_new(self, one: Site, name: str, old: Object) -> bool:
        new = one.pods_of(name)
        return new is not None and bool(new["metadata"]["uid"] != old["metadata"]["uid"])

    async def revert(self, one: Site) -> None:
        """Half of the nodes, which run a job, are to go, and are wanted again after all."""
        await one.order("busy")
        keep = self._nodes // 2
        await one.scale(keep)
        await self._drained(one, self._nodes - keep)
        _ = await one.used()
        began = time.monotonic()
        await one.scale(self._nodes)
        await self._drained(one, 0)
        took = time.monotonic() - began
        used = await one.used()
        polls = bare.Polls(one)
        alone = await polls.undrained([f"a-0-{number}" for number in range(keep, self._nodes)])
        await polls.close()
        self._note("revert of a scale-in: no drain left", took, "s", alone, "httpx: one call, and a list")
        self._note("revert: Slurm calls", sum(used.calls.values()), "calls")
        await one.order("idle")
        await one.reached(lambda: one.ready(self._nodes), "all are ready after the revert")

    async def _drained(self, one: Site, count: int) -> None:
        while await one.order("drained") != count:  # noqa: ASYNC110 - the pretended Slurm sets no event
            await asyncio.sleep(0.05)

    async def update(self, one: Site) -> None:
        """All pods get another image, all at once."""
        _ = await one.used()
        began = time.monotonic()
        _ = await one.kube.merge_patch(NODESETS, "a-0", {"spec": {"image": "slurmd:2"}}, one.namespace)

        def done() -> bool:
            pods = list(one.pods.store)
            new = sum(pod["spec"]["containers"][0]["image"] == "slurmd:2" for pod in pods)
            return new == len(pods) == self._nodes and one.ready(self._nodes)

        await one.reached(done, "all pods have the new image")
        self._times["update"] = time.monotonic() - began
        used = await one.used()
        self._turns("update", used)
        self._note("update: API calls a node", used.requests / self._nodes, "calls")
        self._note("update: Slurm calls", sum(used.calls.values()), "calls")
        self._note("memory after an update", used.rss, "MB", self._empty, EMPTY)
        self._note("memory after an update, most", used.most, "MB", self._empty, EMPTY)

    async def restart(self, one: Site) -> None:
        """The operator has ended; one node more is wanted when it comes again."""
        assert self._first is not None
        alone = await bare.restarted(one, bare.like(self._first, self._nodes))
        _ = await one.kube.delete(PODS, f"b-{self._nodes}", one.namespace, uid=None)
        await reached(lambda: len(one.pods.store) == self._nodes, "the pod of the bare program is gone")
        more = f"a-0-{self._nodes}"
        await one.scale(self._nodes + 1)
        began = time.monotonic()
        async with one.operating():
            await one.reached(lambda: one.pods_of(more) is not None, "the pod that is missing")
            took = time.monotonic() - began
            self._note("restart to first right action: CPU", one.cpu(), "s")
            told = "a program that lists pods and creates one"
            self._note("restart to first right action", took, "s", alone, told)
            await one.reached(lambda: one.ready(self._nodes + 1), "all are ready after a restart")
            await one.begin()
            self._note("memory after a restart", (await one.used()).rss, "MB", self._empty, EMPTY)
            assert one.process is not None
            _ = await one.process.end()

    async def gone(self, one: Site) -> None:
        """All leave."""
        async with one.operating():
            assert one.process is not None
            await one.process.until_status("/readyz", 200)
            await asyncio.sleep(SETTLING)
            await one.begin()
            began = time.monotonic()
            await one.scale(0)
            await one.reached(lambda: not len(one.pods.store), "all pods are gone")
            self._times["in"] = time.monotonic() - began
            await one.reached(lambda: one.ready(0), "none is left")
            used = await one.used()
            self._turns("in", used)
            self._note("in: Slurm calls", sum(used.calls.values()), "calls")

    async def compare(self, one: Site) -> None:
        """The same by a bare loop, without an operator."""
        assert self._first is not None
        first = self._first
        bodies = [bare.like(first, number) for number in range(self._nodes)]
        exist, run = await bare.out(one, bodies)
        edit = await bare.replaced(one, bodies[0])
        gone = await bare.gone(one, bodies)
        loop = "a bare loop, 50 at a time"
        self._note("out: pods exist", self._times["out"], "s", exist, loop)
        self._note("out: all ready", self._times["ready"], "s", run, loop)
        self._note("in: pods gone", self._times["in"], "s", gone, loop)
        if "update" in self._times:
            self._note("update: all replaced and ready", self._times["update"], "s", gone + run, "both bare loops")
        if "edit" in self._times:
            self._note("a pod deleted by hand to its successor", self._times["edit"], "s", edit, "a bare client")
