"""User operations on a NodeSet, on a real API server; Slurm and the machines are simulated."""

from __future__ import annotations

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.resources import NODESETS, PODS
from tests.integration.nodeset.conftest import Site, reason, up
from tests.integration.nodeset.machines import Machines

pytestmark = [pytest.mark.smoke, pytest.mark.long]


async def test_pods_come_up_registered_and_are_told(site: Site, machines: Machines) -> None:
    await up(site, 3)

    assert await site.names() == ["a-0", "a-1", "a-2"]
    pod = await site.kube.get(PODS, "a-1", site.namespace)
    arguments = pod["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--extra") + 1] == f"{site.namespace}/a"
    assert [owner["kind"] for owner in pod["metadata"]["ownerReferences"]] == ["NodeSet", "ConfigMap"]
    status = (await site.nodeset())["status"]
    assert status["numberReady"] == status["readyReplicas"] == status["slurmIdle"] == status["numberIdle"] == 3
    assert (await site.condition("Ready"))["status"] == "True"
    scale = await site.kube.get_scale(NODESETS, "a", site.namespace)
    assert scale["status"]["replicas"] == 3
    assert f"{labels.LABEL_NODESET_UID}={(await site.nodeset())['metadata']['uid']}" in scale["status"]["selector"]


async def test_nothing_is_written_when_nothing_is_to_be_done(site: Site, machines: Machines) -> None:
    await up(site, 2)
    generation = (await site.nodeset())["metadata"]["resourceVersion"]
    calls = len(site.slurm.calls("post_node")) + len(site.slurm.calls("post_nodes"))

    await site.crash()
    await site.start()
    await site.kube.merge_patch(NODESETS, "a", {"metadata": {"annotations": {"seen": "1"}}}, site.namespace)
    await site.until(lambda: len(site.pods.store) == 2, "the caches are filled again")
    await site.scale(3)
    await site.until(lambda: site.ready(3), "the third node is there")

    assert len(site.slurm.calls("post_node")) + len(site.slurm.calls("post_nodes")) == calls
    assert (await site.nodeset())["metadata"]["resourceVersion"] != generation


async def test_a_scale_in_takes_idle_nodes_and_waits_for_jobs(site: Site, machines: Machines) -> None:
    await up(site, 4)
    running = site.slurm.add_job(nodes=["a-3"])
    suspended = site.slurm.add_job(nodes=["a-2"], state="SUSPENDED")
    site.slurm.update_node("a-2", state="IDLE+DYNAMIC_NORM")

    await site.scale(0)
    await site.until(lambda: _are(site, ["a-2", "a-3"]), "the idle ones are gone")
    await site.until(lambda: set(site.slurm.nodes) == {"a-2", "a-3"}, "and their records")
    await site.until(
        lambda: reason(site, "a-2").startswith("slurm-operator: ") and reason(site, "a-3") != "", "busy ones drain"
    )
    await site.until(lambda: _waits(site, running.id, suspended.id), "the condition names both jobs")

    site.slurm.finish_job(running.id)
    await site.until(lambda: _are(site, ["a-2"]), "the one whose job has ended goes")
    site.slurm.finish_job(suspended.id)
    await site.until(lambda: _are(site, []), "the one whose suspended job has ended goes")
    await site.until(lambda: not site.slurm.nodes, "no record is left")


async def _are(site: Site, names: list[str]) -> bool:
    return await site.names() == names


async def _waits(site: Site, *jobs: int) -> bool:
    condition = await site.condition("Draining")
    return condition.get("reason") == "WaitingForJobs" and all(f"job {job} " in condition["message"] for job in jobs)


async def test_a_scale_in_taken_back_gives_the_nodes_back(site: Site, machines: Machines) -> None:
    await up(site, 2)
    for name in ("a-0", "a-1"):
        site.slurm.add_job(nodes=[name])
    await site.scale(0)
    await site.until(lambda: reason(site, "a-0") and reason(site, "a-1"), "both drain")

    await site.scale(2)
    await site.until(lambda: not any(node.is_drain for node in site.slurm.nodes.values()), "both are given back")
    assert await site.names() == ["a-0", "a-1"]
    words = [
        word for call in site.slurm.requests if call.method == "POST" for word in (call.body or {}).get("state", ())
    ]
    assert "RESUME" not in words


