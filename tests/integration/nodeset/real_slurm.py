"""A site over a real Slurm: the API server is real as well, the operator's pods are played, each with a real slurmd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from typing_extensions import override

from hack.machine import ports
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slurm_client import MintedToken
from tests.integration.nodeset.conftest import Site, site_over
from tests.integration.nodeset.machines import Machines
from tests.support.control_plane import ControlPlane
from tests.support.slurm_host import SlurmHost


class Host(SlurmHost):
    """A real Slurm cluster, and what of it a site shows when a test has failed."""

    nodes: dict[str, object] = {}  # noqa: RUF012 - the site reads it, and finds nothing there

    def __init__(self, root: Path) -> None:
        super().__init__(root)


class RealMachines(Machines):
    """The same machines, with a real slurmd in each pod."""

    host: SlurmHost
    ports: dict[str, int]
    ended: set[str]

    @override
    def register(self, pod: Object, now: datetime) -> None:
        arguments = pod["spec"]["containers"][0]["args"]
        extra = arguments[arguments.index("--extra") + 1]
        name, uid = pod["spec"]["hostname"], pod["metadata"]["uid"]
        # In pods it is the same one always; a record keeps it.
        port = self.ports.get(name) or ports.hold(1)[0]
        self.ports[name] = port
        self.host.add_node(name, cpus=2, extra=extra, instance_id=uid, configless=True, port=port, wait=False)

    @override
    async def _end(self, pod: Object) -> None:
        # The cache may show a pod that has ended already, beside another one of its name.
        if pod["metadata"]["uid"] not in self.ended:
            self.ended.add(pod["metadata"]["uid"])
            await asyncio.to_thread(self.host.stop, pod["spec"]["hostname"])
        await super()._end(pod)


@asynccontextmanager
async def real_site(control_plane: ControlPlane, host: Host, *, spec: Object | None = None) -> AsyncIterator[Site]:
    """A site without a NodeSet yet; its pods run on a Node of this name, whether there is such a Node or not."""
    async with site_over(control_plane, host, spec=spec, token=MintedToken(host.jwt_key, "slurm")) as site:
        pods = Informer(site.kube, PODS, namespaces=[site.namespace])
        machines = RealMachines(site.kube, site.slurm, site.namespace, pods)
        machines.host, machines.ports, machines.ended = host, {}, set()
        machines.hosts = [machine_of(site)]
        tasks = [asyncio.create_task(pods.run()), asyncio.create_task(machines.run())]
        yield site
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [one for one in results if isinstance(one, Exception)] == []


def machine_of(site: Site) -> str:
    """The name of the Node on which pods of a site run; unlike that of any other test's."""
    return f"machine-{site.namespace.rpartition('-')[2]}"
