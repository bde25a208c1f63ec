"""A process that leads and then writes as fast as it can; the freezing test stops and wakes it."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Fenced
from slinky_operator.kube.leadership.fence import DeadlineFence, OpenFence
from slinky_operator.kube.leadership.lease import Elector, LeadershipLost
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.runtime.tasks import Supervisor, TaskCrashed

LOST = 7
"""Exit status after the loss of leadership."""


async def write(client: KubeClient, namespace: str, identity: str) -> None:
    """Write without pause; more calls at once than may be on the wire, so that some always wait for their turn."""
    count = itertools.count()

    async def one_after_another() -> None:
        while True:
            data = {"count": str(next(count))}
            body = {"metadata": {"name": f"written-by-{identity}", "namespace": namespace}, "data": data}
            try:
                await client.apply(CONFIGMAPS, body)
            except Fenced:
                await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            _ = group.create_task(one_after_another())


async def main(kubeconfig: str, namespace: str, identity: str) -> int:
    async with await Connection.connect(Path(kubeconfig)) as connection, Supervisor() as supervisor:
        fence = DeadlineFence()
        elector = Elector(
            KubeClient(connection, fence=OpenFence(), field_manager=identity),
            namespace=namespace,
            name="lease",
            identity=identity,
            fence=fence,
            duration=15.0,
            renew_deadline=12.0,
            retry_period=0.5,
        )
        supervisor.start("elector", elector.run())
        await elector.leading.wait()
        supervisor.start(
            "writer", write(KubeClient(connection, fence=fence, field_manager=identity), namespace, identity)
        )
        sys.stdout.write("writing\n")
        sys.stdout.flush()
        try:
            await supervisor.wait()
        except TaskCrashed as crash:
            return LOST if isinstance(crash.error, LeadershipLost) else 1
        return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
