"""Slurm and the machines of several Clusters, in a process of their own: each namespace is one Cluster.

Prints the addresses of the slurmrestds as its first line. Each line on its standard input is an order, a JSON list of
its name and arguments; each is answered by one line, a JSON value.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import PODS
from slurm_client.testing import FakeSlurmrestd
from tests.bench.nodeset.played import Hall

LENGTH = 30
"""Minutes that the job of `busy` may take."""


class Orders:
    """What the bench may ask of Slurm."""

    def __init__(self, slurms: list[FakeSlurmrestd]) -> None:
        self.slurms = slurms
        self._tasks: list[asyncio.Task[None]] = []

    def asked(self) -> dict[str, Any]:
        """Requests by operation, and bytes of answers, since the last time."""
        found = Counter(one.operation for slurm in self.slurms for one in slurm.requests)
        sent = sum(slurm.bytes_sent for slurm in self.slurms)
        for slurm in self.slurms:
            slurm.requests.clear()
            slurm.bytes_sent = 0
        return {"calls": found, "bytes": sent}

    def drain(self, name: str) -> float:
        """An administrator drains a node of the first Cluster; returns when, by the clock of the machine."""
        _ = self.slurms[0].set_flags(name, add=["DRAIN"])
        _ = self.slurms[0].update_node(name, reason="by hand", reason_set_by="root")
        return time.time()

    def undrain(self, name: str) -> float:
        """And resumes it."""
        _ = self.slurms[0].set_flags(name, remove=["DRAIN"])
        _ = self.slurms[0].update_node(name, reason="", reason_set_by="")
        return time.time()

    def flip(self, number: int) -> None:
        """One node of the first Cluster gets or loses a job, by its place."""
        slurm = self.slurms[0]
        name = sorted(slurm.nodes)[number % len(slurm.nodes)]
        base = "IDLE" if slurm.nodes[name].state.base != "IDLE" else "MIXED"
        _ = slurm.update_node(name, state=f"{base}+DYNAMIC_NORM")

    def busy(self) -> None:
        """One job runs on all nodes of the first Cluster."""
        _ = self.slurms[0].add_job(nodes=sorted(self.slurms[0].nodes), state="RUNNING", time_limit=LENGTH)

    def idle(self) -> None:
        """It has ended, and is forgotten."""
        for job in list(self.slurms[0].jobs):
            _ = self.slurms[0].finish_job(job)
            self.slurms[0].forget_job(job)

    def occupy(self, share: float, ends: float) -> None:
        """Of the nodes of the first Cluster this share has a job each; so many end in a second, others begin."""
        slurm, luck = self.slurms[0], random.Random(1)  # noqa: S311 - to be repeated
        names = sorted(slurm.nodes)
        luck.shuffle(names)
        taken, free = names[: int(len(names) * share)], names[int(len(names) * share) :]
        with slurm.world.many_jobs():
            numbers = {name: slurm.add_job(nodes=[name], state="RUNNING", time_limit=LENGTH).id for name in taken}

        async def turn_over() -> None:
            while True:
                await asyncio.sleep(1 / ends)
                ended = taken.pop(luck.randrange(len(taken)))
                slurm.world.set_job_state(numbers.pop(ended), "COMPLETED", end_time=slurm.world.now)
                begun = free.pop(luck.randrange(len(free)))
                numbers[begun] = slurm.add_job(nodes=[begun], state="RUNNING", time_limit=LENGTH).id
                taken.append(begun)
                free.append(ended)

        self._tasks.append(asyncio.create_task(turn_over()))

    def calm(self) -> None:
        """No job ends or begins any more."""
        while self._tasks:
            task = self._tasks.pop()
            if task.done():
                task.result()
            _ = task.cancel()

    def drained(self) -> int:
        """How many nodes of the first Cluster are drained."""
        return sum(node.is_drain for node in self.slurms[0].nodes.values())


async def main(kubeconfig: Path, namespaces: list[str]) -> None:
    """Play until the standard input ends."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(await Connection.connect(kubeconfig))
        kube = KubeClient(connection, fence=OpenFence(), field_manager="bench")
        slurms = [await stack.enter_async_context(FakeSlurmrestd()) for _ in namespaces]
        tasks = []
        for slurm, namespace in zip(slurms, namespaces, strict=True):
            slurm.conf["MaxNodeCount"] = 65_000
            pods = Informer(kube, PODS, namespaces=[namespace])
            hall = Hall(kube, slurm, namespace, pods)
            tasks += [asyncio.create_task(one) for one in (hall.work(), pods.run())]
        print(json.dumps([slurm.url for slurm in slurms]), flush=True)
        orders, lines = Orders(slurms), asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            name, *arguments = json.loads(line)
            print(json.dumps(getattr(orders, name)(*arguments)), flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
