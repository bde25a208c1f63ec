"""What users of a namespace do who want more than they are granted, or are careless: it is refused, or harms nobody."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods.controller import BUDGET
from slinky_operator.bridge.pods.model.steps import GAP_S, QUICK_S, REWRITE_S
from slinky_operator.bridge.pods.model.translation.request import LONGEST_GRACE_S
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, BRIDGE_PODS, CLUSTERS, PODGROUPS, SLURMJOBS
from slinky_operator.reconcile.text import stamp
from tests.unit.bridge.pods.worlds import World


@pytest.fixture
def world() -> World:
    return World()


async def runs(world: World, **spec: Any) -> Object:
    """A pod that Slurm has placed."""
    world.pod(**spec)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert world.lifted() == ["p"]
    return world.slurmjob


def is_going(world: World, name: str = "p") -> bool:
    return bool(world.find(name)["metadata"].get("deletionTimestamp"))


def mark(world: World, name: str = "p") -> None:
    """Delete a pod that a finalizer keeps."""
    found = world.find(name)
    about = {**found["metadata"], "deletionTimestamp": stamp(world.kube.now), "finalizers": ["example.com/kept"]}
    world.kube.put(BRIDGE_PODS, {**found, "metadata": about})


def told(world: World) -> str:
    return "\n".join(f"{reason}: {message}" for _, reason, message in world.events.all)


async def test_a_job_whose_end_somebody_has_written_takes_its_pod_along(world: World) -> None:
    job = await runs(world)
    world.kube.put(SLURMJOBS, {**job, "spec": {**job["spec"], "external": {"ended": {"exitCode": 0}}}})
    await world.settle()
    assert not is_going(world)
    _ = world.slurm(world.slurmjob, "Succeeded", reason="Completed")
    await world.settle()
    assert is_going(world)
    assert f"spec.external.ended of SlurmJob {job['metadata']['name']} says that its work is over" in told(world)


@pytest.mark.parametrize("how", ["ended", "deleting", "lost"])
async def test_a_disruption_budget_does_not_keep_a_pod_without_a_job_for_ever(world: World, how: str) -> None:
    job = await runs(world)
    world.kube.blocked = {"p"}
    if how == "ended":
        _ = world.slurm(job, "Failed", reason="Timeout", summary="it reached its time limit")
    elif how == "deleting":
        about = {**job["metadata"], "deletionTimestamp": stamp(world.kube.now)}
        world.kube.put(SLURMJOBS, {**job, "metadata": about})
    else:
        world.kube.drop(SLURMJOBS, job)
    await world.settle()
    if how != "lost":
        assert not is_going(world)
        assert "the eviction waits" in told(world)
    await world.settle(BUDGET.total_seconds())
    assert is_going(world)
    assert "a PodDisruptionBudget forbids its eviction, so it is deleted" in told(world)


async def test_a_grace_period_is_bounded_since_the_node_has_another_job_by_then(world: World) -> None:
    world.pod("long", terminationGracePeriodSeconds=LONGEST_GRACE_S + 1)
    world.pod("good", terminationGracePeriodSeconds=LONGEST_GRACE_S)
    await world.settle()
    assert world.condition("long")["reason"] == "Refused"
    assert "spec.terminationGracePeriodSeconds: must be 600 at most" in world.condition("long")["message"]
    assert len(world.slurmjobs()) == 1


@pytest.mark.parametrize("step", ["waits", "runs", "lifted"])
async def test_a_pod_that_a_finalizer_keeps_keeps_no_job(world: World, step: str) -> None:
    """Deleted before it has a Node, it never runs."""
    world.kube.binds = False
    world.pod()
    await world.settle()
    if step == "lifted":
        _ = world.runs(world.slurmjob, ("k1",))
        await world.settle()
        assert world.lifted() == ["p"]
    mark(world)
    if step == "runs":
        _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    if step == "waits":
        assert world.slurmjob["metadata"]["deletionTimestamp"]
    else:
        assert world.slurmjob["spec"]["external"]["ended"]["exitCode"] == 143


async def test_a_pod_that_a_finalizer_keeps_keeps_its_job_while_it_may_run(world: World) -> None:
    await runs(world)
    mark(world)
    await world.settle(3600)
    assert not world.slurmjob["spec"]["external"].get("ended")
    world.ends("p", 137)
    await world.settle()
    assert world.slurmjob["spec"]["external"]["ended"]["exitCode"] == 137


async def test_the_heir_of_a_pod_that_a_finalizer_keeps_takes_its_task(world: World) -> None:
    world.kube.binds = False
    job = world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    first = world.kube.pods()[0]["metadata"]["name"]
    mark(world, first)
    heir = world.pod_of(job, 0, name="heir")["metadata"]["name"]
    await world.settle()
    assert heir in world.lifted()


async def test_a_slurmjob_on_nodes_of_slurmd_places_no_pod(world: World) -> None:
    """One that somebody has made like the operator, but for the feature of the bridge's nodes."""
    pod = world.pod()
    await world.settle()
    job = world.slurmjob
    world.kube.put(SLURMJOBS, {**job, "spec": {**job["spec"], "features": "compute"}})
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    assert world.lifted() == []
    assert "asks for something else" in world.condition(pod["metadata"]["name"])["message"]


