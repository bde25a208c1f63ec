"""Drains that exceed their timeout, and pods deleted without a drain: what happens to their jobs, on real Slurm."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.long(180),
]

NODESETS = ["wait", "requeue", "cancel", "force", "lost", "cordon", "shown"]
"""One for each test, with one node."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with these NodeSets."""
    instance = new_slurm("drain")
    instance.create()
    for name in NODESETS:
        instance.nodeset(name, 1)
    instance.wait_ready()
    instance.wait_idle(f"{name}-0" for name in NODESETS)
    return instance


def begin(slurm: SlurmInKubernetes, name: str, on_timeout: str) -> str:
    """Scale a NodeSet to nothing under a job that does not end; gives the job."""
    job = slurm.hold(f"{name}-0")
    slurm.nodeset(name, 0, drain={"timeout": "5s", "onTimeout": on_timeout})
    return job


def test_by_default_a_drain_waits_and_says_so(slurm: SlurmInKubernetes) -> None:
    job = begin(slurm, "wait", "Wait")
    wait_for(
        "the condition",
        lambda: slurm.condition("nodeset", "wait", "Draining").get("reason") == "DrainTimedOut",
        120,
    )
    assert f"job {job} " in slurm.condition("nodeset", "wait", "Draining")["message"]
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "wait-0")
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_gone("wait-0")


def test_a_job_is_put_back_into_the_queue(slurm: SlurmInKubernetes) -> None:
    job = begin(slurm, "requeue", "Requeue")
    slurm.wait_job(job, "PENDING")
    slurm.wait_event("requeue", "DrainTimedOut", "requeue-0", job)
    # It requires the node by name: without the record the next reconfigure would end it.
    wait_record_kept(slurm, "requeue", job)
    slurm.control("scontrol", "reconfigure")
    assert (slurm.job_state(job), slurm.job(job)["Restarts"]) == ("PENDING", "1")
    # A pod of that name registers under the record, and the job starts there.
    slurm.scale("requeue", 1)
    slurm.control("scontrol", "update", f"jobid={job}", "starttime=now")
    slurm.wait_job(job, "RUNNING")
    slurm.release(job, "requeue-0")
    slurm.wait_job(job, "COMPLETED")
    slurm.scale("requeue", 0)
    slurm.wait_gone("requeue-0")


def wait_record_kept(slurm: SlurmInKubernetes, name: str, job: str) -> None:
    """Wait until the pod of a node is gone, and the condition says that this job keeps its record."""
    told = f"{name}-0 (required by job {job})"
    wait_for(
        "the pod's end, and what keeps the record",
        lambda: (
            f"{name}-0" not in slurm.slurmd_pods()
            and told in slurm.condition("nodeset", name, "RecordsKept").get("message", "")
        ),
        180,
    )
    assert f"{name}-0" in slurm.states()


def test_a_job_is_cancelled(slurm: SlurmInKubernetes) -> None:
    job = begin(slurm, "cancel", "Cancel")
    slurm.wait_job(job, "CANCELLED")
    slurm.wait_gone("cancel-0")
    slurm.wait_event("cancel", "DrainTimedOut", "cancel-0", job)


def test_a_pod_is_given_up_with_its_job(slurm: SlurmInKubernetes) -> None:
    job = begin(slurm, "force", "Force")
    wait_for("the job taken back", lambda: slurm.job(job).get("Restarts") == "1", 120)
    slurm.wait_event("force", "DrainTimedOut", "force-0", job)
    wait_record_kept(slurm, "force", job)
    slurm.control("scancel", job)
    slurm.wait_gone("force-0")


def test_a_pod_deleted_by_hand_under_a_job_is_replaced_and_its_job_taken_back(slurm: SlurmInKubernetes) -> None:
    job, before = slurm.hold("lost-0"), slurm.pod_uid("lost-0")
    slurm.kube("delete", "pod", "lost-0", "--wait=false")
    wait_for("the job taken back", lambda: slurm.job(job).get("Restarts") == "1", 120)
    wait_for("another pod", lambda: slurm.is_replaced("lost-0", before), 120)
    slurm.wait_event("lost", "NodesDown", "lost-0")
    slurm.control("scancel", job)
    slurm.wait_idle_nodes("lost-0")


