"""Changes of Kubernetes Nodes, and their effect on the Slurm nodes there; on a real API server."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from slinky_operator.kube.resources import NODES, PODS
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


async def test_features_and_topology_of_a_node_reach_slurm_and_follow_it(site: Site, machines: Machines) -> None:
    (one,) = machines.hosts = [await site.add_host("one")]

    async def annotate(**given: str | None) -> None:
        annotations = {f"{key}.slinky.slurm.net/spec": value for key, value in given.items()}
        await site.kube.merge_patch(NODES, one, {"metadata": {"annotations": annotations}})

    await annotate(features="ib,rack-1", topology="default:s1")
    await site.apply(2)
    await site.until(lambda: site.ready(2), "two nodes are ready")
    await site.until(lambda: all(_has(site, name, "k8s/ib") for name in ("a-0", "a-1")), "they have the features")
    await site.until(lambda: site.slurm.nodes["a-0"].topology == "default:s1", "and the topology")

    await annotate(features="rack-2", topology="default:s2")
    for name in ("a-0", "a-1"):
        await site.until(partial(_is_at, site, name, "default:s2"), f"{name} has a new topology")
        await site.until(partial(_has, site, name, "k8s/rack-2"), f"{name} has new features")
    assert not _has(site, "a-1", "k8s/ib")
    assert _has(site, "a-1", "all")

    await annotate(topology="nosuch")

    async def told() -> bool:
        return "a-0" in (await site.condition("Degraded")).get("message", "")

    await site.until(told, "a topology that Slurm refuses is reported")
    assert site.slurm.nodes["a-0"].topology == "default:s2"


def _is_at(site: Site, node: str, topology: str) -> bool:
    return bool(site.slurm.nodes[node].topology == topology)


def _has(site: Site, node: str, feature: str) -> bool:
    record = site.slurm.nodes[node]
    return feature in record.features and feature in record.active_features


async def test_a_pinned_ordinal_returns_to_its_node(site: Site, machines: Machines) -> None:
    one, other = machines.hosts = [await site.add_host("one"), await site.add_host("other")]
    await site.apply(2, pinToNode=True)
    await site.until(lambda: site.ready(2), "two nodes are ready")
    machines.hosts = [other, one]

    await site.scale(0)
    await site.until(lambda: not site.slurm.nodes, "all are gone")
    await site.scale(2)
    await site.until(lambda: site.ready(2), "they are back")

    pods = [await site.kube.get(PODS, name, site.namespace) for name in ("a-0", "a-1")]
    assert [pod["spec"]["nodeName"] for pod in pods] == [one, other]
    assert (await site.nodeset())["status"]["ordinalToNode"] == {"0": one, "1": other}

    async def forgotten() -> bool:
        return "ordinalToNode" not in (await site.nodeset())["status"]

    await site.apply(2, pinToNode=False)
    await site.until(forgotten, "without pinning it is forgotten")


# One pod on each matching Node


def on(site: Site) -> dict[str, Any]:
    """A template for the Nodes of one test: all tests share the API server."""
    return {"spec": {"nodeSelector": {"site": site.namespace}}}


async def hosts(site: Site, *names: str) -> list[str]:
    return [await site.add_host(name, labels={"site": site.namespace}) for name in names]


async def test_each_matching_node_gets_a_pod_that_is_named_after_it(site: Site, machines: Machines) -> None:
    one, other = await hosts(site, "one", "other")
    await site.add_host("third")
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(2), "both are ready")

    assert await site.names() == sorted([f"a-{one}", f"a-{other}"])
    assert sorted(site.slurm.nodes) == sorted([one, other])
    status = (await site.nodeset())["status"]
    assert (status["scalingMode"], status["desiredNumberScheduled"]) == ("DaemonSet", 2)
    pod = await site.kube.get(PODS, f"a-{one}", site.namespace)
    assert pod["spec"]["nodeName"] == one
    assert pod["spec"]["hostname"] == one


async def test_nodes_come_and_go_and_jobs_end_first(site: Site, machines: Machines) -> None:
    one, other = await hosts(site, "one", "other")
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(2), "both are ready")
    job = site.slurm.add_job(nodes=[other])

    await site.label(other, site=None)
    await site.until(lambda: reason(site, other).startswith("slurm-operator: node-mismatch"), "its node is drained")
    (third,) = await hosts(site, "third")
    await site.until(lambda: third in site.slurm.nodes, "a new Node gets its pod at once")
    assert f"a-{other}" in await site.names()

    async def told() -> bool:
        return bool((await site.nodeset())["status"]["numberMisscheduled"] == 1)

    await site.until(told, "the status counts the one that is on its way out")

    site.slurm.finish_job(job.id)
    await site.until(lambda: other not in site.slurm.nodes, "pod and record go")
    assert await site.names() == sorted([f"a-{one}", f"a-{third}"])


async def test_a_label_that_comes_back_gives_the_node_back(site: Site, machines: Machines) -> None:
    (one,) = await hosts(site, "one")
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(1), "it is ready")
    site.slurm.add_job(nodes=[one])

    await site.label(one, site=None)
    await site.until(lambda: reason(site, one), "its node is drained")
    await site.label(one, site=site.namespace)
    await site.until(lambda: not reason(site, one), "it is given back")
    assert await site.names() == [f"a-{one}"]


async def test_a_number_is_a_limit_and_scaling_does_not_change_the_mode(site: Site, machines: Machines) -> None:
    (one,) = await hosts(site, "one")
    # Light from the beginning: by the time it is to matter, the operator may not have heard of a change.
    light = {"nodeset.slinky.slurm.net/node-weight": "-1"}
    other = await site.add_host("other", labels={"site": site.namespace}, annotations=light)
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(2), "both are ready")

    await site.scale(1)
    await site.until(lambda: set(site.slurm.nodes) == {other}, "the heavier one goes")
    assert (await site.nodeset())["status"]["scalingMode"] == "DaemonSet"
    await site.scale(2)
    await site.until(lambda: set(site.slurm.nodes) == {one, other}, "and comes back")


async def test_no_pod_is_put_on_a_cordoned_node(site: Site, machines: Machines) -> None:
    one, other = await hosts(site, "one", "other")
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(2), "both are ready")

    await site.cordon(other)
    await site.until(lambda: reason(site, other), "its node is drained")
    pod = await site.kube.get(PODS, f"a-{other}", site.namespace)
    await site.kube.delete(PODS, f"a-{other}", site.namespace, uid=pod["metadata"]["uid"])
    await site.until(lambda: set(site.slurm.nodes) == {one}, "the evicted pod's record goes")
    await site.until(lambda: site.ready(1), "one is all there is to be")

    await site.cordon(other, on=False)
    await site.until(lambda: site.ready(2), "the pod is back")
    assert not reason(site, other)


async def test_two_nodesets_that_want_one_node_do_not_fight(site: Site, machines: Machines) -> None:
    (one,) = await hosts(site, "one")
    await asyncio.gather(site.apply(None, template=on(site)), site.apply(None, "a-b", template=on(site)))

    async def told() -> bool:
        conflicts = [await site.condition("NameConflict", name) for name in ("a", "a-b")]
        return sorted(one.get("status", "") for one in conflicts) == ["False", "True"]

    await site.until(lambda: one in site.slurm.nodes, "one of them has it")
    await site.until(told, "the other says so")
    assert len(await site.names()) == 1


async def test_a_record_of_somebody_else_is_left_alone(site: Site, machines: Machines) -> None:
    (one,) = await hosts(site, "one")
    site.slurm.add_node(one, dynamic=False)
    await site.until(lambda: site.sees(one), "the operator has seen it")
    await site.apply(None, template=on(site))

    async def told() -> bool:
        return (await site.condition("NameConflict")).get("status") == "True"

    await site.until(told, "the conflict is reported")
    assert await site.names() == []
    site.slurm.remove_node(one)
    await site.until(lambda: site.ready(1), "a pod comes when the name is free")


async def test_the_mode_is_fixed(site: Site, machines: Machines) -> None:
    (one,) = await hosts(site, "one")
    await site.apply(None, template=on(site))
    await site.until(lambda: site.ready(1), "it is ready")

    await site.apply(3, template=on(site), scalingMode="StatefulSet")

    async def told() -> bool:
        found = await site.condition("Degraded")
        return found.get("reason") == "ScalingModeFixed"

    await site.until(told, "the condition says so")
    assert await site.names() == [f"a-{one}"]
    assert not reason(site, one)
