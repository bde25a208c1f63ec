"""Passes over a Cluster with virtual Nodes, with an API server in memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import CLUSTERS, PODS, VIRTUAL_NODES
from slinky_operator.virtual_nodes.nodes.execute import SETTLED_S
from tests.unit.virtual_nodes.nodes.worlds import KEY, World, cluster, condition, partition, slurm_node, taints

PROVIDER = "virtual-kubelet.io/provider=wlm:NoSchedule"
UNAVAILABLE = "virtual-node.slinky.slurm.net/unavailable"


async def test_each_partition_becomes_a_node_as_wlm_operator_made_it() -> None:
    world = World(cluster())
    _ = await world.step()
    assert list(world.nodes) == ["slurm-site-debug", "slurm-site-gpu"]
    made = world.node("gpu")
    assert made["metadata"]["labels"] == {
        "type": "virtual-kubelet",
        "kubernetes.io/role": "agent",
        "kubernetes.io/hostname": "slurm-site-gpu",
        "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
        "node.kubernetes.io/exclude-from-external-load-balancers": "true",
        "wlm.sylabs.io/partition": "GPU",
        "wlm.sylabs.io/nodes": "1",
        "wlm.sylabs.io/cpu-per-node": "32",
        "wlm.sylabs.io/mem-per-node": "64000",
        "wlm.sylabs.io/wall-time": "2147483647",
        labels.LABEL_VIRTUAL_NODE: "GPU",
    }
    assert made["metadata"]["annotations"][labels.ANNOTATION_VIRTUAL_NODE_CLUSTER] == "here/slurm/uid-slurm"
    assert taints(made) == [PROVIDER]
    capacity = {"cpu": "32", "memory": "64000Mi", "nvidia.com/gpu": "4", "slinky.slurm.net/gres-shard": "8"}
    assert made["status"]["capacity"] == {**capacity, "pods": "1000000"}
    assert made["status"]["allocatable"]["cpu"] == made["status"]["allocatable"]["nvidia.com/gpu"] == "1000000"
    assert made["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.7"}]
    assert made["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10350
    told = [(one["type"], one["status"]) for one in made["status"]["conditions"]]
    pressures = [(f"{kind}Pressure", "False") for kind in ("Memory", "Disk", "PID")]
    assert told == [("Ready", "True"), *pressures, ("SlurmReachable", "True"), ("PartitionUp", "True")]
    assert world.shown() == {"ready": True, "reason": "AsExpected", "message": "", "nodes": 2}
    assert sorted(world.told) == [
        f"slurm VirtualNodeCreated: Node slurm-site-{one} was made" for one in ("debug", "gpu")
    ]


async def test_a_pass_that_changes_nothing_writes_nothing() -> None:
    world = World(cluster())
    _ = await world.step()
    _ = await world.step()
    before = {name: obj["metadata"]["resourceVersion"] for name, obj in world.nodes.items()}
    written = len(world.kube.statuses)
    _ = await world.step(seconds=60)
    assert {name: obj["metadata"]["resourceVersion"] for name, obj in world.nodes.items()} == before
    assert len(world.kube.statuses) == written
    assert world.slurm.asked == 2


async def test_a_node_offers_what_its_partition_has_if_that_is_wanted() -> None:
    world = World(cluster(allocatable="Partition"))
    _ = await world.step()
    assert world.node("debug")["status"]["allocatable"] == world.node("debug")["status"]["capacity"]
    assert world.node("debug")["status"]["capacity"]["cpu"] == "40"


async def test_limits_of_a_partition_are_in_its_labels() -> None:
    world = World(cluster())
    world.slurm.all = [partition("debug", max_nodes=1, max_cpus_per_node=4, max_time=timedelta(hours=1))]
    _ = await world.step()
    own = world.node("debug")["metadata"]["labels"]
    found = [own[f"wlm.sylabs.io/{name}"] for name in ("nodes", "cpu-per-node", "mem-per-node", "wall-time")]
    assert found == ["1", "4", "64000", "3600"]


async def test_what_slurm_says_later_is_written_and_labels_of_others_stay() -> None:
    world = World(cluster(labels={"site/rack": "r1"}))
    _ = await world.step()
    patch = {"metadata": {"labels": {"theirs": "1", "type": "other"}}}
    _ = await world.kube.merge_patch(VIRTUAL_NODES, "slurm-site-debug", patch)
    world.slurm.nodes = {**world.slurm.nodes, "c": slurm_node("c", "debug", cpus=64)}
    await world.edit(labels={"site/rack": None, "site/row": "2"})
    _ = await world.step()
    own, status = world.node("debug")["metadata"]["labels"], world.node("debug")["status"]
    assert status["capacity"]["cpu"] == "104"
    assert (own["theirs"], own["type"], own["wlm.sylabs.io/cpu-per-node"]) == ("1", "virtual-kubelet", "64")
    assert "site/rack" not in own
    assert own["site/row"] == "2"


async def test_slurm_away_keeps_nodes_ready_and_new_pods_off_them() -> None:
    world = World(cluster())
    _ = await world.step()
    world.slurm.away()
    _ = await world.step(seconds=60)
    for obj in world.nodes.values():
        assert condition(obj, "Ready")["status"] == "True"
        away = condition(obj, "SlurmReachable")
        assert (away["status"], away["message"]) == ("False", "slurmctld is away")
        assert away["lastTransitionTime"] == "2026-11-27T18:01:00Z"
        assert taints(obj) == [PROVIDER, f"{UNAVAILABLE}=SlurmUnreachable:NoSchedule"]
        assert obj["metadata"]["labels"]["wlm.sylabs.io/nodes"]
    assert (world.shown().get("ready"), world.shown()["reason"]) == (None, "SlurmUnreachable")
    world.slurm.back()
    _ = await world.step(seconds=60)
    assert all(taints(obj) == [PROVIDER] for obj in world.nodes.values())
    assert world.shown()["ready"] is True


async def test_an_operator_that_starts_while_slurm_is_away_removes_nothing() -> None:
    world = World(cluster())
    _ = await world.step()
    later = World(cluster())
    for obj in world.nodes.values():
        later.kube.put(VIRTUAL_NODES, obj)
    later.slurm.away()
    for _ in range(5):
        _ = await later.step(seconds=60)
    assert list(later.nodes) == ["slurm-site-debug", "slurm-site-gpu"]
    assert taints(later.node("debug")) == [PROVIDER, f"{UNAVAILABLE}=SlurmUnreachable:NoSchedule"]
    assert later.node("debug")["status"]["capacity"]["cpu"] == "40"


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
async def test_a_partition_that_is_not_up_takes_no_new_pods(state: str) -> None:
    world = World(cluster())
    _ = await world.step()
    world.slurm.all = [partition("debug", state), partition("GPU")]
    _ = await world.step(seconds=60)
    assert taints(world.node("debug")) == [PROVIDER, f"{UNAVAILABLE}=PartitionNotUp:NoSchedule"]
    shown = condition(world.node("debug"), "PartitionUp")
    assert (shown["status"], shown["message"]) == ("False", f"the partition is {state}")
    assert condition(world.node("debug"), "Ready")["status"] == "True"
    assert taints(world.node("gpu")) == [PROVIDER]


async def test_a_partition_that_goes_keeps_its_node_until_no_pod_is_left() -> None:
    world = World(cluster())
    _ = await world.step()
    world.kube.put(PODS, {"metadata": {"name": "p", "namespace": "team"}, "spec": {"nodeName": "slurm-site-gpu"}})
    world.slurm.all = [partition("debug")]
    _ = await world.step(seconds=60)
    assert world.node("gpu")["spec"]["unschedulable"] is True
    assert f"{UNAVAILABLE}=PartitionGone:NoSchedule" in taints(world.node("gpu"))
    for _ in range(5):
        assert (await world.step(seconds=SETTLED_S)).requeue_after == 5
    assert "it is removed when its pods (1) have gone, ended ones too: kubectl get pods -A" in world.shown()["message"]
    assert world.shown()["ready"] is True
    _ = await world.kube.delete(PODS, "p", "team")
    _ = await world.step(seconds=5)
    assert list(world.nodes) == ["slurm-site-debug"]
    removed = "slurm VirtualNodeRemoved: Node slurm-site-gpu was removed: Slurm has no partition GPU any more"
    assert world.told[-1] == removed


async def test_a_node_that_is_not_wanted_any_more_says_so() -> None:
    world = World(cluster())
    _ = await world.step()
    await world.edit(partitions=["debug"])
    _ = await world.step()
    shown = condition(world.node("gpu"), "PartitionUp")
    said = "spec.jobs.virtualNodes gives partition GPU no Node of this name any more"
    assert (shown["reason"], shown["message"]) == ("PartitionGone", said)


async def test_a_node_is_not_removed_before_kube_scheduler_has_seen_that_it_takes_no_more_pods() -> None:
    world = World(cluster())
    _ = await world.step()
    world.slurm.all = [partition("debug")]
    _ = await world.step(seconds=60)
    assert world.node("gpu")["spec"]["unschedulable"] is True
    _ = await world.step()
    _ = await world.step(seconds=SETTLED_S / 2)
    assert world.node("gpu")["spec"]["unschedulable"] is True
    assert "Node slurm-site-gpu takes no new pods and is to go" in world.shown()["message"]
    _ = await world.step(seconds=SETTLED_S / 2)
    assert list(world.nodes) == ["slurm-site-debug"]


async def test_a_partition_that_comes_back_ends_the_operators_cordon_and_no_other() -> None:
    world = World(cluster())
    _ = await world.step()
    _ = await world.kube.merge_patch(VIRTUAL_NODES, "slurm-site-debug", {"spec": {"unschedulable": True}})
    world.kube.put(PODS, {"metadata": {"name": "p", "namespace": "team"}, "spec": {"nodeName": "slurm-site-debug"}})
    world.kube.put(PODS, {"metadata": {"name": "q", "namespace": "team"}, "spec": {"nodeName": "slurm-site-gpu"}})
    before, world.slurm.all = world.slurm.all, [partition("other")]
    for _ in range(4):
        _ = await world.step(seconds=60)
    both = "debug", "gpu"
    assert [world.node(name)["spec"]["unschedulable"] for name in both] == [True, True]
    world.slurm.all = before
    _ = await world.step(seconds=60)
    assert [world.node(name)["spec"].get("unschedulable") for name in both] == [True, None]
    assert all(taints(world.node(name)) == [PROVIDER] for name in both)


async def test_an_answer_without_any_partition_removes_no_node() -> None:
    world = World(cluster())
    _ = await world.step()
    before, world.slurm.all = world.slurm.all, []
    for _ in range(4):
        _ = await world.step(seconds=60)
    assert [obj["spec"].get("unschedulable") for obj in world.nodes.values()] == [None, None]
    assert f"{UNAVAILABLE}=SlurmUnreachable:NoSchedule" in taints(world.node("gpu"))
    assert "its answer has no partition at all" in world.shown()["message"]
    world.slurm.all = before
    _ = await world.step(seconds=60)
    assert all(taints(obj) == [PROVIDER] for obj in world.nodes.values())


async def test_a_real_node_is_not_taken_for_one_of_the_operators_by_what_anybody_can_write() -> None:
    world = World(cluster())
    _ = await world.step()
    real: Any = {**world.node("gpu"), "spec": {"providerID": "aws:///a/i-1"}}
    _ = await world.kube.delete(VIRTUAL_NODES, "slurm-site-gpu")
    theirs = world.kube.put(VIRTUAL_NODES, real)
    await world.edit(partitions=["debug"])
    for _ in range(3):
        _ = await world.step(seconds=60)
    assert world.nodes["slurm-site-gpu"] is theirs


async def test_a_node_that_somebody_has_deleted_comes_back_while_slurm_is_away() -> None:
    world = World(cluster())
    _ = await world.step()
    world.slurm.away()
    _ = await world.kube.delete(VIRTUAL_NODES, "slurm-site-debug")
    _ = await world.step()
    assert list(world.nodes) == ["slurm-site-debug", "slurm-site-gpu"]
    assert f"{UNAVAILABLE}=SlurmUnreachable:NoSchedule" in taints(world.node("debug"))


async def test_a_slurm_that_lets_calls_hang_delays_no_pass() -> None:
    world = World(cluster())
    _ = await world.step()
    world.slurm.hangs = True
    _ = await world.kube.delete(VIRTUAL_NODES, "slurm-site-debug")
    _ = await world.step(seconds=60)
    assert list(world.nodes) == ["slurm-site-debug", "slurm-site-gpu"]


async def test_the_node_of_somebody_else_is_not_touched() -> None:
    world = World(cluster())
    foreign = {"metadata": {"name": "slurm-site-gpu", "labels": {}}, "spec": {}, "status": {}}
    theirs = world.kube.put(VIRTUAL_NODES, foreign)
    for _ in range(3):
        _ = await world.step(seconds=60)
    assert world.nodes["slurm-site-gpu"] is theirs
    assert world.shown()["reason"] == "NodeNameTaken"
    assert "slurm-site-gpu (not made by this operator)" in world.shown()["message"]
    assert "slurm-site-debug" in world.nodes


async def test_the_oldest_cluster_has_a_host_name() -> None:
    younger = cluster("younger", "2026-02-01T00:00:00Z")
    world = World(younger, cluster())
    _ = await world.step(("here", "younger"))
    assert world.nodes == {}
    assert world.shown("younger")["reason"] == "HostTaken"
    assert "Cluster here/slurm, which is older, has the host site" in world.shown("younger")["message"]
    _ = await world.step()
    assert len(world.nodes) == 2
    woken = world.triggers.objects[CLUSTERS](None, cluster())
    assert sorted(woken) == [("here", "slurm"), ("here", "younger")]


async def test_a_host_name_that_is_free_again_has_nodes_when_those_of_before_have_gone() -> None:
    younger = cluster("younger", "2026-02-01T00:00:00Z")
    world = World(younger, cluster())
    world.slurm.get = lambda _: world.slurm  # type: ignore[assignment, method-assign]
    _ = await world.step()
    await world.edit(host="other")
    _ = await world.step(("here", "younger"))
    shown = world.shown("younger")
    assert shown["reason"] == "NodeNameTaken"
    assert "slurm-site-debug (of Cluster here/slurm)" in shown["message"]
    assert "makes its own when they have gone" in shown["message"]


async def test_a_cluster_that_the_settings_do_not_name_has_no_nodes() -> None:
    world = World(cluster(), allowed=["elsewhere/slurm"])
    _ = await world.step()
    assert world.nodes == {}
    assert world.shown()["reason"] == "VirtualNodesNotAllowed"
    assert "virtualNodes.clusters of its chart must name here/slurm" in world.shown()["message"]


async def test_nodes_of_a_cluster_that_is_gone_are_removed() -> None:
    world = World(cluster())
    _ = await world.step()
    _ = await world.kube.delete(CLUSTERS, "slurm", "here")
    _ = await world.step()
    assert all(obj["spec"]["unschedulable"] for obj in world.nodes.values())
    _ = await world.step()
    _ = await world.step(seconds=SETTLED_S)
    assert world.nodes == {}
    assert (await world.step()).requeue_after is None


async def test_a_cluster_that_only_the_cache_lacks_keeps_its_nodes() -> None:
    world = World(cluster())
    _ = await world.step()
    world.kube.caches["clusters"].remove(cluster())
    for _ in range(5):
        _ = await world.step(seconds=60)
    assert not any(obj["spec"].get("unschedulable") for obj in world.nodes.values())
    assert len(world.nodes) == 2


async def test_nodes_of_a_cluster_that_wants_none_any_more_are_removed() -> None:
    world = World(cluster())
    _ = await world.step()
    _ = await world.kube.merge_patch(CLUSTERS, "slurm", {"spec": {"jobs": {"virtualNodes": None}}}, "here")
    for _ in range(3):
        _ = await world.step(seconds=SETTLED_S)
    assert world.nodes == {}


async def test_a_cluster_made_again_adopts_its_nodes() -> None:
    world = World(cluster())
    _ = await world.step()
    uids = {name: obj["metadata"]["uid"] for name, obj in world.nodes.items()}
    again = cluster()
    again["metadata"]["uid"] = "uid-slurm"
    for obj in world.nodes.values():
        obj["metadata"]["annotations"][labels.ANNOTATION_VIRTUAL_NODE_CLUSTER] = "here/slurm/uid-before"
        world.kube.put(VIRTUAL_NODES, obj)
    _ = await world.step()
    assert {name: obj["metadata"]["uid"] for name, obj in world.nodes.items()} == uids
    found = {obj["metadata"]["annotations"][labels.ANNOTATION_VIRTUAL_NODE_CLUSTER] for obj in world.nodes.values()}
    assert found == {"here/slurm/uid-slurm"}


async def test_bad_input_is_reported_by_field_and_the_rest_is_done() -> None:
    world = World(cluster(partitions=["debug", "lost"], labels={"kubernetes.io/os": "linux", "site/a": "b"}))
    _ = await world.step()
    _ = await world.step()
    assert list(world.nodes) == ["slurm-site-debug"]
    own = world.node("debug")["metadata"]["labels"]
    assert "kubernetes.io/os" not in own
    assert own["site/a"] == "b"
    shown = world.shown()
    assert (shown["ready"], shown["reason"]) == (False, "LabelRefused")
    assert "spec.jobs.virtualNodes.labels: kubernetes.io/os is a label of Kubernetes" in shown["message"]
    assert "spec.jobs.virtualNodes.partitions: Slurm has no partition lost; it has GPU, debug" in shown["message"]


async def test_a_partition_configuration_that_is_invalid_changes_no_label() -> None:
    world = World(cluster(partitionConfig="debug: {nodes: 7}"))
    _ = await world.step()
    assert world.node("debug")["metadata"]["labels"]["wlm.sylabs.io/nodes"] == "7"
    await world.edit(partitionConfig="debug: {node: 7}")
    _ = await world.kube.delete(VIRTUAL_NODES, "slurm-site-gpu")
    _ = await world.step()
    assert list(world.nodes) == ["slurm-site-debug"]
    assert world.node("debug")["metadata"]["labels"]["wlm.sylabs.io/nodes"] == "7"
    assert world.shown()["reason"] == "PartitionConfigInvalid"
    assert "spec.jobs.virtualNodes.partitionConfig: debug.node (line 1) is not a field" in world.shown()["message"]


async def test_only_what_matters_triggers_a_pass() -> None:
    world = World(cluster())
    _ = await world.step()
    node = world.triggers.objects[VIRTUAL_NODES]
    before = world.node("debug")
    heartbeat = {**before, "metadata": {**before["metadata"], "resourceVersion": "9999"}}
    assert list(node(before, heartbeat)) == []
    assert list(node(before, None)) == [KEY]
    assert list(node(before, {**before, "spec": {"taints": []}})) == [KEY]
    status = {**cluster(), "status": {"nodes": {"total": 3}}}
    assert list(world.triggers.objects[CLUSTERS](cluster(), status)) == []
    others = cluster()
    del others["spec"]["jobs"]
    assert list(world.triggers.objects[CLUSTERS](None, others)) == []
