"""What becomes of Kubernetes Nodes in Slurm, pass by pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.bridge.nodes.model.plan import SETTLED_S, SILENT_S
from slinky_operator.bridge.nodes.pod_requests import AT_ONCE, EVERY_S, URGENT_S
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slurm_client.models import Job, JobState, Node, NodeState, Reservation
from tests.unit.bridge.nodes.worlds import LABEL, MARK, World, cluster, external, host

ZONE = {"topology.kubernetes.io/zone": "eu-1"}


async def test_a_chosen_node_becomes_a_node_of_slurm_that_has_what_the_machine_has_left() -> None:
    world = World(
        host("kn-1", labels=ZONE, devices={"nvidia.com/gpu": "2"}),
        host("other", labels={"slurm": "no"}),
        about=cluster(featureLabels=list(ZONE)),
    )
    world.put_pod("daemon", "kn-1", "500m")
    placed = {"bridge.slinky.slurm.net/slurmjob": "bridge-1"}
    world.put_pod("placed", "kn-1", "4", labels={"bridge.slinky.slurm.net/pod": "true"}, annotations=placed)
    _ = await world.step()
    (line,) = world.slurm.lines
    assert line == (
        "NodeName=kn-1 NodeAddr=127.0.0.1 Port=6817 Sockets=1 CoresPerSocket=7 ThreadsPerCore=1 CPUs=7 "
        f"RealMemory=32512 State=EXTERNAL Feature=bridge,zone.eu-1,{MARK} Gres=gpu:2 "
        'GresConf="name=gpu,count=2,file=gpu-any-0,file=gpu-any-1"'
    )
    _ = await world.step()
    assert world.shown == {"ready": True, "reason": "AsExpected", "message": "", "nodes": 1}
    assert len(world.slurm.lines) == 1
    assert world.told == [
        "slurm BridgeNodesCreated: Kubernetes Nodes are nodes of Slurm now, each with 7 CPUs, 32512 MiB, gpu:2: kn-1"
    ]


async def test_nodes_are_made_one_by_one_and_pods_are_listed_at_a_bounded_rate() -> None:
    world = World(*(host(f"n{number:02}") for number in range(50)))
    result = await world.step()
    assert (len(world.slurm.lines), len(world.slurm.nodes), world.requests.lists) == (AT_ONCE,) * 3
    assert result.requeue_after is not None
    assert result.requeue_after <= 2
    _ = await world.step()
    assert world.requests.lists == AT_ONCE
    assert world.shown["reason"] == "NodesPending"
    for _ in range(4):
        _ = await world.step(seconds=2)
    assert (len(world.slurm.nodes), world.requests.lists) == (50, 50)
    assert world.shown["ready"] is True
    _ = await world.step(seconds=EVERY_S / 2)
    assert world.requests.lists == 50


KARPENTER = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


async def test_a_thousand_nodes_that_are_chosen_together_come_by_and_by_and_it_is_said_how_many_are_missing() -> None:
    world, told = World(*(host(f"k{number}") for number in range(1000))), set()
    while len(world.slurm.nodes) < 1000:
        before = len(world.slurm.nodes)
        _ = await world.step(seconds=2.0)
        assert before < len(world.slurm.nodes) <= before + AT_ONCE
        told.add((world.shown["reason"], world.shown["message"]))
    missing = (1000, *range(10, 981, 10))
    assert told == {("NodesPending", f"{left} Kubernetes Nodes are not nodes of Slurm yet") for left in missing}
    _ = await world.step(seconds=2.0)
    assert world.shown == {"ready": True, "reason": "AsExpected", "message": "", "nodes": 1000}


@pytest.mark.parametrize(
    ("other", "allowed", "reason"),
    [(LABEL, "*", "NodesShared"), ({"slurm": "no"}, "*", "AsExpected"), (LABEL, "here/slurm", "AsExpected")],
)
async def test_a_node_that_another_cluster_chooses_too_is_told(
    other: dict[str, str], allowed: str, reason: str
) -> None:
    world = World(host("kn-1"), host("kn-2", labels={"slurm": "alone"}), allowed=(allowed,))
    rival = cluster(nodeLabels=other)
    world.kube.put(CLUSTERS, {**rival, "metadata": {**rival["metadata"], "name": "rival", "uid": "uid-rival"}})
    await world.settle(times=3)
    assert (list(world.slurm.nodes), world.shown["reason"]) == (["kn-1"], reason)
    if reason == "NodesShared":
        assert world.shown["message"].startswith("Kubernetes Nodes kn-1 are chosen by Cluster here/rival, too: ")


async def test_the_reason_names_the_taint_of_an_autoscaler() -> None:
    world = World(host("kn-1", taints=[KARPENTER]), host("kn-2"))
    world.slurm.nodes["kn-1"] = external("kn-1", "bridge", MARK)
    _ = await world.step()
    assert "(taint karpenter.sh/disrupted)" in world.slurm.nodes["kn-1"].reason


@pytest.mark.parametrize("trouble", [{"cordoned": True}, {"ready": False}, {"taints": [KARPENTER]}])
async def test_a_node_in_trouble_takes_no_jobs_until_it_is_over(trouble: dict[str, Any]) -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.put_host("kn-1", **trouble)
    await world.settle()
    node = world.slurm.nodes["kn-1"]
    assert node.is_drain
    assert node.reason.startswith("slurm-operator: bridge: the Kubernetes Node is ")
    assert 1 in world.slurm.jobs
    world.put_host("kn-1")
    await world.settle()
    assert not world.slurm.nodes["kn-1"].is_drain
    assert world.slurm.deleted == []


async def test_a_cordoned_node_that_slurm_does_not_have_is_not_made() -> None:
    world = World(host("kn-1", cordoned=True))
    await world.settle()
    assert (world.slurm.lines, world.shown["ready"]) == ([], True)


@pytest.mark.parametrize("reason", ["memory is broken", ""])
async def test_drains_of_others_stay_and_keep_their_nodes(reason: str) -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.flag("kn-1", "DRAIN", reason)
    world.put_host("kn-1", cordoned=True)
    await world.settle()
    world.put_host("kn-1", cpu="16")
    await world.settle()
    assert world.slurm.nodes["kn-1"].reason == reason
    await world.lose_host("kn-1")
    await world.settle()
    assert world.slurm.nodes["kn-1"].is_drain
    assert (world.slurm.wrong, world.slurm.deleted) == ([], [])
    assert world.shown["message"] == "kn-1 is to go, but stays since somebody else has drained it or set it down"


async def test_a_node_whose_kubernetes_node_is_gone_takes_no_jobs_and_goes_with_its_last_one() -> None:
    world = World(host("kn-1"), host("kn-2"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    await world.lose_host("kn-1")
    world.put_host("kn-2", labels={"slurm": "no"})
    await world.settle()
    assert set(world.slurm.nodes) == {"kn-1"}
    assert world.slurm.nodes["kn-1"].is_drain
    assert world.shown["message"] == "kn-1 takes no new jobs and is deleted when its jobs have ended"
    world.slurm.end(1)
    await world.settle()
    assert world.slurm.nodes == {}
    assert world.shown["nodes"] == 0


async def test_a_node_gets_another_size_when_it_is_idle_and_that_size_stays() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.put_host("kn-1", cpu="16")
    await world.settle()
    assert world.slurm.nodes["kn-1"].cpus == 8
    assert not world.slurm.nodes["kn-1"].is_drain
    assert world.shown["message"] == "kn-1 gets another size when it is idle"
    world.slurm.end(1)
    await world.settle()
    assert world.slurm.nodes["kn-1"].cpus == 16
    assert world.slurm.deleted == ["kn-1"]


async def test_a_size_that_comes_and_goes_changes_nothing() -> None:
    world = World(host("kn-1"))
    await world.settle()
    for _ in range(6):
        world.put_host("kn-1", cpu="7500m")
        _ = await world.step(seconds=SETTLED_S * 0.6)
        world.put_host("kn-1")
        _ = await world.step(seconds=SETTLED_S * 0.6)
    assert world.slurm.deleted == []


async def test_a_machine_that_has_lost_a_device_takes_no_new_jobs() -> None:
    world = World(host("kn-1", devices={"nvidia.com/gpu": "2"}))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.put_host("kn-1", devices={"nvidia.com/gpu": "1"})
    _ = await world.step()
    assert world.slurm.nodes["kn-1"].reason == "slurm-operator: bridge: the machine has less than Slurm's record"
    world.slurm.end(1)
    await world.settle()
    assert (world.slurm.nodes["kn-1"].gres, world.slurm.nodes["kn-1"].is_drain) == ("gpu:1", False)


async def test_pods_of_others_that_come_later_drain_nothing_and_count_when_the_node_is_idle() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.put_pod("late", "kn-1", "2")
    await world.settle(seconds=EVERY_S / 4)
    assert (world.slurm.nodes["kn-1"].cpus, world.slurm.nodes["kn-1"].is_drain) == (8, False)
    world.slurm.end(1)
    await world.settle()
    assert world.slurm.nodes["kn-1"].cpus == 6


async def test_a_node_that_does_not_respond_is_made_anew_when_it_is_idle_and_slurm_had_its_time() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.slurm.flag("kn-1", "NOT_RESPONDING")
    await world.settle(seconds=SILENT_S)
    assert world.slurm.deleted == []
    world.slurm.end(1)
    await world.settle()
    assert (world.slurm.deleted, world.slurm.nodes["kn-1"].is_not_responding) == (["kn-1"], False)


async def test_a_node_that_responds_again_by_itself_stays() -> None:
    world = World(host("kn-1"))
    await world.settle()
    for _ in range(5):
        world.slurm.flag("kn-1", "NOT_RESPONDING")
        _ = await world.step(seconds=SILENT_S * 0.7)
        world.slurm.unflag("kn-1", "NOT_RESPONDING")
        _ = await world.step(seconds=SILENT_S * 0.7)
    assert world.slurm.deleted == []


@pytest.mark.parametrize(
    "theirs",
    [
        Node(name="kn-1", state=NodeState("IDLE", frozenset({"DYNAMIC_NORM"})), features=("bridge", MARK)),
        external("kn-1", "bridge", "slurm-bridge.0123456789ab"),
        external("kn-1", "bridge"),
    ],
)
async def test_a_node_of_slurm_that_is_not_ours_is_told_and_never_touched(theirs: Node) -> None:
    world = World(host("kn-1", cordoned=True))
    world.slurm.nodes["kn-1"] = theirs
    await world.settle()
    assert world.slurm.nodes["kn-1"] is theirs
    assert (world.shown["ready"], world.shown["reason"]) == (False, "NodeNameTaken")
    assert world.shown["message"].startswith("Slurm has nodes named kn-1, which this bridge did not make")
    await world.lose_host("kn-1")
    await world.settle()
    assert world.slurm.nodes["kn-1"] is theirs


@pytest.mark.parametrize("name", ["all", "default", "bridge", "batch"])
async def test_a_name_by_which_slurm_means_many_nodes_is_refused(name: str) -> None:
    world = World(host(name))
    world.slurm.all_partitions[0] = world.slurm.all_partitions[0].__class__(
        name="k8s", state=world.slurm.all_partitions[0].state, node_sets="bridge,batch"
    )
    await world.settle()
    assert (world.slurm.lines, world.shown["reason"]) == ([], "NodeNameTaken")


async def test_without_an_answer_of_slurm_nothing_is_changed() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.away()
    await world.lose_host("kn-1")
    asked = world.slurm.asked
    await world.settle()
    assert (world.slurm.asked, set(world.slurm.nodes)) == (asked, {"kn-1"})
    assert (world.shown.get("ready"), world.shown["reason"], world.shown["nodes"]) == (None, "SlurmUnreachable", 1)
    world.slurm.back()
    await world.settle()
    assert world.slurm.nodes == {}


async def test_a_reservation_keeps_its_node_and_is_told() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.reserved.add("kn-1")
    await world.lose_host("kn-1")
    await world.settle()
    assert "kn-1" in world.slurm.nodes
    assert "Slurm does not delete all of kn-1, as a job or a reservation has one" in world.shown["message"]
    asked = world.slurm.asked
    _ = await world.step(seconds=1)
    assert world.slurm.asked - asked <= 1
    world.slurm.reserved.clear()
    await world.settle()
    assert world.slurm.nodes == {}


async def test_a_node_stays_that_a_later_reservation_or_a_waiting_job_names() -> None:
    world = World(host("kn-1"), host("kn-2"))
    await world.settle()
    world.slurm.booked.append(Reservation(name="upkeep", node_list="kn-1", flags=frozenset({"SPEC_NODES"})))
    world.slurm.jobs[7] = Job(id=7, state=JobState("PENDING"), required_nodes="kn-2")
    await world.lose_host("kn-1")
    await world.lose_host("kn-2")
    await world.settle()
    assert set(world.slurm.nodes) == {"kn-1", "kn-2"}
    assert "kn-1 stays in Slurm, as it is named by reservation upkeep" in world.shown["message"]
    assert "kn-2 stays in Slurm, as it is required by job 7" in world.shown["message"]
    world.slurm.booked.clear()
    del world.slurm.jobs[7]
    await world.settle()
    assert world.slurm.nodes == {}


async def test_a_job_that_the_list_of_nodes_does_not_show_keeps_its_node() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    world.slurm.nodes["kn-1"] = external("kn-1", *world.slurm.nodes["kn-1"].features)
    await world.lose_host("kn-1")
    await world.settle()
    assert (set(world.slurm.nodes), world.slurm.deleted, world.slurm.wrong) == ({"kn-1"}, [], [])


async def test_the_bridge_goes_when_the_cluster_does_not_want_it_any_more_and_leaves_nothing() -> None:
    world = World(host("kn-1"), host("kn-2"))
    await world.settle()
    world.slurm.run(1, "kn-1")
    await world.edit(None)
    await world.settle()
    assert set(world.slurm.nodes) == {"kn-1"}
    assert world.shown["nodes"] == 1
    world.slurm.end(1)
    await world.settle()
    assert (world.slurm.nodes, world.shown) == ({}, {})


async def test_a_cluster_that_the_settings_do_not_name_gets_nothing() -> None:
    world = World(host("kn-1"), allowed=["here/another"])
    await world.settle()
    assert (world.slurm.lines, world.shown["reason"]) == ([], "BridgeNotAllowed")
    assert "bridge.clusters of its chart must name here/slurm" in world.shown["message"]


@pytest.mark.parametrize("release", ["24.11.5", "26.05.2"])
async def test_an_old_slurm_is_told_and_left_alone(release: str) -> None:
    world = World(host("kn-1"))
    world.slurm.slurm_version = release
    await world.settle()
    assert (world.slurm.asked, world.shown["ready"], world.shown["reason"]) == (0, False, "SlurmTooOld")
    assert world.shown["message"] == (
        f"this is Slurm {release}, and nodes without a slurmd that come and go need Slurm 26.05.3 or newer: upgrade "
        "Slurm, or remove spec.jobs.bridge"
    )


async def test_nodes_are_made_soon_after_an_upgrade_that_nothing_told_of() -> None:
    world = World(host("kn-1"))
    world.slurm.slurm_version = "24.11.5"
    again = (await world.step()).requeue_after
    assert again is not None
    assert again <= 15
    world.slurm.slurm_version = "26.05.5"
    await world.settle()
    assert set(world.slurm.nodes) == {"kn-1"}


async def test_a_full_table_of_nodes_is_told_with_what_to_do_and_drains_go_on() -> None:
    world = World(host("kn-1"), host("kn-2"))
    await world.settle()
    world.slurm.room = 2
    world.put_host("kn-3")
    world.put_host("kn-1", cordoned=True)
    await world.settle(seconds=1)
    assert world.shown["reason"] == "RequestRefused"
    assert "raise MaxNodeCount in slurm.conf (spec.maxNodeCount)" in world.shown["message"]
    assert world.slurm.nodes["kn-1"].is_drain
    world.slurm.room = 10
    await world.settle()
    assert len(world.slurm.nodes) == 3


async def test_a_resource_that_slurm_does_not_know_is_told_and_nodes_are_made_without() -> None:
    world = World(host("kn-1", devices={"nvidia.com/gpu": "2"}))
    world.slurm.loaded["GresTypes"] = None
    await world.settle()
    assert "Gres" not in world.slurm.lines[0]
    assert (world.shown["reason"], world.slurm.deleted) == ("GresUnknown", [])
    assert "add GresTypes=gpu" in world.shown["message"]
    world.slurm.loaded["GresTypes"] = "gpu"
    await world.settle(seconds=100)
    assert (world.slurm.nodes["kn-1"].gres, world.shown["ready"]) == ("gpu:2", True)


async def test_suspension_makes_no_node_and_grace_time_and_unchecked_accounts_are_told() -> None:
    about = cluster()
    about["spec"]["jobs"]["tenants"] = [{"namespaces": ["team"], "user": "ada", "accounts": ["lab"]}]
    world = World(host("kn-1"), about=about)
    world.slurm.loaded.update(PreemptMode="GANG,SUSPEND", AccountingStorageEnforce="none")
    await world.settle()
    assert (world.slurm.lines, world.shown["reason"]) == ([], "PreemptionUnsuitable")
    assert "slurm.conf has PreemptMode=GANG,SUSPEND: " in world.shown["message"]
    world.slurm.loaded["PreemptMode"] = "REQUEUE"
    await world.settle()
    assert world.shown["ready"] is True
    assert "add AccountingStorageEnforce=associations,limits,qos" in world.shown["message"]


@pytest.mark.parametrize(
    ("mode", "modes", "setting"),
    [
        ("SUSPEND", (), "slurm.conf has PreemptMode=SUSPEND"),
        # With it partitions and QOS may have SUSPEND, and jobs that share CPUs are suspended in turn.
        ("GANG", (), "slurm.conf has PreemptMode=GANG"),
        ("CANCEL", ("SUSPEND",), "PreemptMode=SUSPEND of partition k8s"),
    ],
)
async def test_whatever_lets_slurm_suspend_a_job_makes_no_node(mode: str, modes: tuple[str, ...], setting: str) -> None:
    world = World(host("kn-1"))
    world.slurm.loaded["PreemptMode"] = mode
    (ours,) = world.slurm.all_partitions
    other = replace(ours, name="batch", node_sets="compute", preempt_modes=("SUSPEND",))
    world.slurm.all_partitions = [replace(ours, preempt_modes=modes), other]
    await world.settle()
    assert (world.slurm.lines, world.shown["reason"]) == ([], "PreemptionUnsuitable")
    assert world.shown["message"].startswith(f"{setting}: a suspended job leaves its CPUs to others")
    world.slurm.loaded["PreemptMode"] = "CANCEL"
    world.slurm.all_partitions = [replace(ours, preempt_modes=("REQUEUE",)), other]
    await world.settle(seconds=100)
    assert world.shown["ready"] is True


async def test_a_grace_time_is_told_and_nodes_are_made() -> None:
    world = World(host("kn-1"))
    (ours,) = world.slurm.all_partitions
    patient = replace(ours, grace_time=timedelta(seconds=30))
    world.slurm.all_partitions = [patient, replace(patient, name="batch", node_sets="compute")]
    await world.settle()
    assert world.shown["ready"] is True
    assert "partitions k8s have a GraceTime" in world.shown["message"]


async def test_a_nodeset_of_the_same_name_keeps_new_nodes_from_being_made_and_ends_none() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.kube.put(NODESETS, {"metadata": {"name": "bridge", "namespace": "here"}, "spec": {"clusterName": "slurm"}})
    world.put_host("kn-2")
    await world.settle()
    assert (set(world.slurm.nodes), world.shown["reason"]) == ({"kn-1"}, "NameTaken")


async def test_another_name_of_the_bridge_and_other_labels_change_features_and_nothing_else() -> None:
    world = World(host("kn-1", labels=ZONE))
    await world.settle()
    world.slurm.run(1, "kn-1")
    await world.edit({"name": "kube", "featureLabels": list(ZONE), "nodeLabels": LABEL})
    await world.settle()
    assert world.slurm.nodes["kn-1"].features == ("kube", "zone.eu-1", MARK)
    assert world.slurm.deleted == []


async def test_an_operator_that_starts_again_changes_nothing() -> None:
    world = World(host("kn-1", devices={"nvidia.com/gpu": "2"}))
    await world.settle()
    again = World(host("kn-1", devices={"nvidia.com/gpu": "2"}))
    again.slurm.nodes = world.slurm.nodes
    before = dict(again.slurm.nodes)
    await again.settle()
    assert (again.slurm.nodes, again.slurm.lines, again.slurm.deleted) == (before, [], [])


async def test_a_size_that_slurm_does_not_take_over_is_told_and_not_repeated() -> None:
    world = World(host("kn-1"))
    await world.settle()
    world.slurm.nodes["kn-1"] = external("kn-1", *world.slurm.nodes["kn-1"].features, cpus=4, real_memory_mib=32768)
    await world.settle()
    assert (world.slurm.deleted, world.shown["reason"]) == ([], "SizeRefused")
    assert "kn-1 (4 CPUs, 32768 MiB in place of 8 CPUs, 32768 MiB)" in world.shown["message"]


async def test_a_machine_without_room_is_told_and_comes_once_there_is_some() -> None:
    world = World(host("kn-1", cpu="2"))
    world.put_pod("all", "kn-1", "1500m")
    await world.settle()
    assert (world.slurm.lines, world.shown["reason"]) == ([], "NoRoom")
    result = await world.step(seconds=1)
    assert (result.requeue_after or EVERY_S) <= URGENT_S
    lists = world.requests.lists
    _ = await world.step(seconds=1)
    assert world.requests.lists == lists

    world.put_pod("all", "kn-1", "500m")
    await world.settle(seconds=URGENT_S)
    assert set(world.slurm.nodes) == {"kn-1"}
    assert world.shown["ready"] is True
