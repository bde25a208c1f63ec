"""The life of a pod that Slurm places, others who write meanwhile, and Clusters that come and go, pass by pass."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods.model.steps import QUICK_S, REWRITE_S
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, SLURMJOBS
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.bridge.pods.worlds import GATE, REQUIRED, TEAM, World, ended, pins

EXTERNAL = NodeState("IDLE", frozenset({"EXTERNAL"}))


@pytest.fixture
def world() -> World:
    return World()


async def test_a_pod_becomes_a_job_of_its_own_and_is_placed_once_that_runs(world: World) -> None:
    pod = world.pod()
    await world.settle()
    job = world.slurmjob
    uid = pod["metadata"]["uid"]
    assert job["metadata"]["name"] == f"bridge-{uid}"
    assert job["metadata"]["labels"][labels.LABEL_BRIDGE_GROUP] == uid
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("Pod", uid, True, False)
    spec = job["spec"]
    assert (spec["external"], spec["tasks"], spec["cpusPerTask"], spec["features"]) == ({}, 1, 1, "bridge")
    assert (spec["clusterName"], spec["clusterNamespace"]) == ("slurm", "ns")
    assert spec["parameters"] == {"memory_per_cpu": 1024, "name": "p"}
    _ = world.slurm(job, "Pending", reason="Queued", summary="the job waits: Resources", slurmReason="Resources")
    await world.settle(QUICK_S)
    assert (world.condition("p")["reason"], world.condition("p")["status"]) == ("Queued", "False")
    assert "Resources" in world.condition("p")["message"]
    assert not world.lifted()
    _ = world.runs(job, ("k1",))
    await world.settle()
    lifted = world.find("p")
    assert not lifted["spec"]["schedulingGates"] if "schedulingGates" in lifted["spec"] else True
    assert pins(lifted) == ["k1"]
    assert {"key": labels.TAINT_BRIDGE, "operator": "Exists", "effect": "NoSchedule"} in lifted["spec"]["tolerations"]
    assert (world.condition("p")["reason"], world.condition("p")["status"]) == ("Placed", "True")


async def test_the_deadline_is_the_start_and_the_limit(world: World) -> None:
    world.pod(annotations={labels.ANNOTATION_BRIDGE_DEADLINE: "forged"}, activeDeadlineSeconds=601)
    await world.settle()
    assert world.slurmjob["spec"]["time"] == "11"
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert world.find("p")["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_DEADLINE] == "2026-11-01T00:11:00Z"


async def test_a_pod_that_runs_is_told_when_slurm_will_end_it_earlier_or_later(world: World) -> None:
    """As the Downward API shows it: the limit was changed, or the job is preempted and has a grace time."""
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    about = world.find("p")["metadata"]["annotations"]
    assert labels.ANNOTATION_BRIDGE_DEADLINE not in about
    for moment in ("2026-11-01T02:00:00Z", "2026-11-01T00:00:30Z"):
        _ = world.slurm(world.slurmjob, "Running", deadline=moment)
        await world.settle()
        assert world.find("p")["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_DEADLINE] == moment
        writes = len(world.kube.writes)
        await world.settle()
        assert len(world.kube.writes) == writes
    assert world.condition("p")["reason"] == "Placed"


async def test_terms_of_the_pod_each_get_the_pin_and_other_gates_are_waited_for(world: World) -> None:
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [one]}]} for one in ("a", "b")]
    terms = [*zones, {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]
    world.cluster(featureLabels=["zone"])
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    world.pod(affinity=affinity, schedulingGates=[GATE, {"name": "other/gate"}])
    await world.settle()
    assert not world.slurmjobs()
    assert "other/gate" in world.condition("p")["message"]
    found = world.find("p")
    world.kube.put(BRIDGE_PODS, {**found, "spec": {**found["spec"], "schedulingGates": [GATE]}})
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert pins(world.find("p")) == ["k1", "k1", "k1"]
    placed = world.find("p")["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [one["matchExpressions"] for one in placed] == [one["matchExpressions"] for one in terms]


async def test_an_event_has_slurms_words_also_where_slurm_has_them_later(world: World) -> None:
    """`kubectl describe` shows no messages of conditions, so Events are what a user reads."""
    world.pod()
    await world.settle()
    _ = world.slurm(world.slurmjob, "Pending", reason="Queued", summary="the job is in the queue")
    await world.settle(QUICK_S)
    summary = "the job is in the queue, waiting for: Resources"
    _ = world.slurm(world.slurmjob, "Pending", reason="Queued", summary=summary, slurmReason="Resources")
    await world.settle(REWRITE_S)
    summary = "the job is in the queue, waiting for: Priority"
    _ = world.slurm(world.slurmjob, "Pending", reason="Queued", summary=summary, slurmReason="Priority")
    await world.settle(REWRITE_S)
    assert world.condition("p")["message"] == f"Slurm job 7 waits: {summary}"
    # Which words these are may change with each look of slurmctld: they are an Event once.
    assert world.events.all == [
        ("p", "Submitted", "Slurm job 7 waits: the job is in the queue"),
        ("p", "Queued", "Slurm job 7 waits: the job is in the queue, waiting for: Resources"),
    ]


async def test_a_job_that_the_cache_does_not_show_yet_is_not_made_once_more_under_an_earlier_name(world: World) -> None:
    world.pod()
    await world.settle()
    first = world.slurmjob
    later = {**first, "metadata": {**first["metadata"], "name": f"{first['metadata']['name']}-r1", "uid": "later"}}
    # Somebody has deleted the first one, the operator has made the next, and another operator goes on with its cache.
    world.kube.drop(SLURMJOBS, first)
    world.tick(120)
    world.kube.is_late = True
    world.kube.put(SLURMJOBS, later)
    world.start()
    for key in set(world.every_key()):
        _ = await world.look(key)
    assert world.slurmjob["metadata"]["name"] == later["metadata"]["name"]
    world.kube.is_late = False
    await world.settle()
    assert world.slurmjob["metadata"]["name"] == later["metadata"]["name"]


async def test_a_pod_that_fits_nowhere_shows_what_it_asks_for_and_the_largest_node(world: World) -> None:
    world.nodes = [Node(name="k1", cpus=8, real_memory_mib=9000, features=("bridge",), state=EXTERNAL)]
    world.pod(requests={"cpu": "9", "memory": "1Gi"})
    await world.settle()
    _ = world.slurm(world.slurmjob, "Pending", slurmReason="PartitionConfig")
    await world.settle(QUICK_S)
    asked = "a pod asks for 9 CPUs, 1026 MiB, and no node has all of that: the largest, k1, has 8 CPUs, 9000 MiB"
    assert asked in world.condition("p")["message"]


@pytest.mark.parametrize(("code", "told"), [(0, 0), (3, 3), (137, 137)])
async def test_the_end_of_a_pod_ends_its_job_once(world: World, code: int, told: int) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.ends("p", code, "OOMKilled" if code == 137 else "")
    await world.settle()
    assert ended(world.slurmjob)["exitCode"] == told
    comment = ended(world.slurmjob)["comment"]
    assert "x:1" in comment
    assert ("OOMKilled (137)" in comment) == (code == 137)
    writes = len(world.kube.writes)
    await world.settle()
    assert len(world.kube.writes) == writes


@pytest.mark.parametrize("state", ["Failed", "Succeeded"])
async def test_pods_that_slurm_has_ended_are_evicted_and_it_says_why(world: World, state: str) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    _ = world.slurm(world.slurmjob, state, reason="Timeout", summary="the job reached its time limit")
    await world.settle()
    assert world.find("p")["metadata"]["deletionTimestamp"]
    assert ("p", "EvictedBySlurm", "Slurm has ended job 7: Timeout: the job reached its time limit") in world.events.all


@pytest.mark.parametrize("state", ["Pending", "Waiting", "Unknown", "Suspended"])
async def test_pods_whose_job_slurm_has_lost_go_on(world: World, state: str) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    _ = world.slurm(world.slurmjob, state)
    await world.settle(REWRITE_S)
    assert not world.find("p")["metadata"].get("deletionTimestamp")
    assert world.condition("p")["reason"] == ("JobSuspended" if state == "Suspended" else "JobLost")
    assert world.condition("p")["status"] == "True"


async def test_a_job_that_slurm_has_forgotten_is_followed_by_another_once_none_of_its_pods_runs(world: World) -> None:
    world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    finished = {"type": "Finished", "status": "True", "reason": "EndNotSeen", "message": ""}
    at = {"lastTransitionTime": "2026-11-01T00:00:00Z"}
    _ = world.slurm(world.slurmjob, "Unknown", reason="EndNotSeen", conditions=[{**finished, **at}])
    await world.settle(60)
    assert not world.lifted()
    assert [one["metadata"]["name"] for one in world.slurmjobs()] == ["bridge-job-j", "bridge-job-j-r1"]


async def test_a_job_that_slurm_has_forgotten_before_it_ran_is_followed_by_another(world: World) -> None:
    """slurmctld that is killed right after a submission: nobody has cancelled that job."""
    world.pod()
    await world.settle()
    about = {"type": "Finished", "status": "True", "reason": "EndNotSeen", "message": ""}
    at = {"lastTransitionTime": "2026-11-01T00:00:00Z"}
    _ = world.slurm(world.slurmjob, "Unknown", reason="EndNotSeen", conditions=[{**about, **at}])
    await world.settle(60)
    assert [one["metadata"]["name"] for one in world.slurmjobs()][1:] == [
        f"{world.slurmjobs()[0]['metadata']['name']}-r1"
    ]
    _ = world.runs(world.slurmjobs()[1], ("k1",))
    await world.settle()
    assert world.lifted() == ["p"]


async def test_an_eviction_that_a_budget_forbids_is_tried_again(world: World) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.kube.blocked = {"p"}
    _ = world.slurm(world.slurmjob, "Failed", reason="Preempted")
    (key,) = set(world.queue)
    result = await world.look(key)
    assert result.requeue_after is not None
    assert "EvictionWaits" in {reason for _, reason, _ in world.events.all}
    world.kube.blocked = set()
    _ = await world.look(key)
    assert world.find("p")["metadata"]["deletionTimestamp"]


async def test_a_deleted_slurmjob_takes_its_pods_along(world: World) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.kube.drop(SLURMJOBS, world.slurmjob)
    await world.settle()
    assert world.find("p")["metadata"]["deletionTimestamp"]


async def test_the_next_job_has_another_name_while_a_pod_ends_that_a_deleted_one_has_placed(world: World) -> None:
    made = world.job(pods=1)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.kube.drop(SLURMJOBS, world.slurmjob)
    await world.settle()
    assert world.kube.pods()[0]["metadata"]["deletionTimestamp"]
    world.pod_of(made, 0, name="heir")
    await world.settle()
    assert world.slurmjob["metadata"]["name"] == "bridge-job-j-r1"
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert "heir" in world.lifted()


@pytest.mark.parametrize("is_placed", [False, True])
async def test_of_two_jobs_of_a_group_the_earlier_goes_unless_it_has_placed_pods(world: World, is_placed: Any) -> None:
    world.job(pods=2)
    await world.settle()
    first = world.slurmjob
    if is_placed:
        _ = world.runs(first)
        await world.settle()
    about = {key: first["metadata"][key] for key in ("namespace", "labels", "annotations", "ownerReferences")}
    name = f"{first['metadata']['name']}-r1"
    world.kube.put(SLURMJOBS, {"metadata": {**about, "name": name}, "spec": first["spec"]})
    await world.settle()
    by_name = {one["metadata"]["name"]: one["metadata"] for one in world.slurmjobs()}
    assert ("deletionTimestamp" in by_name["bridge-job-j"]) != is_placed
    assert "deletionTimestamp" not in by_name[name]


async def test_a_slurmjob_that_the_cache_does_not_show_is_not_taken_for_deleted(world: World) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.jobs.remove(world.slurmjob)
    (key,) = set(world.every_key())
    _ = await world.look(key)
    assert not world.find("p")["metadata"].get("deletionTimestamp")


# Others who write


async def test_annotations_on_a_pod_with_the_gate_mean_nothing(world: World) -> None:
    forged = {labels.ANNOTATION_BRIDGE_SLURMJOB: "bridge-x", labels.ANNOTATION_BRIDGE_SLOT: "17"}
    world.pod(annotations=forged)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert world.find("p")["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] == "0"


async def test_a_pod_without_the_gate_is_left_alone_and_says_so(world: World) -> None:
    world.pod(schedulingGates=[])
    world.pod("q", schedulingGates=[], annotations={labels.ANNOTATION_BRIDGE_SLURMJOB: "no/name"})
    await world.settle()
    assert not world.slurmjobs()
    assert world.condition("p")["reason"] == "NotPlacedBySlurm"
    assert not world.find("p")["metadata"].get("deletionTimestamp")


def forged(world: World, pod: Object, **changes: Any) -> Object:
    uid = pod["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    about = {
        "name": f"bridge-{uid}",
        "namespace": TEAM,
        "labels": {labels.LABEL_BRIDGE_GROUP: uid},
        "annotations": {labels.ANNOTATION_BRIDGE_MEMBERS: f"Pod/{uid}/"},
        "ownerReferences": [owner],
        **changes,
    }
    spec = {"clusterName": "slurm", "clusterNamespace": "ns", "external": {}, "tasks": 1, "cpusPerTask": 1}
    return world.kube.put(SLURMJOBS, {"metadata": about, "spec": {**spec, "parameters": {"memory_per_cpu": 1}}})


@pytest.mark.parametrize(
    "changes", [{"ownerReferences": []}, {"labels": {}}, {"annotations": {}}], ids=["owner", "label", "members"]
)
async def test_a_slurmjob_that_somebody_made_in_advance_places_nothing(world: World, changes: Any) -> None:
    pod = world.pod()
    _ = world.runs(forged(world, pod, **changes), ("k1",))
    await world.settle()
    assert not world.lifted()
    assert "JobNotOurs" in {reason for _, reason, _ in world.events.all}


async def test_a_slurmjob_made_in_advance_that_asks_for_less_than_the_pod_places_nothing(world: World) -> None:
    pod = world.pod()
    _ = world.runs(forged(world, pod), ("k1",))
    await world.settle()
    assert not world.lifted()
    assert "asks for something else" in world.condition("p")["message"]


async def test_a_slurmjob_that_has_ended_meanwhile_places_nothing(world: World) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    world.kube.is_late = True
    _ = world.slurm(world.slurmjob, "Failed")
    (key,) = set(world.every_key())
    _ = await world.look(key)
    assert not world.lifted()


# Clusters


@pytest.mark.parametrize(
    ("tenants", "words"),
    [
        ([], "grants namespace team no user"),
        ([{"user": "alice", "namespaces": [TEAM], "accounts": ["other"]}], "'physics' is not granted"),
    ],
)
async def test_what_is_not_granted_is_refused(world: World, tenants: Any, words: str) -> None:
    world.cluster(tenants=tenants)
    world.pod(annotations={"slurmjob.slinky.slurm.net/account": "physics"})
    await world.settle()
    assert words in world.condition("p")["message"]
    assert not world.slurmjobs()
    world.cluster()
    await world.settle(REWRITE_S)
    assert world.slurmjob["spec"]["account"] == "physics"


async def test_of_several_clusters_the_pod_says_which(world: World) -> None:
    world.cluster("other")
    world.pod()
    world.pod("q", annotations={labels.ANNOTATION_BRIDGE_CLUSTER: "ns/other"})
    await world.settle()
    assert "ns/other, ns/slurm" in world.condition("p")["message"]
    assert world.slurmjob["spec"]["clusterName"] == "other"
