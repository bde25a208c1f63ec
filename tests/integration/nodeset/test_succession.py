"""The Cluster of a NodeSet is deleted and recreated under its name, while pods hold jobs."""

from __future__ import annotations

from slinky_api import labels
from slinky_operator.kube.resources import CLUSTERS, EVENTS, PODS
from tests.integration.nodeset.conftest import Site, reason, up
from tests.integration.nodeset.machines import Machines


async def pods(site: Site) -> dict[str, str]:
    found = (await site.kube.list(PODS, site.namespace)).items
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


async def says(site: Site, condition: str, *reasons: str) -> bool:
    return (await site.condition(condition)).get("reason") in reasons


async def adopted(site: Site, uid: str) -> bool:
    found = (await site.kube.list(PODS, site.namespace)).items
    return {one["metadata"]["labels"][labels.LABEL_CLUSTER_UID] for one in found} == {uid}


async def told(site: Site, words: str) -> bool:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return any(one["reason"] == "PodsAdopted" and words in one["message"] for one in events)


async def test_pods_go_over_to_a_cluster_created_again_under_its_name(site: Site, machines: Machines) -> None:
    await up(site, 2)
    before, job = await pods(site), site.slurm.add_job(nodes=["a-0"])
    await site.kube.delete(CLUSTERS, "c", site.namespace, uid=site.cluster["metadata"]["uid"])
    await site.until(lambda: says(site, "Degraded", "ClusterGone", "ClusterNotFound"), "the NodeSet says what it lacks")
    await site.scale(3)

    # As it is before a configuration is live: no NodeSet is listed.
    uid = await site.create_cluster_again()
    await site.until(lambda: adopted(site, uid), "the pods have the labels of the next Cluster")
    await site.until(lambda: told(site, "a-0, a-1"), "an Event says so")
    await site.until(lambda: says(site, "Progressing", "NotInConfig"), "the NodeSet waits to be listed")
    assert await pods(site) == before
    assert not reason(site, "a-0")

    status = {"config": {"hash": "1", "appliedHash": "1", "nodeSets": ["a", "a-b"]}}
    await site.kube.patch_status(CLUSTERS, "c", status, site.namespace)
    await site.until(lambda: site.ready(3), "all are ready")
    await site.scale(0)

    async def only_the_busy_one() -> bool:
        return set(await pods(site)) == {"a-0"}

    await site.until(only_the_busy_one, "idle ones have gone")
    assert (await pods(site))["a-0"] == before["a-0"]
    site.slurm.finish_job(job.id)

    async def none() -> bool:
        return not await pods(site)

    await site.until(none, "the last goes when its job has ended")


async def test_a_label_of_the_clusters_that_somebody_took_off_is_put_back(site: Site, machines: Machines) -> None:
    await up(site, 1)
    before = await pods(site)
    # Without the Cluster's name the caches do not show the pod: `test_words`.
    for label in (labels.LABEL_CLUSTER_UID, labels.LABEL_DAEMON):
        patch = {"metadata": {"labels": {label: None}}}
        version = (await site.kube.merge_patch(PODS, "a-0", patch, site.namespace))["metadata"]["resourceVersion"]

        async def has_it(label: str = label, version: str = version) -> bool:
            metadata = (await site.kube.get(PODS, "a-0", site.namespace))["metadata"]
            return label in metadata["labels"] and metadata["resourceVersion"] != version

        await site.until(has_it, f"{label} is back")
    assert await pods(site) == before
