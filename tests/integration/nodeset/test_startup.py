"""How many pods may be starting at a time, on a real API server."""

from __future__ import annotations

from slinky_operator.kube.resources import PODS
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines

REGISTERED = "nodeset.slinky.slurm.net/Registered"


async def test_no_more_pods_are_starting_than_the_spec_allows(site: Site, machines: Machines) -> None:
    most = 0

    def count(*_: object) -> None:
        nonlocal most
        unregistered = [
            pod
            for pod in site.pods.store
            if REGISTERED not in {one["type"] for one in (pod.get("status") or {}).get("conditions") or ()}
        ]
        most = max(most, len(unregistered))

    site.pods.add_handler(count)
    machines.starting = False
    await site.apply(7, maxConcurrentStartup=2)
    await site.until(lambda: len(site.pods.store) == 2, "two pods are there")
    await site.until(lambda: _waits(site), "and the status says that more are wanted")
    assert len((await site.kube.list(PODS, site.namespace)).items) == 2

    machines.starting = True
    await site.until(lambda: site.ready(7), "all come up as those before them register")
    assert most == 2


async def _waits(site: Site) -> bool:
    condition = await site.condition("Progressing")
    return condition.get("reason") == "ScalingOut"
