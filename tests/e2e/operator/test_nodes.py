"""Kubernetes Nodes are labelled, cordoned, drained and uncordoned; jobs end first, and Slurm shows why."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.nodesets import features, host_of, uids, whole
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.alone]

MACHINES = ["node-1", "node-2"]
"""The Nodes of the local cluster, and so the Slurm nodes with one pod on each."""

LABEL = "example.com/slurm"
ON_EACH = {"template": {"spec": {"nodeSelector": {LABEL: "yes"}}}}
"""Of the spec of NodeSet `machine`, as it was first."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> Iterator[SlurmInKubernetes]:
    """A Cluster with a NodeSet of each mode on the same Nodes."""
    kubectl("label", "node", *MACHINES, f"{LABEL}=yes", "--overwrite")
    instance = new_slurm("nodes")
    instance.create()
    instance.nodeset("compute", 2)
    instance.nodeset("machine", None, **ON_EACH)
    instance.wait_ready()
    yield instance
    kubectl("label", "node", *MACHINES, f"{LABEL}-")


@pytest.fixture
def ready(slurm: SlurmInKubernetes) -> Iterator[SlurmInKubernetes]:
    """The same with all nodes idle; Nodes are given back after the test."""
    slurm.wait_idle([*MACHINES, "compute-0", "compute-1"])
    try:
        yield slurm
    finally:
        slurm.kubectl("uncordon", *MACHINES)
        slurm.kubectl("label", "node", *MACHINES, f"{LABEL}=yes", "--overwrite")
        annotation = "nodeset.slinky.slurm.net/node-cordon-reason"
        slurm.kubectl("annotate", "node", *MACHINES, f"{annotation}-", "features.slinky.slurm.net/spec-")


def test_nodesets_of_both_modes_share_nodes(ready: SlurmInKubernetes) -> None:
    assert set(ready.slurmd_pods()) == {"machine-node-1", "machine-node-2", "compute-0", "compute-1"}
    assert [host_of(ready, f"machine-{name}") for name in MACHINES] == MACHINES
    shown = ready.run("srun", "-p", "machine", "-N2", "hostname", pod="machine-node-1")
    assert sorted(shown.split()) == MACHINES
    job = ready.run("srun", "-p", "compute", "-N2", "hostname", pod="machine-node-1")
    assert sorted(job.split()) == ["compute-0", "compute-1"]


def test_a_node_that_no_longer_matches_loses_its_pod_after_its_job(ready: SlurmInKubernetes) -> None:
    slurm = ready
    job = slurm.hold("node-2", pod="machine-node-2", partition="machine")
    slurm.kubectl("label", "node", "node-2", f"{LABEL}-")
    wait_for("the drain", lambda: "node-2" in slurm.drained_nodes(), 120)
    assert slurm.reason("node-2").startswith("slurm-operator: node-mismatch")
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "machine-node-2")
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_gone("node-2", "machine-node-2")
    slurm.kubectl("label", "node", "node-2", f"{LABEL}=yes")
    slurm.wait_idle_nodes("node-2")


def test_kubectl_drain_waits_for_the_job_and_uncordon_brings_all_back(ready: SlurmInKubernetes) -> None:
    slurm = ready
    job = slurm.hold("node-2", pod="machine-node-2", partition="machine")
    arguments = ("--delete-emptydir-data", "--pod-selector=nodeset.slinky.slurm.net/uid", "--timeout=480s")
    with ThreadPoolExecutor(1) as threads:
        draining = threads.submit(slurm.kubectl, "drain", "node-2", *arguments, timeout=500)
        wait_for("the drain in Slurm", lambda: "node-2" in slurm.drained_nodes(), 120)
        wait_for("idle pods' end", lambda: pods_on(slurm, "node-2") == {"machine-node-2"}, 180)
        assert slurm.job_state(job) == "RUNNING"
        assert not draining.done()
        slurm.release(job, "machine-node-2")
        slurm.wait_job(job, "COMPLETED")
        draining.result(timeout=300)
    assert pods_on(slurm, "node-2") == set()
    slurm.wait_idle(["node-1", "compute-0", "compute-1"])
    slurm.kubectl("uncordon", "node-2")
    slurm.wait_idle([*MACHINES, "compute-0", "compute-1"])


