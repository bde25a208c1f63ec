"""The other side of the bench, in a separate process: Slurm, and machines on which pods start, register and end.

No kubelet and no kwok: what they would write about a pod is written with the operator's own client (`Machines`), by
many workers at a time. kwok would write the same, by stages in YAML; but when a pod starts its slurmd has to register
with the fake slurmrestd, with the pod's uid and the arguments from its spec, and no stage of kwok can do that, so
something like this would be needed anyway. kwok would also have to be built, from its Go module.

Prints the address of its slurmrestd as the first line. Each line on its standard input is a number of nodes: from then
on that many change their state in a minute, evenly; with 0, all are idle again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from typing_extensions import override

from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slurm_client.testing import FakeSlurmrestd
from tests.integration.nodeset.machines import Machines

WORKERS = 24

BARE = "bare/loop"
"""Mark of the records that belong to pods of the bare loop."""


class Hall(Machines):
    """Machines that play for many pods at a time, each when something about it has changed."""

    async def work(self) -> None:
        """Until cancelled."""
        changed: asyncio.Queue[Object] = asyncio.Queue()

        def note(old: Object | None, new: Object | None) -> None:
            if new is not None:
                changed.put_nowait(new)

        self.pods.add_handler(note)

        async def serve() -> None:
            while True:
                pod = await changed.get()
                try:
                    await self._one(pod)
                except (errors.NotFound, errors.Conflict, errors.Invalid):
                    continue  # it has changed meanwhile, which comes as a change

        await asyncio.gather(*(serve() for _ in range(WORKERS)))

    @override
    async def _end(self, pod: Object) -> None:
        name = pod["spec"]["hostname"]
        if name in self.slurm.nodes and self.slurm.nodes[name].extra == BARE:
            # Nobody else would, and the next round is to begin as the first did.
            self.slurm.remove_node(name)
        await super()._end(pod)


async def flip(slurm: FakeSlurmrestd) -> None:
    """Change as many nodes a minute as the last line says."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    rate, turn = 0, 0
    line = asyncio.ensure_future(lines.readline())
    while True:
        await asyncio.wait([line], timeout=60 / rate if rate else None)
        if line.done():
            if not line.result():
                return
            rate = int(line.result())
            for name in slurm.nodes if not rate else ():
                slurm.update_node(name, state="IDLE+DYNAMIC_NORM")
            line = asyncio.ensure_future(lines.readline())
            continue
        names = sorted(slurm.nodes)
        name = names[turn % len(names)]
        turn += 1
        base = "IDLE" if slurm.nodes[name].state.base != "IDLE" else "MIXED"
        slurm.update_node(name, state=f"{base}+DYNAMIC_NORM")


async def main(kubeconfig: Path, namespace: str) -> None:
    """Play until the standard input ends."""
    async with await Connection.connect(kubeconfig) as connection, FakeSlurmrestd() as slurm:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="bench")
        pods = Informer(kube, PODS, namespaces=[namespace])
        hall = Hall(kube, slurm, namespace, pods)
        tasks = [asyncio.create_task(one) for one in (hall.work(), pods.run())]
        print(slurm.url, flush=True)
        await flip(slurm)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
