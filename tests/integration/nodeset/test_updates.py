"""Updates on a real API server: what is recorded and held back, the cost of a bad image; machines are simulated."""

from __future__ import annotations

from functools import partial
from typing import Any

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONTROLLERREVISIONS, PODS
from tests.integration.nodeset.conftest import Site
from tests.integration.nodeset.machines import Machines


async def up(site: Site, count: int, **spec: Any) -> None:
    await site.apply(count, **spec)
    await site.until(lambda: site.ready(count), f"{count} nodes are ready")


async def updated(site: Site, count: int) -> bool:
    """Whether so many pods have the revision of the spec as it is now, and a pass has seen that spec."""
    return _is_updated(await site.nodeset(), count)


async def whole(site: Site, count: int) -> bool:
    """Whether that is so, and no other revision is current any more."""
    obj = await site.nodeset()
    return _is_updated(obj, count) and obj["status"]["currentRevision"] == obj["status"]["updateRevision"]


def _is_updated(obj: Object, count: int) -> bool:
    status = obj["status"]
    seen = status.get("observedGeneration") == obj["metadata"]["generation"]
    return bool(seen and status["updatedReplicas"] == count and status["readyReplicas"] >= count)


async def images(site: Site) -> dict[str, str]:
    """Image of each pod."""
    pods = (await site.kube.list(PODS, site.namespace)).items
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in pods}


async def revisions(site: Site) -> dict[str, Object]:
    """ControllerRevisions by the image they are about."""
    found = (await site.kube.list(CONTROLLERREVISIONS, site.namespace)).items
    return {one["data"]["spec"]["image"]: one for one in found}


async def test_a_spec_applied_again_finds_its_revision(site: Site, machines: Machines) -> None:
    await up(site, 2, image="one", revisionHistoryLimit=5)
    first = (await revisions(site))["one"]
    uid = (await site.nodeset())["metadata"]["uid"]
    assert [owner["uid"] for owner in first["metadata"]["ownerReferences"]] == [uid]
    assert first["metadata"]["labels"][labels.LABEL_NODESET_UID] == uid

    await site.apply(2, image="two", revisionHistoryLimit=5)
    await site.until(lambda: whole(site, 2), "both have the second image")
    await site.until(lambda: len(site.revisions.store) == 2, "the operator has seen both revisions")
    await site.apply(2, image="one", revisionHistoryLimit=5)
    await site.until(lambda: whole(site, 2), "both have the first again")

    now = await revisions(site)
    assert set(now) == {"one", "two"}
    assert now["one"]["metadata"]["uid"] == first["metadata"]["uid"]
    assert now["one"]["revision"] > now["two"]["revision"] > first["revision"]
    status = (await site.nodeset())["status"]
    assert status["currentRevision"] == status["updateRevision"] == now["one"]["metadata"]["name"]
    assert status["nodeSetHash"] == now["one"]["metadata"]["labels"][labels.LABEL_REVISION]


async def test_old_revisions_go_but_none_that_a_pod_carries(site: Site, machines: Machines) -> None:
    # A budget for both: a-0 is on its way out from the first update on, and is not to hold up a-1.
    both = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    await up(site, 2, image="one")
    job = site.slurm.add_job(nodes=["a-0"])
    for image in ("two", "three", "four"):
        await site.apply(2, image=image, updateStrategy=both)
        await site.until(partial(_has, site, "a-1", image), f"a-1 has image {image}")
    await site.until(lambda: _recorded(site, {"one", "four"}), "what nobody carries has gone")

    site.slurm.finish_job(job.id)
    await site.until(lambda: _recorded(site, {"four"}), "and so has the first in the end")


async def _recorded(site: Site, wanted: set[str]) -> bool:
    return set(await revisions(site)) == wanted


async def test_below_the_partition_everything_stays_as_it_was(site: Site, machines: Machines) -> None:
    await up(site, 3, image="one", resources={"limits": {"cpu": 2}})
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await site.apply(3, image="two", updateStrategy=rolling)
    await site.until(lambda: updated(site, 1), "one is updated")
    assert await images(site) == {"a-0": "one", "a-1": "one", "a-2": "two"}

    before = await site.kube.get(PODS, "a-0", site.namespace)
    await site.kube.delete(PODS, "a-0", site.namespace, uid=before["metadata"]["uid"])
    await site.until(lambda: site.replaced(before), "the one that was deleted is replaced")
    after = await site.kube.get(PODS, "a-0", site.namespace)
    assert after["spec"]["containers"][0]["args"] == before["spec"]["containers"][0]["args"]
    assert await images(site) == {"a-0": "one", "a-1": "one", "a-2": "two"}

    await site.apply(3, image="two")
    await site.until(lambda: whole(site, 3), "without it, all are updated")
    assert set((await images(site)).values()) == {"two"}


