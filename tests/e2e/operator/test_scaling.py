"""Replicas up and down: idle nodes go, busy ones keep their jobs, other people's drains stay."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from hack.operator_install import Installation
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]
FOUR = ["compute-0", "compute-1", "compute-2", "compute-3"]


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def slurm(request: pytest.FixtureRequest, kubectl: Kubectl, operator: Installation) -> Iterator[SlurmInKubernetes]:
    """A Cluster with one NodeSet."""
    instance = SlurmInKubernetes(kubectl, fresh_namespace(f"scale-{request.param.replace('.', '-')}"), request.param)
    instance.create()
    instance.nodeset("compute", 2, partition={"config": "Default=YES OverSubscribe=FORCE:2"})
    try:
        instance.wait_ready()
        yield instance
    except BaseException:
        logging.getLogger(__name__).exception("the operator's log:\n%s", operator.logs()[-20000:])
        raise
    finally:
        instance.abandon()


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
    wait_for("the status", lambda: slurm.get("nodeset", "compute")["status"].get("readyReplicas") == 4, 60)
    path = f"/apis/slinky.slurm.net/v1alpha1/namespaces/{slurm.namespace}/nodesets/compute/scale"
    scale = json.loads(slurm.kubectl("get", "--raw", path))
    assert scale["status"]["replicas"] == 4


def test_busy_nodes_keep_a_running_and_a_suspended_job_until_they_end(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    running = slurm.submit("-w", "compute-3", seconds=25)
    suspended = slurm.submit("-w", "compute-2", seconds=5)
    slurm.wait_job(running, "RUNNING")
    slurm.wait_job(suspended, "RUNNING")
    slurm.control("scontrol", "suspend", suspended)
    slurm.wait_job(suspended, "SUSPENDED")
    slurm.scale("compute", 0)
    wait_for("the idle nodes' end", lambda: set(slurm.states()) == {"compute-2", "compute-3"}, 90)
    wait_for("the drains", lambda: {"compute-2", "compute-3"} <= slurm.drained_nodes(), 60)
    assert set(slurm.slurmd_pods()) == {"compute-2", "compute-3"}
    assert slurm.reason("compute-3").startswith("slurm-operator: ")
    assert slurm.job_state(running) == "RUNNING"
    wait_for("a condition that says why it waits", lambda: says_why(slurm, running), 30)
    slurm.wait_job(running, "COMPLETED")
    wait_for("compute-3 gone", lambda: set(slurm.states()) == {"compute-2"}, 60)
    # A suspended job leaves its node IDLE, and is a job all the same.
    assert slurm.job_state(suspended) == "SUSPENDED"
    assert "compute-2" in slurm.slurmd_pods()
    slurm.control("scontrol", "resume", suspended)
    slurm.wait_job(suspended, "COMPLETED")
    wait_for("nothing left", lambda: slurm.states() == {} and slurm.slurmd_pods() == {}, 60)


def says_why(slurm: SlurmInKubernetes, job: str) -> bool:
    condition = slurm.condition("nodeset", "compute", "Draining")
    return condition.get("status") == "True" and "compute-3" in condition["message"] and job in condition["message"]


def test_raising_replicas_in_the_middle_of_a_drain_undrains(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    before = slurm.slurmd_pods()["compute-3"]["metadata"]["uid"]
    job = slurm.submit("-w", "compute-3", seconds=20)
    slurm.wait_job(job, "RUNNING")
    slurm.scale("compute", 0)
    wait_for("the drain", lambda: "compute-3" in slurm.drained_nodes(), 60)
    slurm.scale("compute", 4)
    wait_for("the undrain", lambda: "compute-3" not in slurm.drained_nodes(), 30)
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.slurmd_pods()["compute-3"]["metadata"]["uid"] == before
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle(FOUR)


def test_an_administrators_drain_stays_with_its_reason(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes

    def mine() -> bool:
        return "compute-1" in slurm.drained_nodes() and slurm.reason("compute-1") == "mine"

    slurm.control("scontrol", "update", "nodename=compute-1", "state=drain", "reason=mine")
    wait_for("the drain", mine, 30)
    slurm.scale("compute", 5)
    slurm.wait_idle_nodes("compute-4")
    assert mine()
    # A node that somebody has taken out of service is the first to lose its pod, and keeps its record.
    slurm.scale("compute", 4)
    wait_for(
        "the drained node's pod gone", lambda: set(slurm.slurmd_pods()) == {*FOUR, "compute-4"} - {"compute-1"}, 60
    )
    assert mine()
    slurm.scale("compute", 5)
    wait_registered(slurm, "compute-1", None)
    assert mine()
    before = slurm.slurmd_pods()["compute-1"]["metadata"]["uid"]
    slurm.kube("delete", "pod", "compute-1", "--wait")
    wait_registered(slurm, "compute-1", before)
    assert mine()
    slurm.control("scontrol", "update", "nodename=compute-1", "state=undrain")
    slurm.wait_idle([*FOUR, "compute-4"])


def wait_registered(slurm: SlurmInKubernetes, node: str, predecessor: str | None) -> None:
    """Wait until a pod other than its predecessor is Ready, which is when its slurmd has registered."""

    def registered() -> bool:
        pod = slurm.slurmd_pods().get(node)
        if pod is None or pod["metadata"]["uid"] == predecessor:
            return False
        return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))

    wait_for(f"{node} registered", registered, 120)


def test_idle_nodes_go_before_busy_ones_whatever_their_ordinals(four_nodes: SlurmInKubernetes) -> None:
    slurm = four_nodes
    job = slurm.submit("-w", "compute-3", seconds=8)
    slurm.wait_job(job, "RUNNING")
    slurm.scale("compute", 1)
    wait_for("the idle nodes' end", lambda: set(slurm.states()) == {"compute-3"}, 90)
    assert "compute-3" not in slurm.drained_nodes()
    slurm.wait_job(job, "COMPLETED")


def test_nobody_was_killed(slurm: SlurmInKubernetes) -> None:
    states = slurm.control("squeue", "--all", "--states=all", "--noheader", "--format=%T").split()
    assert set(states) <= {"COMPLETED"}
