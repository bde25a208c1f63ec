"""NodeSets, Clusters and namespaces are deleted: jobs end first, then pods, records, daemons and objects."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(170)]

CASCADES = ["background", "foreground", "orphan"]
HELD = "/tmp/held"
"""As long as this file is in a pod of NodeSet `last`, the pod does not end."""

WAITS_WHEN_DELETED = {
    "spec": {
        # Long enough for all that is looked at while the file is there.
        "terminationGracePeriodSeconds": 600,
        "containers": [
            {
                "name": "slurmd",
                "lifecycle": {
                    "preStop": {"exec": {"command": ["sh", "-c", f"while [ -e {HELD} ]; do sleep 0.1; done"]}}
                },
            }
        ],
    }
}


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with a NodeSet of one node for each way to delete one, and one that stays to the last."""
    instance = new_slurm("deletion")
    instance.create()
    for name in CASCADES:
        instance.nodeset(name, 1)
    instance.nodeset("last", 1, template=WAITS_WHEN_DELETED)
    instance.wait_ready()
    instance.wait_idle(f"{name}-0" for name in (*CASCADES, "last"))
    return instance


def wait_draining(slurm: SlurmInKubernetes, node: str, why: str) -> None:
    """Wait until Slurm drains a node for a reason of ours that has these words."""
    wait_for(
        f"{node} draining",
        lambda: node in slurm.drained_nodes() and why in slurm.reason(node),
        120,
    )
    assert slurm.reason(node).startswith("slurm-operator: ")


def names(slurm: SlurmInKubernetes, kind: str, *options: str) -> set[str]:
    return {item["metadata"]["name"] for item in slurm.get(kind, *options)["items"]}


def is_untouched(slurm: SlurmInKubernetes, pod: str) -> bool:
    return "deletionTimestamp" not in slurm.get("pod", pod)["metadata"]


def delete_guard(slurm: SlurmInKubernetes, nodeset: str) -> None:
    """Delete the second owner of a NodeSet's pods by hand, and wait until they have another."""
    (guard,) = names(slurm, "configmaps", f"--selector=nodeset.slinky.slurm.net/name={nodeset}")
    before = slurm.get("configmap", guard)["metadata"]["uid"]
    slurm.kube("delete", "configmap", guard)

    def has_another() -> bool:
        owners = slurm.get("pod", f"{nodeset}-0")["metadata"]["ownerReferences"]
        held_by = {one["uid"] for one in owners if one["kind"] == "ConfigMap"}
        return bool(held_by - {before}) and names(slurm, "configmaps") >= {guard}

    wait_for(f"a new guard of {nodeset}", has_another, 120)


@pytest.mark.parametrize("cascade", CASCADES)
def test_a_deleted_nodeset_goes_after_its_job(slurm: SlurmInKubernetes, cascade: str) -> None:
    node = f"{cascade}-0"
    job = slurm.hold(node)
    delete_guard(slurm, cascade)
    slurm.kube("delete", "nodeset", cascade, f"--cascade={cascade}", "--wait=false")
    wait_draining(slurm, node, "deletion")
    wait_for(
        "the job's name in the condition",
        lambda: job in slurm.condition("nodeset", cascade, "Draining").get("message", ""),
        120,
    )
    assert slurm.job_state(job) == "RUNNING"
    assert is_untouched(slurm, node)
    slurm.release(job, node)
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_gone(node)
    wait_for("the NodeSet's end", lambda: cascade not in names(slurm, "nodesets"), 120)
    guards = names(slurm, "configmaps", f"--selector=nodeset.slinky.slurm.net/name={cascade}")
    assert guards == set()
    slurm.wait_ready()


def test_a_deleted_cluster_goes_after_its_nodesets_jobs(slurm: SlurmInKubernetes) -> None:
    node = "last-0"
    slurm.kube("exec", node, "--container=slurmd", "--", "touch", HELD)
    job = slurm.hold(node)
    daemons = {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in slurm.get("pods", "--selector=app.kubernetes.io/component in (controller,restapi)")["items"]
    }
    assert len(daemons) == 2
    slurm.kube("delete", "cluster", slurm.name, "--wait=false")
    wait_draining(slurm, node, "cluster")
    assert slurm.job_state(job) == "RUNNING"
    assert is_untouched(slurm, node)
    slurm.release(job, node)
    slurm.wait_job(job, "COMPLETED")
    # The pod is held here: one that takes the daemons away too early has all the time to do so.
    wait_for("the pod's end to begin", lambda: not is_untouched(slurm, node), 120)
    wait_for("what the Cluster waits for", lambda: waits_for(slurm, node), 120)
    for name, uid in daemons.items():
        pod = slurm.get("pod", name)["metadata"]
        assert pod["uid"] == uid
        assert "deletionTimestamp" not in pod
    slurm.kube("exec", node, "--container=slurmd", "--", "rm", HELD)
    wait_for("the Cluster's end", lambda: names(slurm, "clusters.slinky.slurm.net") == set(), 240)
    wait_for("the end of all pods", lambda: names(slurm, "pods") == set(), 240)
    # What the user wrote and did not delete is there, and says what it lacks.
    wait_for(
        "the condition of the NodeSet",
        lambda: slurm.condition("nodeset", "last", "Degraded").get("reason") in {"ClusterNotFound", "ClusterGone"},
        120,
    )


def waits_for(slurm: SlurmInKubernetes, pod: str) -> bool:
    """Whether the Cluster says that its deletion waits for a pod."""
    found = slurm.condition("cluster", slurm.name, "Deleting")
    return found.get("status") == "True" and pod in found["message"]


def test_a_namespace_deleted_and_made_again_works_at_once(slurm: SlurmInKubernetes) -> None:
    slurm.create()
    slurm.wait_ready()
    slurm.wait_idle(["last-0"])
    slurm.delete()
    slurm.create()
    slurm.nodeset("last", 1)
    slurm.wait_ready()
    slurm.wait_idle(["last-0"])
    assert slurm.run("srun", "-p", "last", "hostname", pod="last-0").strip() == "last-0"