async def test_a_bad_image_stops_at_the_budget_and_mending_goes_on(site: Site, machines: Machines) -> None:
    await up(site, 3, image="one")
    jobs = [site.slurm.add_job(nodes=[name]) for name in ("a-0", "a-1")]
    machines.starting = False
    await site.apply(3, image="bad")
    await site.until(lambda: _has(site, "a-2", "bad"), "one has the bad image")
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    await site.until(lambda: _bound(site, "a-2"), "and is bound")
    await machines.report(await site.kube.get(PODS, "a-2", site.namespace), "Pending", waiting, ready=False)
    for job in jobs:
        site.slurm.finish_job(job.id)
    await site.until(lambda: _stuck(site), "the condition says why it does not start")
    await site.until(lambda: _idle(site, 2), "a pass has seen that the others are free to go")
    assert await images(site) == {"a-0": "one", "a-1": "one", "a-2": "bad"}
    assert not any(node.is_drain for node in site.slurm.nodes.values())

    machines.starting = True
    await site.apply(3, image="two")
    await site.until(lambda: whole(site, 3), "the mended spec reaches all")


async def _has(site: Site, name: str, image: str) -> bool:
    return (await images(site)).get(name) == image


async def _bound(site: Site, name: str) -> bool:
    return bool((await site.kube.get(PODS, name, site.namespace))["spec"].get("nodeName"))


async def _stuck(site: Site) -> bool:
    status = (await site.nodeset())["status"]
    return any("ImagePullBackOff" in one.get("message", "") for one in status["conditions"]) or any(
        "1 of 3" in one.get("message", "") for one in status["conditions"]
    )


async def _idle(site: Site, count: int) -> bool:
    return bool((await site.nodeset())["status"]["slurmIdle"] == count)


async def test_on_delete_waits_for_a_hand(site: Site, machines: Machines) -> None:
    await up(site, 2, image="one", updateStrategy={"type": "OnDelete"})
    await site.apply(2, image="two", updateStrategy={"type": "OnDelete"})
    await site.until(lambda: _recorded(site, {"one", "two"}), "the spec has been seen")
    assert await images(site) == {"a-0": "one", "a-1": "one"}

    await site.kube.delete(PODS, "a-1", site.namespace, uid=None)
    await site.until(lambda: updated(site, 1), "the one that was deleted is recreated")
    assert await images(site) == {"a-0": "one", "a-1": "two"}


async def test_what_a_slurmd_registers_with_makes_its_record_anew(site: Site, machines: Machines) -> None:
    await up(site, 1, resources={"limits": {"cpu": 1}})
    site.slurm.requests.clear()
    await site.apply(1, resources={"limits": {"cpu": 2}})
    await site.until(lambda: whole(site, 1), "the pod is replaced")

    uid = (await site.kube.get(PODS, "a-0", site.namespace))["metadata"]["uid"]
    deleted = {call.path.rpartition("/")[2] for call in site.slurm.requests if call.method == "DELETE"}
    assert deleted == {"a-0"}
    assert site.slurm.nodes["a-0"].instance_id == uid


async def test_a_revision_of_that_name_that_is_not_ours_is_told(site: Site, machines: Machines) -> None:
    await up(site, 1, image="one")
    name = (await revisions(site))["one"]["metadata"]["name"]
    await site.apply(1, image="two")
    await site.until(lambda: whole(site, 1), "the second image is there")
    await site.until(lambda: _recorded(site, {"two"}), "the first revision is gone")
    stranger = {"metadata": {"name": name, "namespace": site.namespace}, "revision": 7, "data": {"spec": {"image": ""}}}
    await site.kube.apply(CONTROLLERREVISIONS, stranger, field_manager="user")

    await site.apply(1, image="one")
    await site.until(lambda: _told(site, f"ControllerRevision {name} that is not ours"), "the condition names it")
    assert (await site.kube.get(CONTROLLERREVISIONS, name, site.namespace))["revision"] == 7


async def _told(site: Site, text: str) -> bool:
    return text in (await site.condition("Degraded")).get("message", "")
