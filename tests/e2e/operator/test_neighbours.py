"""What NodeSets share without affecting each other: Nodes, a name prefix, the name of a node outside Kubernetes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import pairwise

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support import audit
from tests.support.nodesets import host_of, uids
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.full,
    pytest.mark.long,
]

OUTSIDE = "node-1"
"""A node of slurm.conf, called like one of the Nodes of the local cluster."""

STATIC = {"name": OUTSIDE, "config": "NodeAddr=outside CPUs=1 RealMemory=64"}
APART = {
    "spec": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"nodeset.slinky.slurm.net/name": "pinned"}},
                    }
                ]
            }
        }
    }
}
"""One pod on a Node."""

LASTING = 30.0


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> SlurmInKubernetes:
    """A Cluster with a node of its own in slurm.conf, whose slurmd somebody else runs."""
    instance = new_slurm("neighbours")
    service, pod = outside(instance)
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": instance.namespace}}, service])
    # Jobs are to be there when they are counted, however long that takes.
    instance.create(nodes=[STATIC], partitions=[{"name": "metal", "nodes": [OUTSIDE]}], extraConf="MinJobAge=3600")
    instance.run_pods(pod)
    instance.nodeset("a", 2)
    instance.nodeset("a-b", 2)
    instance.wait_ready()
    instance.wait_idle([OUTSIDE, "a-0", "a-1", "a-b-0", "a-b-1"])
    return instance


def outside(slurm: SlurmInKubernetes) -> tuple[dict[str, object], dict[str, object]]:
    """A slurmd that the operator knows nothing of: a pod of nobody, behind an address that is there from the first.

    Returns the Service, which is to be there before the Cluster, and the pod.
    """
    named = {"app": "outside"}
    server = f"{slurm.name}-controller-0.{slurm.name}-controller.{slurm.namespace}.svc:6817"
    metadata = {"name": "outside", "namespace": slurm.namespace}
    key = {"secretName": f"{slurm.name}-auth-slurm", "defaultMode": 0o400}
    container = {
        "name": "slurmd",
        "image": slurm.image("slurmd"),
        "command": ["slurmd", "-D", "-N", OUTSIDE, "--conf-server", server],
        "volumeMounts": [
            {"name": "key", "mountPath": "/etc/slurm", "readOnly": True},
            {"name": "run", "mountPath": "/run"},
        ],
    }
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": named, "ports": [{"port": 6818}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "labels": named},
            "spec": {
                "hostname": OUTSIDE,
                "containers": [container],
                "volumes": [{"name": "key", "secret": key}, {"name": "run", "emptyDir": {}}],
            },
        },
    )


def test_a_node_of_slurm_conf_is_left_alone_and_said_to_be_in_the_way(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold(OUTSIDE, pod="outside", partition="metal")
    before = record(slurm)
    # One node on each Node would have that name; one with ordinals could come to have it.
    slurm.nodeset("each", None)
    slurm.nodeset("node", 1)
    slurm.wait_idle_nodes("node-2")
    wait_for("the condition of the one", lambda: OUTSIDE in conflict(slurm, "each"), PATIENCE)
    wait_for("the condition of the other", lambda: OUTSIDE in conflict(slurm, "node"), PATIENCE)
    assert set(uids(slurm, "each")) == {"each-node-2"}
    assert uids(slurm, "node") == {}
    assert slurm.run("srun", "-p", "each", "hostname", pod="each-node-2").strip() == "node-2"

    for name in ("each", "node"):
        slurm.kube("delete", "nodeset", name, timeout=PATIENCE)
    wait_for("the end of what was made", lambda: "node-2" not in slurm.states(), PATIENCE)
    # slurmctld may be about to ask it again whether it is there.
    wait_for("the record as it was", lambda: record(slurm) == before, PATIENCE)
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "outside")
    slurm.wait_job(job, "COMPLETED")


def conflict(slurm: SlurmInKubernetes, nodeset: str) -> str:
    """What a NodeSet says of a name that somebody else has; empty if it says nothing."""
    found = slurm.condition("nodeset", nodeset, "NameConflict")
    return str(found["message"]) if found.get("status") == "True" else ""


def record(slurm: SlurmInKubernetes) -> dict[str, str]:
    """What of the node of slurm.conf anybody could have changed."""
    words = slurm.control("scontrol", "--oneliner", "show", "node", OUTSIDE).split()
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    kept = ("NodeName", "NodeAddr", "State", "Reason", "Comment", "Extra", "InstanceId", "ActiveFeatures")
    return {name: fields[name] for name in kept if name in fields}


def test_a_number_that_changes_each_second_costs_no_job_and_no_neighbour(
    slurm: SlurmInKubernetes, cluster: Cluster
) -> None:
    neighbours, theirs = uids(slurm, "a-b"), slurm.hold("a-b-1")
    before = audit.made_pods(cluster.paths.audit_log, slurm.namespace)
    rng = random.Random(7)  # noqa: S311 - nobody is to be surprised
    numbers, jobs, end = [2], [], time.monotonic() + LASTING
    while time.monotonic() < end:
        numbers.append(rng.randint(0, 4))
        slurm.scale("a", numbers[-1])
        jobs.append(submit(slurm))
        # A pace, not a proof.
        time.sleep(1)
    numbers.append(3)
    slurm.scale("a", numbers[-1])
    wait_for("three nodes", lambda: settled(slurm, 3), PATIENCE)
    wait_for("the jobs' ends", lambda: completed(fields_of_jobs(slurm)) >= set(jobs), PATIENCE)
    # Put back into the queue would mean that a pod was taken from under it.
    assert [one["JobId"] for one in fields_of_jobs(slurm) if one["Restarts"] != "0"] == []
    # Where every raise were answered by new pods only, it would take as many as the numbers went up; none takes more.
    made = audit.made_pods(cluster.paths.audit_log, slurm.namespace) - before
    raises = sum(max(0, after - number) for number, after in pairwise(numbers))
    assert sum(made.values()) <= raises
    assert {name.rpartition("-")[0] for name in made} <= {"a"}

    assert uids(slurm, "a-b") == neighbours
    slurm.kube("delete", "nodeset", "a", timeout=PATIENCE)
    wait_for("the end of its records", lambda: set(slurm.states()) == {OUTSIDE, "a-b-0", "a-b-1"}, PATIENCE)
    slurm.scale("a-b", 3)
    slurm.wait_idle_nodes("a-b-2")
    assert {name: uid for name, uid in uids(slurm, "a-b").items() if name in neighbours} == neighbours
    assert slurm.job_state(theirs) == "RUNNING"
    slurm.release(theirs, "a-b-1")
    slurm.wait_job(theirs, "COMPLETED")
    slurm.kube("delete", "nodeset", "a-b", timeout=PATIENCE)
    slurm.wait_idle([OUTSIDE])


def submit(slurm: SlurmInKubernetes) -> str:
    """Submit a short job to NodeSet `a` from a pod that no scaling takes away, and return its id."""
    wrap = ("--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 2")
    return slurm.control("sbatch", "--parsable", "-p", "a", *wrap).strip()


def fields_of_jobs(slurm: SlurmInKubernetes) -> list[dict[str, str]]:
    lines = slurm.control("scontrol", "--oneliner", "show", "jobs").splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]


def completed(jobs: Iterable[dict[str, str]]) -> set[str]:
    return {one["JobId"] for one in jobs if one["JobState"] == "COMPLETED"}


def settled(slurm: SlurmInKubernetes, replicas: int) -> bool:
    obj = slurm.get("nodeset", "a")
    status = obj["status"]
    return bool(
        status["observedGeneration"] == obj["metadata"]["generation"]
        and status["replicas"] == status["readyReplicas"] == replicas == len(uids(slurm, "a"))
    )


@pytest.mark.alone
def test_an_ordinal_that_is_pinned_comes_back_to_its_node(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("pinned", 2, pinToNode=True, template=APART)
    slurm.wait_idle_nodes("pinned-0", "pinned-1")
    before = hosts(slurm, "pinned")
    assert sorted(before.values()) == ["node-1", "node-2"]
    wait_for(
        "the Nodes written down",
        lambda: slurm.get("nodeset", "pinned")["status"].get("ordinalToNode") == by_ordinal(before),
        PATIENCE,
    )
    job = slurm.hold("pinned-0")
    slurm.scale("pinned", 0)
    wait_for("the idle one's end", lambda: "pinned-1" not in slurm.states(), PATIENCE)
    slurm.release(job, "pinned-0")
    slurm.wait_job(job, "COMPLETED")
    wait_for("no node left", lambda: not {"pinned-0", "pinned-1"} & set(slurm.states()), PATIENCE)

    slurm.kubectl("cordon", before["pinned-0"])
    try:
        slurm.scale("pinned", 1)
        # The other Node would take it.
        wait_for("pinned-0 waiting for its Node", lambda: is_unschedulable(slurm, "pinned-0"), PATIENCE)
        slurm.scale("pinned", 2)
        slurm.wait_idle_nodes("pinned-1")
    finally:
        slurm.kubectl("uncordon", before["pinned-0"])
    slurm.wait_idle_nodes("pinned-0", "pinned-1")
    assert hosts(slurm, "pinned") == before
    found = slurm.run("srun", "-p", "pinned", "-N2", "hostname", pod="pinned-0")
    assert sorted(found.split()) == ["pinned-0", "pinned-1"]


def is_unschedulable(slurm: SlurmInKubernetes, pod: str) -> bool:
    conditions = slurm.slurmd_pods().get(pod, {}).get("status", {}).get("conditions", [])
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def hosts(slurm: SlurmInKubernetes, nodeset: str) -> dict[str, str]:
    """The Node of each pod; empty where it has none."""
    return {name: host_of(slurm, name) for name in uids(slurm, nodeset)}


def by_ordinal(found: dict[str, str]) -> dict[str, str]:
    return {name.rpartition("-")[2]: host for name, host in found.items()}
