"""NodeSets as users of Slinky 0.1 and 0.3 have them, on real Slurm: they apply, jobs run, and end before their pods go.

Nothing of the manifests is changed but the namespace and the images, which are this project's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localkube.kubectl import Kubectl, wait_for
from hack.operator_install import Installation
from hack.plain.deploy import NODES, PlainSlurm
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

MANIFESTS = Path(__file__).parents[2] / "integration" / "nodeset" / "manifests"
MACHINES = ["node-1", "node-2"]
CLUSTER = "c"
"""What the manifests call their Cluster."""


def manifest(name: str, namespace: str, slurm: str) -> dict[str, Any]:
    """Return a manifest with images that can be had here."""
    found: dict[str, Any] = yaml.safe_load((MANIFESTS / name).read_text(encoding="utf-8"))
    found["metadata"]["namespace"] = namespace
    pod = found["spec"]["template"]["spec"]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        container["image"] = f"localhost/slinky/slurmd:{slurm}"
        container["imagePullPolicy"] = "IfNotPresent"
    return found


# 0.1: Slurm was installed apart from the operator, whose Cluster was an address and a token.


@pytest.fixture
def elsewhere(kubectl: Kubectl, operator: Installation) -> Iterator[SlurmInKubernetes]:
    """Slurm by hand, with three nodes of its own, and what the chart of 0.1 put beside it."""
    plain = PlainSlurm(kubectl, "24.11")
    plain.apply()
    try:
        plain.wait(300)
        kubectl.apply(surroundings(plain))
        yield SlurmInKubernetes(kubectl, plain.namespace, plain.slurm, CLUSTER)
    except BaseException:
        logging.getLogger(__name__).exception("the operator's log:\n%s", operator.logs()[-20000:])
        raise
    finally:
        plain.delete()


def surroundings(plain: PlainSlurm) -> list[dict[str, Any]]:
    """Services, Secrets and the Cluster under the names that the manifest of 0.1 has for them."""
    key = plain.kubectl.get("secret", "slurm-keys", f"--namespace={plain.namespace}")["data"]["slurm.key"]
    token = plain.exec("slurmctld-0", "scontrol", "token", "username=slurm", "lifespan=infinite")
    cluster = {
        "server": f"http://slurmrestd.{plain.namespace}.svc:6820",
        "token": {"secretRef": "slurm-token-slurm"},
    }
    objects: list[dict[str, Any]] = [
        service("slurm-controller", {"app": "slurmctld"}, 6817),
        service("slurm-compute", {"app.kubernetes.io/name": "slurmd"}, 6818),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "slurm-auth-key"}, "data": {"slurm.key": key}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "slurm-token-slurm"},
            "stringData": {"auth-token": token.strip().partition("=")[2]},
        },
        {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": CLUSTER},
            "spec": cluster,
        },
    ]
    for one in objects:
        one["metadata"]["namespace"] = plain.namespace
    return objects


def service(name: str, selector: dict[str, str], port: int) -> dict[str, Any]:
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_a_nodeset_of_0_1_has_a_node_on_each_node_and_never_a_job_killed(elsewhere: SlurmInKubernetes) -> None:
    slurm, plain = elsewhere, PlainSlurm(elsewhere.kubectl, elsewhere.slurm)
    slurm.kubectl.apply([manifest("slinky-0.1/nodeset-on-every-node.yaml", slurm.namespace, slurm.slurm)])
    everything = dict.fromkeys([*NODES, *MACHINES], "idle")
    wait_for("both nodes", lambda: plain.states() == everything, 240)
    wait_for("both columns", lambda: counts(slurm) == (2, 2), 300)
    found = slurm.run("srun", "-C", "fast", "-N2", "hostname", pod="a-node-1")
    assert sorted(found.split()) == MACHINES

    job = hold(slurm, plain, "node-2")
    slurm.wait_seen("a", slurmAllocated=1)
    slurm.scale("a", 1)
    wait_for("the idle one's end", lambda: "node-1" not in plain.states(), 180)
    slurm.scale("a", 0)
    wait_for("the drain", lambda: plain.states().get("node-2", "").startswith("drain"), 120)
    assert state(plain, job) == "RUNNING"
    slurm.release(job, "a-node-2")
    wait_for("the job's end", lambda: state(plain, job) == "COMPLETED", 180)
    wait_for("its node's end", lambda: "node-2" not in plain.states(), 180)

    # Their hook marks the node as its pod ends; the next pod of that name starts afresh all the same.
    slurm.scale("a", 2)
    wait_for("both nodes again", lambda: plain.states() == everything, 240)
    found = slurm.run("srun", "-w", "node-1,node-2", "hostname", pod="a-node-1")
    assert sorted(found.split()) == MACHINES
    assert set(NODES) <= set(plain.pods())


def counts(slurm: SlurmInKubernetes) -> tuple[int, int]:
    """What the columns of 0.1 show."""
    status = slurm.get("nodeset", "a")["status"]
    return status.get("currentNumberScheduled", 0), status.get("numberAvailable", 0)


def hold(slurm: SlurmInKubernetes, plain: PlainSlurm, node: str) -> str:
    """Start a job on a node that runs until it is released."""
    script = "--wrap=until [ -e /tmp/released-$SLURM_JOB_ID ]; do sleep 0.1; done"
    job = slurm.run("sbatch", "--parsable", "--output=/dev/null", "-w", node, script, pod=f"a-{node}").strip()
    wait_for(f"job {job} RUNNING", lambda: state(plain, job) == "RUNNING", 180)
    return job


def state(plain: PlainSlurm, job: str) -> str:
    words = plain.exec("slurmctld-0", "scontrol", "--oneliner", "show", "job", job).split()
    return next(word.partition("=")[2] for word in words if word.startswith("JobState="))


# 0.3: ordinals.


@pytest.fixture
def managed(kubectl: Kubectl, operator: Installation) -> Iterator[SlurmInKubernetes]:
    """A Cluster with a node that stays."""
    instance = SlurmInKubernetes(kubectl, fresh_namespace("slinky"), "26.05", CLUSTER)
    instance.create()
    instance.nodeset("stays", 1)
    try:
        instance.wait_ready()
        yield instance
    except BaseException:
        logging.getLogger(__name__).exception("the operator's log:\n%s", operator.logs()[-20000:])
        raise
    finally:
        instance.abandon()


def test_a_nodeset_of_0_3_has_ordinals_and_is_deleted_after_its_job(managed: SlurmInKubernetes) -> None:
    slurm = managed
    slurm.kubectl.apply([manifest("slinky-0.3/nodeset.yaml", slurm.namespace, slurm.slurm)])
    slurm.wait_idle(["a-0", "a-1", "stays-0"])
    assert set(slurm.slurmd_pods()) == {"a-0", "a-1", "stays-0"}
    found = slurm.run("srun", "-p", "a", "-C", "debug", "-N2", "hostname", pod="a-0")
    assert sorted(found.split()) == ["a-0", "a-1"]
    job = slurm.hold("a-1")
    slurm.kube("delete", "nodeset", "a", "--cascade=foreground", "--wait=false")
    wait_for("the drain", lambda: "a-1" in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "a-1")
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle(["stays-0"])
