"""What happens to Kubernetes Nodes, and what becomes of the Slurm nodes on them; on a real API server."""

from __future__ import annotations

from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines


def reason(site: Site, node: str) -> str:
    return site.slurm.nodes[node].reason if site.slurm.nodes[node].is_drain else ""


async def test_a_cordoned_node_is_drained_in_slurm_and_given_back(site: Site, machines: Machines) -> None:
    one, other = await site.add_host("one"), await site.add_host("other")
    machines.hosts = [one, other]
    await site.apply(4)
    await site.until(lambda: site.ready(4), "four nodes are ready")
    site.slurm.add_job(nodes=["a-3"])

    await site.cordon(other, because="new kernel")
    await site.until(lambda: reason(site, "a-1") and reason(site, "a-3"), "the nodes there are drained")

    assert reason(site, "a-3") == f"slurm-operator: node-cordon ({site.namespace}/a): new kernel"
    assert not reason(site, "a-0") + reason(site, "a-2")
    assert await site.names() == ["a-0", "a-1", "a-2", "a-3"]
    await site.cordon(other, on=False)
    await site.until(lambda: not reason(site, "a-1") + reason(site, "a-3"), "they are given back")


async def test_an_administrators_drain_outlives_a_cordon(site: Site, machines: Machines) -> None:
    machines.hosts = [await site.add_host("one")]
    await site.apply(2)
    await site.until(lambda: site.ready(2), "two nodes are ready")
    site.slurm.update_node("a-0", state="IDLE+DRAIN+DYNAMIC_NORM", reason="disk")

    await site.cordon(machines.hosts[0])
    await site.until(lambda: reason(site, "a-1"), "the other one is drained")
    await site.cordon(machines.hosts[0], on=False)
    await site.until(lambda: not reason(site, "a-1"), "and given back")

    assert reason(site, "a-0") == "disk"


async def test_a_node_cordoned_while_the_operator_is_away_is_noticed(site: Site, machines: Machines) -> None:
    machines.hosts = [await site.add_host("one")]
    await site.apply(1)
    await site.until(lambda: site.ready(1), "a node is ready")

    await site.crash()
    await site.cordon(machines.hosts[0])
    await site.start()
    await site.until(lambda: reason(site, "a-0"), "it is drained")
    await site.crash()
    await site.cordon(machines.hosts[0], on=False)
    await site.start()
    await site.until(lambda: not reason(site, "a-0"), "it is given back")
