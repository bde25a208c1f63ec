"""Replicas up and down: idle nodes are removed, busy ones keep their jobs, other people's drains stay."""

from __future__ import annotations

import json

import pytest

from hack.localkube.kubectl import wait_for
from slinky_api.conditions import PodCondition
from tests.support.operator_metrics import Page
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long]
FOUR = ["compute-0", "compute-1", "compute-2", "compute-3"]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one NodeSet."""
    instance = new_slurm("scale")
    instance.create()
    instance.nodeset("compute", 2, partition={"config": "Default=YES OverSubscribe=FORCE:2"})
    instance.nodeset("rare", 0, futureNodes=2, features=["big"])
    instance.wait_ready()
    return instance


@pytest.fixture
def four_nodes(slurm: SlurmInKubernetes) -> SlurmInKubernetes:
    """The same with four idle nodes."""
    slurm.scale("compute", 4)
    slurm.wait_idle(FOUR)
    return slurm


def test_scaling_out_by_kubectl_gives_idle_nodes(slurm: SlurmInKubernetes) -> None:
    slurm.wait_idle(FOUR[:2])
    slurm.scale("compute", 4)
    slurm.wait_idle(FOUR)
    slurm.wait_seen("compute", readyReplicas=4)
    path = f"/apis/slinky.slurm.net/v1alpha1/namespaces/{slurm.namespace}/nodesets/compute/scale"
    scale = json.loads(slurm.kubectl("get", "--raw", path))
    assert scale["status"]["replicas"] == 4


def test_busy_nodes_keep_a_running_and_a_suspended_job_until_they_end(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    running, suspended = slurm.hold("compute-3"), slurm.hold("compute-2")
    slurm.control("scontrol", "suspend", suspended)
    slurm.wait_job(suspended, "SUSPENDED")
    slurm.scale("compute", 0)
    wait_for("the drains", lambda: {"compute-2", "compute-3"} <= slurm.drained_nodes(), 120)
    for idle in ("compute-0", "compute-1"):
        slurm.wait_gone(idle)
    assert set(slurm.slurmd_pods()) == set(slurm.states()) == {"compute-2", "compute-3"}
    assert slurm.reason("compute-3").startswith("slurm-operator: ")
    assert slurm.job_state(running) == "RUNNING"
    wait_for("a condition that says why it waits", lambda: says_why(slurm, running), 120)
    slurm.release(running, "compute-3")
    slurm.wait_job(running, "COMPLETED")
    slurm.wait_gone("compute-3")
    # A suspended job leaves its node IDLE, and is a job all the same.
    assert slurm.job_state(suspended) == "SUSPENDED"
    assert "compute-2" in slurm.slurmd_pods()
    slurm.release(suspended, "compute-2")
    slurm.control("scontrol", "resume", suspended)
    slurm.wait_job(suspended, "COMPLETED")
    wait_for("nothing left", lambda: slurm.states() == {} and slurm.slurmd_pods() == {}, 180)


def says_why(slurm: SlurmInKubernetes, job: str) -> bool:
    condition = slurm.condition("nodeset", "compute", "Draining")
    return condition.get("status") == "True" and "compute-3" in condition["message"] and job in condition["message"]


def test_jobs_wait_for_nodes_that_a_node_set_may_have(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    future = ["sinfo", "--future", "--Node", "--noheader", "--format=%N"]
    wait_for("future nodes", lambda: "rare_future_1" in slurm.control(*future), 120)
    job = slurm.submit("--partition=rare", "--nodes=2", "--constraint=big", "--mem=200")
    assert slurm.job_state(job) == "PENDING"
    slurm.scale("rare", 2)
    slurm.wait_job(job, "COMPLETED")
    assert slurm.job(job)["NodeList"] == "rare-[0-1]"
    slurm.scale("rare", 0)
    slurm.wait_idle(FOUR)
    slurm.wait_seen("rare", replicas=0)


def test_raising_replicas_in_the_middle_of_a_drain_undrains(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    before, job = slurm.pod_uid("compute-3"), slurm.hold("compute-3")
    slurm.scale("compute", 0)
    wait_for("the drain", lambda: "compute-3" in slurm.drained_nodes(), 120)
    slurm.scale("compute", 4)
    wait_for("the undrain", lambda: "compute-3" not in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.pod_uid("compute-3") == before
    slurm.release(job, "compute-3")
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle(FOUR)


def test_an_administrators_drain_stays_with_its_reason(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes

    def mine() -> bool:
        return "compute-1" in slurm.drained_nodes() and slurm.reason("compute-1") == "mine"

    slurm.control("scontrol", "update", "nodename=compute-1", "state=drain", "reason=mine")
    wait_for("the drain", mine, 120)
    slurm.scale("compute", 5)
    slurm.wait_idle_nodes("compute-4")
    assert mine()
    # Of what the operator has not seen yet it knows no better: a node that it does not know is the first to go.
    slurm.wait_seen("compute", slurmIdle=5, slurmDrain=1)
    # A node that somebody has taken out of service is the first to lose its pod, and keeps its record.
    slurm.scale("compute", 4)
    left = {*FOUR, "compute-4"} - {"compute-1"}
    wait_for("the drained node's pod gone", lambda: set(slurm.slurmd_pods()) == left, 120)
    assert mine()
    slurm.scale("compute", 5)
    wait_registered(slurm, "compute-1", "")
    assert mine()
    before = slurm.pod_uid("compute-1")
    slurm.kube("delete", "pod", "compute-1", "--wait")
    wait_registered(slurm, "compute-1", before)
    assert mine()
    slurm.control("scontrol", "update", "nodename=compute-1", "state=undrain")
    slurm.wait_idle([*FOUR, "compute-4"])
    # The next scale-in finds equals, of which the highest goes.
    slurm.wait_seen("compute", slurmIdle=5, slurmDrain=0)


def wait_registered(slurm: SlurmInKubernetes, node: str, predecessor: str) -> None:
    """Wait until the operator has seen the slurmd of a pod other than its predecessor register."""

    def registered() -> bool:
        pod = slurm.slurmd_pods().get(node)
        if pod is None or pod["metadata"]["uid"] == predecessor:
            return False
        conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
        return conditions.get(PodCondition.REGISTERED) == "True"

    wait_for(f"{node} registered", registered, 180)


def test_idle_nodes_go_before_busy_ones_whatever_their_ordinals(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    job = slurm.hold("compute-3")
    slurm.wait_view("compute", "compute-0")
    slurm.scale("compute", 1)
    wait_for("the idle nodes' end", lambda: set(slurm.states()) == {"compute-3"}, 180)
    assert "compute-3" not in slurm.drained_nodes()
    slurm.release(job, "compute-3")
    slurm.wait_job(job, "COMPLETED")


def test_the_operators_metrics_tell_of_the_drains(slurm: SlurmInKubernetes) -> None:
    # Others scale in beside this: counters are of all.
    page, drained = Page(slurm.kubectl), {"cause": "scale-in"}
    assert page.value("drains_started_total", drained) >= 4
    assert page.value("pods_deleted_total", drained) >= 4
    assert page.value("drain_duration_seconds_count", {**drained, "outcome": "deleted"}) >= 4
    assert page.value("drain_duration_seconds_count", {**drained, "outcome": "undrained"}) >= 1
    assert page.value("pods_created_total") >= 4
    assert page.value("leader") == 1
    where = {"namespace": slurm.namespace, "name": "compute", "cluster": slurm.name}
    assert page.value("nodeset_pods", {**where, "state": "desired"}) == 1
    assert page.value("slurm_connected", {"namespace": slurm.namespace, "cluster": slurm.name, "trouble": ""}) == 1


def test_nobody_was_killed(slurm: SlurmInKubernetes) -> None:
    states = slurm.control("squeue", "--all", "--states=all", "--noheader", "--format=%T").split()
    assert set(states) <= {"COMPLETED"}
