"""A Cluster is recreated under its name while a job runs: no pods, budgets or keys are lost in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed, wait_for
from slinky_api.labels import ANNOTATION_SECRET_SERVER
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

UID = "cluster.slinky.slurm.net/uid"
EXTERNAL = "there"
NO_FINALIZERS = json.dumps({"metadata": {"finalizers": None}})


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with two nodes."""
    instance = new_slurm("succession")
    instance.create()
    instance.nodeset("compute", 2)
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


def refuses_eviction(slurm: SlurmInKubernetes, pod: str) -> bool:
    """Whether `kubectl drain` would leave a pod where it is."""
    try:
        slurm.evict(pod)
    except KubectlFailed as error:
        return "disruption budget" in str(error)
    return False


def uid(slurm: SlurmInKubernetes, kind: str, name: str) -> str:
    return str(slurm.get(kind, name)["metadata"]["uid"])


def owners(slurm: SlurmInKubernetes, kind: str) -> set[str]:
    """Uids of the Clusters that objects of a kind say they belong to."""
    items = slurm.get(kind, f"--selector={UID}")["items"]
    return {item["metadata"]["labels"][UID] for item in items}


def addresses(slurm: SlurmInKubernetes, service: str) -> set[str]:
    """Pods that a Service gives a name to."""
    slices = slurm.get("endpointslices", f"--selector=kubernetes.io/service-name={service}")["items"]
    return {one["targetRef"]["name"] for item in slices for one in item.get("endpoints") or ()}


def is_gone(slurm: SlurmInKubernetes, name: str) -> bool:
    return name not in {item["metadata"]["name"] for item in slurm.get("clusters.slinky.slurm.net")["items"]}


def ready_nodes(slurm: SlurmInKubernetes, nodeset: str) -> int:
    return int(slurm.get("nodeset", nodeset).get("status", {}).get("readyReplicas", 0))


def test_a_cluster_without_its_finalizer_is_followed_by_the_next(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold("compute-0")
    pod, slurmctld = slurm.pod_uid("compute-0"), uid(slurm, "pod", "slurm-controller-0")
    keys = slurm.get("secret", "slurm-auth-slurm")["data"]
    former = uid(slurm, "cluster", "slurm")
    slurm.kube("delete", "cluster", "slurm", "--wait=false")
    wait_for(
        "what it waits for", lambda: "compute-0" in slurm.condition("cluster", "slurm", "Deleting")["message"], 120
    )
    slurm.kube("patch", "cluster", "slurm", "--type=merge", f"--patch={NO_FINALIZERS}")
    wait_for("the Cluster's end", lambda: is_gone(slurm, "slurm"), 120)
    assert refuses_eviction(slurm, "compute-0")

    slurm.create()
    assert refuses_eviction(slurm, "compute-0")
    slurm.wait_ready()
    wait_for("both nodes", lambda: ready_nodes(slurm, "compute") == 2, PATIENCE)
    assert slurm.job_state(job) == "RUNNING"
    assert refuses_eviction(slurm, "compute-0")
    assert (slurm.pod_uid("compute-0"), uid(slurm, "pod", "slurm-controller-0")) == (pod, slurmctld)
    assert slurm.get("secret", "slurm-auth-slurm")["data"] == keys
    now = uid(slurm, "cluster", "slurm")
    assert now != former
    for kind in ("statefulsets", "deployments", "services", "configmaps", "poddisruptionbudgets", "secrets"):
        assert owners(slurm, kind) == {now}, kind
    wait_for("the pods' labels", lambda: owners(slurm, "pods") == {now}, PATIENCE)
    wait_for("their names", lambda: addresses(slurm, "slurm-nodes") == {"compute-0", "compute-1"}, PATIENCE)
    slurm.wait_event("slurm", "Adopted", "PodDisruptionBudget slurm-jobs", "Secret slurm-auth-slurm")
    slurm.wait_event("compute", "PodsAdopted", "compute-0")
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")


def test_the_next_cluster_serves_its_nodesets_as_the_former_did(slurm: SlurmInKubernetes) -> None:
    slurm.wait_idle(["compute-0", "compute-1"])
    job = slurm.hold("compute-0")
    patch = json.dumps({"spec": {"extraConf": "KillWait=31"}})
    slurm.kube("patch", "cluster", "slurm", "--type=merge", f"--patch={patch}")
    wait_for("the new value", lambda: "= 31 sec" in slurm.control("scontrol", "show", "config"), PATIENCE)
    slurm.scale("compute", 1)
    slurm.wait_gone("compute-1")
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")


def test_a_cluster_elsewhere_applied_again_keeps_its_pods_and_leaves_nothing_in_the_end(
    slurm: SlurmInKubernetes,
) -> None:
    spec: dict[str, Any] = {
        "server": f"http://slurm-restapi.{slurm.namespace}.svc:6820",
        "auth": {
            "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.jwks"},
            "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
        },
        "controller": {"external": {"host": f"slurm-controller-0.slurm-controller.{slurm.namespace}.svc"}},
    }
    meant = f"{ANNOTATION_SECRET_SERVER}={spec['server']}"
    slurm.kube("annotate", "secret", "slurm-auth-slurm", "slurm-auth-jwt", meant)
    there = slurm.object("Cluster", EXTERNAL, spec)
    slurm.kubectl.apply([there])
    small = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    nodeset = {"clusterName": EXTERNAL, "replicas": 1, "image": slurm.image("slurmd"), "resources": small}
    slurm.kubectl.apply([slurm.object("NodeSet", "guest", nodeset)])
    slurm.wait_idle_nodes("guest-0")
    job, pod = slurm.hold("guest-0", partition="all"), slurm.pod_uid("guest-0")

    slurm.kube("delete", "cluster", EXTERNAL)
    assert refuses_eviction(slurm, "guest-0")
    wait_for(
        "what the NodeSet says",
        lambda: slurm.condition("nodeset", "guest", "Degraded")["reason"] in {"ClusterNotFound", "ClusterGone"},
        PATIENCE,
    )
    slurm.kubectl.apply([there])
    slurm.wait_event(EXTERNAL, "Adopted", f"Service {EXTERNAL}-nodes", f"PodDisruptionBudget {EXTERNAL}-jobs")
    assert refuses_eviction(slurm, "guest-0")
    wait_for("the node", lambda: ready_nodes(slurm, "guest") == 1, PATIENCE)
    assert (slurm.job_state(job), slurm.pod_uid("guest-0")) == ("RUNNING", pod)
    slurm.release(job, "guest-0")
    slurm.wait_job(job, "COMPLETED")

    slurm.kube("delete", "nodeset", "guest")
    slurm.kube("delete", "cluster", EXTERNAL)

    def nothing_is_left() -> bool:
        found = slurm.get("services,poddisruptionbudgets")["items"]
        return not [one for one in found if one["metadata"]["name"].startswith(f"{EXTERNAL}-")]

    wait_for("the end of what was for its pods", nothing_is_left, PATIENCE)