async def test_the_drain_of_an_administrator_stays_through_everything(site: Site, machines: Machines) -> None:
    await up(site, 2)
    site.slurm.update_node("a-0", state="IDLE+DRAIN+DYNAMIC_NORM", reason="mine")

    await site.scale(3)
    await site.until(lambda: site.ready(3), "three are ready")
    await site.scale(1)
    await site.until(lambda: _count(site, 1), "one is left")
    assert site.slurm.nodes["a-0"].is_drain
    assert reason(site, "a-0") == "mine"
    await site.scale(3)
    await site.until(lambda: site.ready(3), "three are ready again")

    assert reason(site, "a-0") == "mine"
    assert await site.names() == ["a-0", "a-1", "a-2"]
    # 26.05 keeps the instance id of the first registration: the pod is another one all the same.
    assert site.slurm.nodes["a-0"].instance_id != (await site.kube.get(PODS, "a-0", site.namespace))["metadata"]["uid"]


async def _count(site: Site, count: int) -> bool:
    return len(await site.names()) == count


@pytest.mark.parametrize("fault", ["silence", "no token", "no slurmctld"])
async def test_blind_nothing_is_deleted(site: Site, machines: Machines, fault: str) -> None:
    await up(site, 2)
    match fault:
        case "silence":
            await site.slurm.stop()
        case "no token":
            site.slurm.faults.add(times=None, status=401, body="Authentication failure", content_type="text/plain")
        case _:
            site.slurm.faults.controller_down()
    await site.scale(0)
    await site.until(lambda: _blind(site), "the condition says so")
    assert await site.names() == ["a-0", "a-1"]

    site.slurm.faults.clear()
    if fault == "silence":
        await site.slurm.start()
    await site.until(lambda: _are(site, []), "with Slurm back, all go")


async def _blind(site: Site) -> bool:
    condition = await site.condition("SlurmReachable")
    generation = (await site.nodeset())["metadata"]["generation"]
    seen = (await site.nodeset())["status"].get("observedGeneration") == generation
    return seen and condition.get("status") == "False" and bool(condition.get("message"))


@pytest.mark.parametrize("propagation", list(Propagation))
async def test_a_deleted_nodeset_waits_for_its_jobs(site: Site, machines: Machines, propagation: Propagation) -> None:
    await up(site, 2)
    job = site.slurm.add_job(nodes=["a-1"])
    await site.delete(propagation)
    await site.until(lambda: _are(site, ["a-1"]), "the idle one is gone")
    assert labels.FINALIZER_NODESET_DRAIN in (await site.nodeset())["metadata"]["finalizers"]
    assert len(await site.guards()) == 1

    site.slurm.finish_job(job.id)
    await site.until(lambda: _released(site), "our finalizer is off")
    assert await site.names() == []
    assert await site.guards() == []
    assert not site.slurm.nodes


async def _released(site: Site) -> bool:
    """Without a garbage collector its own finalizers stay; ours is off, or the object is gone."""
    try:
        metadata = (await site.nodeset())["metadata"]
    except errors.NotFound:
        return True
    return labels.FINALIZER_NODESET_DRAIN not in metadata.get("finalizers", [])


async def test_the_annotation_gives_up_the_jobs(site: Site, machines: Machines) -> None:
    await up(site, 1)
    site.slurm.add_job(nodes=["a-0"])
    await site.slurm.stop()
    await site.delete(Propagation.BACKGROUND)
    await site.kube.merge_patch(
        NODESETS, "a", {"metadata": {"annotations": {labels.ANNOTATION_SKIP_DRAIN: "true"}}}, site.namespace
    )
    await site.until(site.gone, "the NodeSet is gone")
    assert await site.names() == []


