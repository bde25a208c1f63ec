"""Tests of the newest Slurm, repeated with the older one: one node per Kubernetes Node, updates, deletion.

Scaling, drains and their deadlines have separate tests with both versions.
"""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.nodesets import features, uids
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.only_slurm("24.11")]

MACHINES = ["node-1", "node-2"]
"""The Nodes of the local cluster, and so the Slurm nodes with one pod on each."""

ROLLED = ["rolled-0", "rolled-1"]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster of Slurm 24.11 with a NodeSet of each mode, and one to delete."""
    instance = new_slurm("older")
    # A job's end is to be there when it is looked at, however long the rest takes.
    instance.create(extraConf="MinJobAge=3600")
    instance.nodeset("machine", None)
    instance.nodeset("rolled", 2)
    instance.nodeset("doomed", 1)
    instance.wait_ready()
    instance.wait_idle([*MACHINES, *ROLLED, "doomed-0"])
    return instance


def finish(slurm: SlurmInKubernetes, job: str, pod: str) -> None:
    """Release a job and see that it has run once and to its end."""
    slurm.release(job, pod)
    slurm.wait_job(job, "COMPLETED")
    assert slurm.job(job)["Restarts"] == "0"


@pytest.mark.alone
def test_a_cordoned_node_has_its_slurm_node_drained_under_a_job_and_given_back(
    slurm: SlurmInKubernetes,
) -> None:
    shown = slurm.run("srun", "-p", "machine", "-N2", "hostname", pod="machine-node-1")
    assert sorted(shown.split()) == MACHINES
    job = slurm.hold("node-2", pod="machine-node-2", partition="machine")
    slurm.kubectl("cordon", "node-2")
    try:
        wait_for("the drain", lambda: "node-2" in slurm.drained_nodes(), PATIENCE)
        assert slurm.reason("node-2").startswith("slurm-operator: node-cordon")
        assert slurm.job_state(job) == "RUNNING"
    finally:
        slurm.kubectl("uncordon", "node-2")
    wait_for("the undrain", lambda: "node-2" not in slurm.drained_nodes(), PATIENCE)
    finish(slurm, job, "machine-node-2")


def test_an_update_waits_for_a_job_while_slurmctld_is_replaced(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm), slurm.hold("rolled-1")
    slurm.wait_seen("rolled", slurmAllocated=1)
    slurm.nodeset("rolled", 2, features=["second"])
    wait_for("the idle one's update", lambda: "second" in features(slurm, "rolled-0"), PATIENCE)
    wait_for("the drain of the other", lambda: "rolled-1" in slurm.drained_nodes(), PATIENCE)

    controller = f"{slurm.name}-controller-0"
    old = slurm.get("pod", controller)["metadata"]["uid"]
    slurm.kube("delete", "pod", controller, "--wait=false")
    wait_for("another slurmctld", lambda: slurm.get("pod", controller)["metadata"]["uid"] != old, PATIENCE)
    wait_for("its word on the drain", lambda: "rolled-1" in slurm.drained_nodes(), PATIENCE)
    assert slurm.reason("rolled-1").startswith("slurm-operator: update")
    assert slurm.job_state(job) == "RUNNING"
    assert uids(slurm)["rolled-1"] == before["rolled-1"]

    finish(slurm, job, "rolled-1")
    wait_for("its update", lambda: "second" in features(slurm, "rolled-1"), PATIENCE)
    slurm.wait_idle_nodes(*ROLLED)
    after = uids(slurm)
    assert {name for name in before if after[name] != before[name]} == set(ROLLED)


def test_a_nodeset_deleted_in_the_foreground_goes_after_its_job(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm)["doomed-0"], slurm.hold("doomed-0")
    slurm.kube("delete", "nodeset", "doomed", "--cascade=foreground", "--wait=false")
    wait_for("the drain", lambda: "doomed-0" in slurm.drained_nodes(), PATIENCE)
    assert slurm.reason("doomed-0").startswith("slurm-operator: deletion")
    wait_for(
        "the job's name in the condition",
        lambda: f"job {job} " in slurm.condition("nodeset", "doomed", "Draining")["message"],
        PATIENCE,
    )
    assert slurm.job_state(job) == "RUNNING"
    pod = slurm.slurmd_pods()["doomed-0"]["metadata"]
    assert pod["uid"] == before
    assert "deletionTimestamp" not in pod
    finish(slurm, job, "doomed-0")
    wait_for("the pod's end", lambda: "doomed-0" not in slurm.slurmd_pods(), PATIENCE)
    wait_for("the NodeSet's end", lambda: "doomed" not in slurm.kube("get", "nodesets", "--output=name"), PATIENCE)
    slurm.wait_idle([*MACHINES, *ROLLED])


def test_a_nodeset_on_each_node_is_updated_and_deleted_after_its_job(slurm: SlurmInKubernetes) -> None:
    before, job = uids(slurm), slurm.hold("node-1", pod="machine-node-1", partition="machine")
    slurm.wait_seen("machine", slurmAllocated=1)
    slurm.nodeset("machine", None, features=["second"])
    wait_for("the idle one's update", lambda: "second" in features(slurm, "node-2"), PATIENCE)
    wait_for("the drain of the other", lambda: "node-1" in slurm.drained_nodes(), PATIENCE)
    assert uids(slurm)["machine-node-1"] == before["machine-node-1"]
    slurm.kube("delete", "nodeset", "machine", "--wait=false")
    wait_for("the idle one's end", lambda: "node-2" not in slurm.states(), PATIENCE)
    assert slurm.job_state(job) == "RUNNING"
    finish(slurm, job, "machine-node-1")
    wait_for("the end of the other", lambda: set(slurm.states()) == set(ROLLED), PATIENCE)