def pods_on(slurm: SlurmInKubernetes, host: str) -> set[str]:
    pods = slurm.slurmd_pods().items()
    return {name for name, pod in pods if pod["spec"].get("nodeName") == host}


def test_a_cordon_says_why_and_is_taken_back_under_a_running_job(ready: SlurmInKubernetes) -> None:
    slurm = ready
    job = slurm.hold("node-1", pod="machine-node-1", partition="machine")
    there = {name.removeprefix("machine-") for name in pods_on(slurm, "node-1")}
    slurm.control("scontrol", "update", "nodename=node-2", "state=drain", "reason=mine")
    slurm.kubectl("annotate", "node", "node-1", "nodeset.slinky.slurm.net/node-cordon-reason=new kernel")
    slurm.kubectl("cordon", "node-1")
    wait_for("the drains", lambda: there <= slurm.drained_nodes(), 120)
    assert all(slurm.reason(name).endswith(": new kernel") for name in there)
    slurm.kubectl("uncordon", "node-1")
    wait_for("the undrains", lambda: not there & slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.reason("node-2") == "mine"
    slurm.release(job, "machine-node-1")
    slurm.wait_job(job, "COMPLETED")
    slurm.control("scontrol", "update", "nodename=node-2", "state=undrain")


def test_features_of_a_node_can_be_asked_for(ready: SlurmInKubernetes) -> None:
    slurm = ready
    slurm.kubectl("annotate", "node", "node-2", "features.slinky.slurm.net/spec=rack-7")

    def has_it() -> bool:
        return "k8s/rack-7" in slurm.control("scontrol", "show", "node", "node-2")

    wait_for("the feature", has_it, 120)
    shown = slurm.run("srun", "-p", "machine", "-C", "k8s/rack-7", "hostname", pod="machine-node-1")
    assert shown.split() == ["node-2"]


def test_an_update_goes_from_node_to_node_and_the_earlier_manifest_takes_it_back(ready: SlurmInKubernetes) -> None:
    slurm = ready
    first, before = revision(slurm), uids(slurm)
    job = slurm.hold("node-1", pod="machine-node-1", partition="machine")
    # What has been chosen for an update stays chosen: the operator must know which one is idle.
    slurm.wait_view("machine", "node-2", pod="machine-node-2")
    slurm.nodeset("machine", None, **ON_EACH, features=["second"])
    wait_for("the idle one's update", lambda: "second" in features(slurm, "node-2"), 240)
    wait_for("the drain of the other", lambda: "node-1" in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    # Taken back under the job: its node has never had anything else.
    slurm.nodeset("machine", None, **ON_EACH)
    wait_for("the undrain", lambda: "node-1" not in slurm.drained_nodes(), 120)
    wait_for("the earlier revision", lambda: revision(slurm) == first and whole(slurm, "machine", 2), 240)
    slurm.release(job, "machine-node-1")
    slurm.wait_job(job, "COMPLETED")
    after = uids(slurm)
    assert {name for name in before if after[name] != before[name]} == {"machine-node-2"}
    assert not any("second" in features(slurm, name) for name in MACHINES)


def test_a_number_is_a_limit_and_without_it_each_node_has_its_pod_again(ready: SlurmInKubernetes) -> None:
    slurm = ready
    job = slurm.hold("node-2", pod="machine-node-2", partition="machine")
    slurm.wait_view("machine", "node-1", pod="machine-node-1")
    slurm.scale("machine", 1)
    wait_for("the idle one's end", lambda: "node-1" not in slurm.states(), 180)
    assert "node-2" not in slurm.drained_nodes()
    slurm.scale("machine", 0)
    wait_for("the drain", lambda: "node-2" in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "machine-node-2")
    slurm.wait_job(job, "COMPLETED")
    wait_for("no node left", lambda: not set(MACHINES) & set(slurm.states()), 180)
    slurm.scale("machine", 5)
    slurm.wait_idle_nodes(*MACHINES)
    slurm.kube("patch", "nodeset", "machine", "--type=merge", '--patch={"spec":{"replicas":null}}')
    wait_for("as many as Nodes", lambda: whole(slurm, "machine", 2), 180)
    assert slurm.get("nodeset", "machine")["status"]["scalingMode"] == "DaemonSet"


def revision(slurm: SlurmInKubernetes) -> str:
    return str(slurm.get("nodeset", "machine")["status"]["updateRevision"])