async def test_killed_at_any_point_it_ends_the_same(site: Site, machines: Machines) -> None:
    await up(site, 3)
    job = site.slurm.add_job(nodes=["a-2"])
    await site.scale(0)
    await site.until(lambda: reason(site, "a-2"), "the busy one drains")
    for _ in range(5):
        await site.crash()
        await site.start()
        # Somewhere within the first passes.
        await site.until(site.pods.synced.is_set, "the caches have listed")
        assert "a-2" in await site.names()
    site.slurm.finish_job(job.id)
    await site.until(lambda: _are(site, []), "all are gone")
    await site.until(lambda: not site.slurm.nodes, "no record is left")


async def test_a_lost_pod_is_replaced_after_its_ghost_job_was_cleared(site: Site, machines: Machines) -> None:
    await up(site, 1)
    site.slurm.add_job(nodes=["a-0"])
    before = await site.kube.get(PODS, "a-0", site.namespace)

    await site.kube.delete(PODS, "a-0", site.namespace, uid=before["metadata"]["uid"])
    await site.until(lambda: site.replaced(before), "another pod has registered under the name")
    assert not [job for job in site.slurm.jobs.values() if job.is_running and "a-0" in job.nodes]


async def test_an_update_replaces_one_after_the_other_and_waits_for_jobs(site: Site, machines: Machines) -> None:
    await up(site, 3)
    job = site.slurm.add_job(nodes=["a-1"])
    revision = (await site.nodeset())["status"]["updateHash"]

    await site.apply(3, features=["new"])
    await site.until(lambda: _updated(site, 2), "the idle ones are updated")
    await site.until(lambda: "update" in reason(site, "a-1"), "the busy one drains last")
    assert "a-1" in await site.names()
    site.slurm.finish_job(job.id)
    await site.until(lambda: _updated(site, 3), "all are updated")
    await site.until(lambda: site.ready(3), "and ready")
    assert (await site.nodeset())["status"]["nodeSetHash"] != revision


async def _updated(site: Site, count: int) -> bool:
    return bool((await site.nodeset())["status"]["updatedReplicas"] == count)


async def test_a_neighbour_whose_name_begins_the_same_is_left_alone(site: Site, machines: Machines) -> None:
    await site.apply(1, "a-b")
    await site.until(lambda: site.ready(1, "a-b"), "the neighbour is ready")
    await up(site, 1)
    await site.delete(Propagation.BACKGROUND)
    await site.until(site.gone, "the NodeSet is gone")
    assert await site.names() == ["a-b-0"]
    assert set(site.slurm.nodes) == {"a-b-0"}


async def test_a_node_of_that_name_is_a_conflict(site: Site, machines: Machines) -> None:
    site.slurm.add_node("a-0", dynamic=False)
    await site.until(lambda: site.sees("a-0"), "the operator has seen it")
    await site.apply(2)
    await site.until(lambda: _conflict(site), "the condition says so")
    assert await site.names() in ([], ["a-1"])
    site.slurm.remove_node("a-0")
    await site.until(lambda: site.ready(2), "with it gone, both are ready")


async def _conflict(site: Site) -> bool:
    condition = await site.condition("NameConflict")
    return condition.get("status") == "True" and "a-0" in condition["message"]


async def test_pods_that_never_started_go_although_slurm_is_silent(site: Site, machines: Machines) -> None:
    machines.starting = False
    await site.apply(1)
    await site.until(lambda: _are(site, ["a-0"]), "a pod is there")
    await site.until(lambda: _bound(site), "and bound")
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    await machines.report(await site.kube.get(PODS, "a-0", site.namespace), "Pending", waiting, ready=False)
    await site.slurm.stop()
    await site.delete(Propagation.BACKGROUND)
    await site.until(site.gone, "the NodeSet is gone")
    assert await site.names() == []


async def _bound(site: Site) -> bool:
    return bool((await site.kube.get(PODS, "a-0", site.namespace))["spec"].get("nodeName"))


async def test_a_template_that_breaks_identity_is_told_by_field(site: Site, machines: Machines) -> None:
    await site.apply(1, template={"spec": {"containers": [{"name": "slurmd", "args": ["-N", "other"]}]}})
    await site.until(lambda: _told(site, "spec.template.spec.containers[0].args[0]"), "the condition names the field")
    assert await site.names() == []


async def _told(site: Site, text: str) -> bool:
    return text in (await site.condition("Degraded")).get("message", "")