async def test_a_job_that_runs_for_pods_that_are_not_granted_any_more_ends(world: World) -> None:
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    world.cluster(tenants=[])
    await world.settle()
    assert world.condition("p")["reason"] == "Refused"
    assert not world.slurmjob["spec"]["external"].get("ended")
    await world.settle(GAP_S)
    assert world.slurmjob["spec"]["external"]["ended"]["comment"] == "no pod of it may be placed"
    assert world.lifted() == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [("PreemptionUnsuitable", "slurm.conf has PreemptMode=GANG"), ("SlurmTooOld", "needs Slurm 26.05.3")],
)
async def test_pods_say_why_a_slurm_cannot_place_them_and_nothing_is_submitted(
    world: World, reason: str, words: str
) -> None:
    (cluster,) = world.kube.all(CLUSTERS)
    shown = {"ready": False, "reason": reason, "message": words, "nodes": 0}
    world.kube.put(CLUSTERS, {**cluster, "status": {"bridge": shown}})
    world.pod()
    await world.settle()
    assert world.condition("p")["reason"] == "ClusterNotReady"
    assert world.condition("p")["message"] == f"Cluster ns/slurm cannot place pods: {words}"
    assert not world.slurmjobs()
    world.cluster()
    await world.settle(REWRITE_S)
    assert world.slurmjobs()


# Pods that name what is not theirs


def other(world: World) -> Object:
    """A Job of another namespace, which Slurm runs."""
    spec = {"completions": 1, "parallelism": 1, "completionMode": "Indexed"}
    about = {"name": "theirs", "namespace": "rich", "uid": "uid-theirs"}
    return world.kube.put(BATCH_JOBS, {"metadata": about, "spec": spec, "status": {}})


async def test_a_pod_that_names_the_job_of_another_namespace_is_refused(world: World) -> None:
    _ = other(world)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": "uid-theirs", "controller": True}
    world.pod(owner=owner, annotations={"batch.kubernetes.io/job-completion-index": "0"})
    await world.settle(60)
    assert world.condition("p")["reason"] == "Refused"
    assert "to which the pod belongs, does not exist" in world.condition("p")["message"]
    assert not world.slurmjobs()


async def test_a_pod_that_names_a_pod_group_of_another_namespace_is_refused(world: World) -> None:
    world.kube.put(PODGROUPS, {"metadata": {"name": "theirs", "namespace": "rich"}, "spec": {"minMember": 1}})
    world.pod(labels={"scheduling.x-k8s.io/pod-group": "theirs"})
    await world.settle(60)
    assert world.condition("p")["reason"] == "Refused"
    assert "PodGroup theirs, to which the pod belongs, does not exist" in world.condition("p")["message"]
    assert not world.slurmjobs()


async def test_a_pod_that_names_the_slurmjob_of_another_pod_is_not_placed_by_it(world: World) -> None:
    """Its annotations are the operator's to write; without the policy they give it nothing, and harm no other."""
    job = await runs(world)
    name = job["metadata"]["name"]
    forged = {labels.ANNOTATION_BRIDGE_SLURMJOB: name, labels.ANNOTATION_BRIDGE_SLOT: "0"}
    world.pod("thief", schedulingGates=[], annotations=forged)
    await world.settle()
    world.ends("p")
    world.ends("thief")
    await world.settle()
    assert [one["metadata"]["name"] for one in world.slurmjobs()] == [name]
    assert world.slurmjob["spec"]["external"]["ended"]["exitCode"] == 0


@pytest.mark.parametrize(
    "annotations",
    [
        {f"{labels.BRIDGE_PREFIX}partition": "p" * 200_000},
        {f"{labels.BRIDGE_PREFIX}parameters": '{"comment": "' + "c" * 200_000 + '"}'},
        {f"{labels.BRIDGE_PREFIX}parameters": "[" * 100_000},
        {f"{labels.BRIDGE_PREFIX}features": "a&" * 50_000 + "a"},
        {f"{labels.BRIDGE_PREFIX}cluster": "n/" + "c" * 200_000},
        {f"{labels.SLURMJOB_PREFIX}gres": ",".join(f"g{number}:1" for number in range(20_000))},
        {f"{labels.BRIDGE_PREFIX}group": "x" * 200_000},
    ],
    ids=["partition", "parameters", "deep", "features", "cluster", "gres", "group"],
)
async def test_huge_annotations_are_refused_in_a_short_sentence(world: World, annotations: dict[str, str]) -> None:
    world.pod(annotations=annotations)
    await world.settle()
    shown = world.condition("p")
    assert shown["reason"] == "Refused"
    assert "annotations[" in shown["message"] or "spec.parameters" in shown["message"]
    assert len(shown["message"]) <= 500
    assert not world.slurmjobs()


async def test_a_parameter_that_is_the_operators_mark_is_refused(world: World) -> None:
    for number, name in enumerate(("extra", "admin_comment", "user_id", "group_id")):
        world.pod(f"p{number}", annotations={f"{labels.BRIDGE_PREFIX}parameters": f'{{"{name}": "1"}}'})
    await world.settle()
    for number in range(4):
        assert world.condition(f"p{number}")["reason"] == "Refused", number
    assert not world.slurmjobs()


@pytest.mark.parametrize(
    ("reason", "summary"),
    [
        ("SubmissionRefused", "Slurm has refused it: Requested node configuration is not available"),
        ("SubmissionRefused", "a job without a script (spec.external) needs Slurm 26.05.3 or newer"),
        ("SubmissionRefused", "Slurm has refused it: Invalid account or account/partition combination specified"),
    ],
    ids=["too large", "too old", "account"],
)
async def test_pods_show_once_why_slurm_refuses_their_job(world: World, reason: str, summary: str) -> None:
    world.pod()
    await world.settle()
    _ = world.slurm(world.slurmjob, "Waiting", reason=reason, summary=summary)
    await world.settle(QUICK_S)
    assert world.condition("p")["reason"] == reason
    assert summary in world.condition("p")["message"]
    writes = len(world.kube.writes)
    await world.settle(600)
    assert len(world.kube.writes) == writes
    assert len(world.slurmjobs()) == 1