def test_a_cordoned_pod_is_evicted_after_its_job_and_not_before(slurm: SlurmInKubernetes) -> None:
    job, before = slurm.hold("cordon-0"), slurm.pod_uid("cordon-0")
    slurm.kube("annotate", "pod", "cordon-0", "nodeset.slinky.slurm.net/pod-cordon=true")
    wait_for("the drain", lambda: "cordon-0" in slurm.drained_nodes(), 120)
    metadata = slurm.slurmd_pods()["cordon-0"]["metadata"]
    assert metadata["labels"]["nodeset.slinky.slurm.net/pod-protect"] == "true"
    assert metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    slurm.release(job, "cordon-0")
    wait_for(
        "the end of its protection",
        lambda: "nodeset.slinky.slurm.net/pod-protect" not in slurm.slurmd_pods()["cordon-0"]["metadata"]["labels"],
        120,
    )
    metadata = slurm.slurmd_pods()["cordon-0"]["metadata"]
    assert metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "true"
    drained = "nodeset.slinky.slurm.net/Drained"
    wait_for("what it shows", lambda: slurm.condition("pod", "cordon-0", drained).get("status") == "True", 120)
    slurm.kube("annotate", "pod", "cordon-0", "nodeset.slinky.slurm.net/pod-cordon-")
    slurm.wait_idle_nodes("cordon-0")
    pod = slurm.slurmd_pods()["cordon-0"]["metadata"]
    assert pod["labels"]["nodeset.slinky.slurm.net/pod-protect"] == "true"
    assert pod["uid"] == before


def shown(slurm: SlurmInKubernetes, reason: str, *words: str) -> bool:
    """Whether the pod of NodeSet `shown` says this of its node."""
    found = slurm.condition("pod", "shown-0", "nodeset.slinky.slurm.net/Drained")
    return found.get("reason") == reason and all(word in found["message"] for word in words)


def deadline(slurm: SlurmInKubernetes) -> str:
    annotations = slurm.slurmd_pods()["shown-0"]["metadata"]["annotations"]
    return str(annotations.get("nodeset.slinky.slurm.net/pod-deadline", ""))


def test_a_pod_shows_what_its_drained_node_waits_for(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold("shown-0", "--time=10")
    slurm.nodeset("shown", 0)
    wait_for("the drain in Slurm's words", lambda: shown(slurm, "Draining", f"holds job {job};"), 120)
    reason, since = drained(slurm)
    assert reason.startswith("slurm-operator: scale-in")
    assert shown(slurm, "Draining", f"drained since {since}Z with the reason: {reason}")
    wait_for("the deadline", lambda: deadline(slurm) == f"{slurm.job(job)['EndTime']}Z", 120)

    slurm.nodeset("shown", 1)
    wait_for("that it takes jobs", lambda: shown(slurm, "NotDrained", "node shown-0 takes jobs"), 120)
    wait_for("that nothing is waited for", lambda: deadline(slurm) == "", 120)
    slurm.release(job, "shown-0")
    slurm.wait_job(job, "COMPLETED")


def drained(slurm: SlurmInKubernetes) -> tuple[str, str]:
    """Why Slurm drains the node, and since when."""
    reason, _, rest = slurm.control("scontrol", "show", "node", "shown-0").partition("Reason=")[2].partition(" [")
    return reason, rest.partition("@")[2].partition("]")[0]


def test_an_administrators_drain_is_shown_and_outlives_the_pod(slurm: SlurmInKubernetes) -> None:
    slurm.wait_idle_nodes("shown-0")
    before = slurm.pod_uid("shown-0")
    slurm.control("scontrol", "update", "nodename=shown-0", "state=drain", "reason=disk is full")
    wait_for("the drain in their words", lambda: shown(slurm, "ForeignDrain", "with the reason: disk is full"), 120)
    since = drained(slurm)
    assert shown(slurm, "ForeignDrain", "DRAIN", f"drained since {since[1]}Z")

    slurm.kube("delete", "pod", "shown-0", "--wait")
    wait_for("another pod that says the same", lambda: is_told_again(slurm, before), 180)
    assert drained(slurm) == since
    slurm.control("scontrol", "update", "nodename=shown-0", "state=undrain")
    wait_for("that it takes jobs", lambda: shown(slurm, "NotDrained"), 120)
    slurm.wait_idle_nodes("shown-0")


def is_told_again(slurm: SlurmInKubernetes, before: str) -> bool:
    return slurm.is_replaced("shown-0", before) and shown(slurm, "ForeignDrain", "disk is full")
