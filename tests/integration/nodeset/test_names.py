"""NodeSets whose nodes would have the name of another NodeSet, on a real API server."""

from __future__ import annotations

from slinky_api import labels
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines


async def knows(site: Site, *names: str, leaving: tuple[str, ...] = ()) -> None:
    """The running configuration knows these NodeSets, and still has those that are leaving."""
    config = {"hash": "1", "appliedHash": "1", "nodeSets": list(names), "leavingNodeSets": list(leaving)}
    await site.kube.patch_status(CLUSTERS, "c", {"config": config}, site.namespace)


async def test_the_ordinal_that_has_a_nodesets_name_is_told_and_the_others_go_on(
    site: Site, machines: Machines
) -> None:
    await knows(site, "a", "a-1")
    await site.apply(3)
    await site.until(lambda: ready(site, 2), "the others are ready")
    assert await site.names() == ["a-0", "a-2"]
    found = await site.condition("NameConflict")
    assert found["status"] == "True"
    assert "pod a-1 is not created: NodeSet a-1, which existed before, has its name" in found["message"]

    await site.apply(3, features=["new"])
    await site.until(lambda: updated(site, 2), "they are updated all the same")

    await knows(site, "a")
    await site.until(lambda: site.ready(3), "it is made when the name is free")
    assert (await site.condition("NameConflict"))["status"] == "False"


async def test_the_name_of_a_nodeset_is_used_once_slurmctld_has_dropped_it(site: Site, machines: Machines) -> None:
    """The Cluster stops listing it before it writes its next configuration, and takes its finalizer away after that."""
    await knows(site, "a", "a-1")
    await site.apply(0, name="a-1")
    patch = {"metadata": {"finalizers": [labels.FINALIZER_NODESET_CONFIG]}}
    await site.until(lambda: held_by(site, labels.FINALIZER_NODESET_DRAIN), "the operator has seen it")
    await site.kube.merge_patch(NODESETS, "a-1", patch, site.namespace)
    await site.delete(Propagation.BACKGROUND, name="a-1")
    await site.until(lambda: held_by(site, labels.FINALIZER_NODESET_CONFIG), "the Cluster alone holds it")
    await knows(site, "a")

    await site.apply(3)
    await site.until(lambda: ready(site, 2), "the others are ready")
    assert await site.names() == ["a-0", "a-2"]
    assert "NodeSet a-1 has been deleted" in (await site.condition("Progressing"))["message"]
    assert (await site.condition("NameConflict"))["status"] == "False"

    await site.kube.merge_patch(NODESETS, "a-1", {"metadata": {"finalizers": None}}, site.namespace)
    await site.until(lambda: site.ready(3), "it is made when the name is free")


async def test_the_name_of_a_nodeset_that_has_gone_is_used_once_its_partition_has(
    site: Site, machines: Machines
) -> None:
    """Its partition stays for jobs after it, and the Cluster's status says so."""
    await knows(site, "a", leaving=("a-1",))
    await site.apply(3)
    await site.until(lambda: ready(site, 2), "the others are ready")
    assert await site.names() == ["a-0", "a-2"]
    assert "NodeSet a-1 has been deleted" in (await site.condition("Progressing"))["message"]

    await knows(site, "a")
    await site.until(lambda: site.ready(3), "it is made when the name is free")


async def held_by(site: Site, finalizer: str) -> bool:
    """Whether the operator's cache shows this finalizer on a-1, and no other."""
    obj = site.nodesets.store.get(site.namespace, "a-1")
    return obj is not None and obj["metadata"].get("finalizers") == [finalizer]


async def ready(site: Site, count: int) -> bool:
    return bool((await site.nodeset()).get("status", {}).get("readyReplicas") == count)


async def updated(site: Site, count: int) -> bool:
    obj = await site.nodeset()
    status = obj["status"]
    seen = status["observedGeneration"] == obj["metadata"]["generation"]
    return bool(seen and status["updatedReplicas"] == status["readyReplicas"] == count)
