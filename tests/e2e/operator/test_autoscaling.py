"""Autoscaling by pending jobs: from zero to what they need, and back."""

from __future__ import annotations

from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

# It disturbs nobody; beside the tests that do, both halves of the run take as long.
pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.alone, pytest.mark.long(210)]
SOON = {"idleTime": "5s", "scaleDownDelay": "1s"}
BY = "submit-0"
"""The pod from which jobs are submitted: its NodeSet is not scaled."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with two NodeSets at zero, of which one has GPUs, and a partition of both."""
    instance = new_slurm("autoscaling")
    instance.create(
        extraConf="GresTypes=gpu",
        configFiles={"gres.conf": "Name=gpu File=/dev/zero\n"},
        partitions=[{"name": "both", "nodeSets": ["cpu", "gpu"]}],
    )
    instance.nodeset("submit", 1)
    instance.nodeset("cpu", None, autoscaling={"maxReplicas": 3, **SOON})
    instance.nodeset("gpu", None, gres="gpu:1", weight=10, autoscaling={"maxReplicas": 1, **SOON})
    instance.wait_ready()
    instance.wait_idle(["submit-0"])
    return instance


def submit(slurm: SlurmInKubernetes, *options: str, seconds: float = 1.0) -> str:
    return slurm.submit(*options, seconds=seconds, pod=BY)


def shown(slurm: SlurmInKubernetes, nodeset: str) -> dict[str, Any]:
    return slurm.condition("nodeset", nodeset, "Autoscaling")


def nodes(slurm: SlurmInKubernetes, nodeset: str) -> set[str]:
    return {name for name in slurm.slurmd_pods() if name.startswith(f"{nodeset}-")}


def finished(slurm: SlurmInKubernetes, job: str) -> bool:
    states = slurm.control("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").split()
    return bool(states) and set(states) == {"COMPLETED"}


def test_a_held_job_gets_no_node_and_is_named_with_its_reason(slurm: SlurmInKubernetes) -> None:
    job = submit(slurm, "-pcpu", "--hold")
    wait_for("the reason", lambda: "JobHeld" in shown(slurm, "cpu").get("message", ""), PATIENCE)
    condition = shown(slurm, "cpu")
    assert (condition["status"], condition["reason"]) == ("True", "AsExpected")
    assert "0 replicas wanted" in condition["message"]
    assert nodes(slurm, "cpu") == set()
    slurm.control("scancel", job)


def test_a_job_that_asks_for_a_gpu_gets_the_nodes_that_have_one(slurm: SlurmInKubernetes) -> None:
    job = submit(slurm, "-pboth", "--gres=gpu:1")
    wait_for("the job", lambda: finished(slurm, job), PATIENCE)
    slurm.wait_event("gpu", "Autoscaled", "0 -> 1", job)
    assert nodes(slurm, "cpu") == set()


def test_an_array_and_a_job_of_three_nodes_get_theirs(slurm: SlurmInKubernetes) -> None:
    array = submit(slurm, "-pcpu", "--array=0-1", seconds=3)
    wait_for("two nodes", lambda: len(nodes(slurm, "cpu")) == 2, PATIENCE)
    wide = submit(slurm, "-pcpu", "-N3")
    wait_for("both", lambda: finished(slurm, array) and finished(slurm, wide), PATIENCE)


def test_a_job_that_can_never_run_is_named_and_nodes_go_when_nobody_needs_them(slurm: SlurmInKubernetes) -> None:
    job = submit(slurm, "-pcpu", "-N4")
    wait_for("the condition", lambda: shown(slurm, "cpu").get("reason") == "JobsImpossible", PATIENCE)
    assert f"job {job} can never run" in shown(slurm, "cpu")["message"]
    wait_for("no nodes", lambda: not nodes(slurm, "cpu") and not nodes(slurm, "gpu"), PATIENCE)
    slurm.control("scancel", job)
    assert slurm.get("nodeset", "cpu")["spec"]["replicas"] == 0


def status(slurm: SlurmInKubernetes, nodeset: str) -> dict[str, Any]:
    found: dict[str, Any] = slurm.get("nodeset", nodeset).get("status", {}).get("autoscaling") or {}
    return found


def changes(slurm: SlurmInKubernetes, nodeset: str) -> list[str]:
    """The changes of replicas that were told, each with its numbers."""
    return [line for line in slurm.events(nodeset) if line.startswith("Autoscaled: ")]


def test_a_stream_of_short_jobs_keeps_its_node(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("stream", None, autoscaling={"maxReplicas": 1, "idleTime": "10m", "scaleDownDelay": "1s"})
    wait_for("its partition", lambda: "stream" in slurm.control("scontrol", "show", "partition", "stream"), PATIENCE)
    first = submit(slurm, "-pstream")
    wait_for("the first job", lambda: finished(slurm, first), PATIENCE)
    pod = slurm.pod_uid("stream-0")
    for _ in range(3):
        job = submit(slurm, "-pstream", seconds=0.2)
        wait_for("a job of the stream", lambda job=job: finished(slurm, job), PATIENCE)  # type: ignore[misc]
    assert slurm.pod_uid("stream-0") == pod
    assert [line for line in changes(slurm, "stream") if "1 -> 0" in line] == []


def test_what_others_set_stays_and_beside_another_autoscaler_nothing_is_changed(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("shared", None, autoscaling={"maxReplicas": 3, "idleTime": "10m", "scaleDownDelay": "10m"})
    wait_for("a first decision", lambda: shown(slurm, "shared").get("reason") == "AsExpected", PATIENCE)
    slurm.scale("shared", 1)
    wait_for("the hand of a person", lambda: shown(slurm, "shared").get("reason") == "ScaledByOthers", PATIENCE)
    target = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "name": "shared"}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    slurm.kubectl.apply(
        [
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "shared", "namespace": slurm.namespace},
                # It raises to its minimum whatever its metrics say.
                "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 2, "metrics": [cpu]},
            }
        ]
    )
    wait_for("the other autoscaler", lambda: slurm.get("nodeset", "shared")["spec"]["replicas"] == 2, PATIENCE)
    wait_for("that it is named", lambda: shown(slurm, "shared").get("reason") == "OtherAutoscaler", PATIENCE)
    job = submit(slurm, "-pshared", "-N3")
    wait_for("a look at the job", lambda: status(slurm, "shared").get("wanted") == 3, PATIENCE)
    assert slurm.get("nodeset", "shared")["spec"]["replicas"] == 2
    assert shown(slurm, "shared")["status"] == "False"
    # But for the first, of a NodeSet that has none.
    assert [line for line in changes(slurm, "shared") if "unset -> 0" not in line] == []
    slurm.control("scancel", job)
    slurm.kube("delete", "hpa/shared", "nodeset/shared", "--wait=false")
