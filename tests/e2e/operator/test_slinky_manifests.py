"""NodeSets of users of Slinky 0.1 and 0.3, on real Slurm: they apply, jobs run, and end before their pods are deleted.

Only the namespace and the images of the manifests are changed; the images are this project's.
"""

from __future__ import annotations

import base64
import secrets
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.installing.plain.deploy import NODES, PlainSlurm
from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(130), pytest.mark.full]

MANIFESTS = Path(__file__).parents[2] / "integration" / "nodeset" / "manifests"
MACHINES = ["node-1", "node-2"]
CLUSTER = "c"
"""What the manifests call their Cluster."""


def manifest(name: str, namespace: str, slurm: str, image: str = "slurmd") -> dict[str, Any]:
    """Return a manifest with an image that can be had here."""
    found: dict[str, Any] = yaml.safe_load((MANIFESTS / name).read_text(encoding="utf-8"))
    found["metadata"]["namespace"] = namespace
    pod = found["spec"]["template"]["spec"]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        container["image"] = f"localhost/slinky/{image}:{slurm}"
        container["imagePullPolicy"] = "IfNotPresent"
    return found


# 0.1: Slurm was installed apart from the operator, whose Cluster was an address and a token.


@pytest.fixture
def elsewhere(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """Slurm by hand, with three nodes of its own, and what the chart of 0.1 put beside it."""
    plain = PlainSlurm(new_slurm.kubectl, new_slurm.slurm)
    instance = SlurmInKubernetes(new_slurm.kubectl, plain.namespace, plain.slurm, CLUSTER)
    new_slurm.made.append(instance)
    plain.apply()
    plain.wait(300)
    plain.kubectl.apply(surroundings(plain))
    return instance


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


@pytest.mark.only_slurm("24.11")
def test_a_nodeset_of_0_1_has_a_node_on_each_node_and_never_a_job_killed(elsewhere: SlurmInKubernetes) -> None:
    slurm, plain = elsewhere, PlainSlurm(elsewhere.kubectl, elsewhere.slurm)
    slurm.kubectl.apply([manifest("slinky-0.1/nodeset-on-every-node.yaml", slurm.namespace, slurm.slurm)])
    everything = dict.fromkeys([*NODES, *MACHINES], "idle")
    wait_for("both nodes", lambda: plain.states() == everything, 240)
    wait_for("both columns", lambda: counts(slurm) == (2, 2), 300)
    found = slurm.run("srun", "-C", "fast", "-N2", "hostname", pod="a-node-1")
    assert sorted(found.split()) == MACHINES

    job = hold(slurm, plain, "node-2")
    slurm.wait_view("a", "node-1", pod="a-node-1")
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


# 0.3: ordinals, and an image whose entrypoint hands its arguments to a shell.


@pytest.fixture
def managed(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with a node that stays."""
    instance = new_slurm("slinky", CLUSTER)
    # Pods of the chart mount a single key from this Secret.
    key = base64.b64encode(secrets.token_bytes(1024)).decode()
    about = {"name": "slurm-auth-key", "namespace": instance.namespace}
    instance.create(auth={"slurmKeyRef": {"name": "slurm-auth-key"}})
    instance.kubectl.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": {"slurm.key": key}}])
    instance.nodeset("stays", 1)
    instance.wait_ready()
    return instance


def test_a_nodeset_of_the_chart_of_0_3_runs_on_an_image_like_slinkys_and_is_deleted_after_its_job(
    managed: SlurmInKubernetes,
) -> None:
    slurm = managed
    slurm.kubectl.apply(surroundings_of_0_3(slurm))
    found = manifest("slinky-0.3/nodeset-of-the-chart.yaml", slurm.namespace, slurm.slurm, "slurmd-entrypoint")
    slurm.kubectl.apply([found])
    slurm.wait_idle(["a-0", "a-1", "stays-0"])
    assert set(slurm.slurmd_pods()) == {"a-0", "a-1", "stays-0"}

    # All that the quotes had around them, and the whole machine, since nothing is limited.
    node = slurm.node("a-0")
    assert (node["AvailableFeatures"], node["Weight"]) == ("a,debug,gpu", "7")
    assert node["CPUTot"] == in_pod(slurm, "a-0", "nproc")
    assert int(node["RealMemory"]) > 512
    assert in_pod(slurm, "a-0", "sh", "-c", f"test -e {ENTRYPOINT_WAS_HERE} || echo past the entrypoint")
    hosts = slurm.run("srun", "-p", "a", "-C", "gpu", "-N2", "hostname", pod="a-0")
    assert sorted(hosts.split()) == ["a-0", "a-1"]

    # Named as the command, the entrypoint is run, and what it hands to its shell reaches slurmd whole.
    slurm.kubectl.apply([through_the_entrypoint(found, "b")])
    slurm.wait_idle(["a-0", "a-1", "b-0", "stays-0"])
    assert slurm.node("b-0")["AvailableFeatures"] == "b,debug,gpu"
    in_pod(slurm, "b-0", "test", "-e", ENTRYPOINT_WAS_HERE)
    # Users can put nothing in the place of what root reads there.
    in_pod(slurm, "b-0", *AS_USER, "sh", "-c", REPLACES_NOTHING)
    assert slurm.run("srun", "-p", "b", "-C", "gpu", "hostname", pod="a-0").strip() == "b-0"
    slurm.kube("delete", "nodeset", "b", "--wait=false")

    job = slurm.hold("a-1")
    slurm.kube("delete", "nodeset", "a", "--cascade=foreground", "--wait=false")
    wait_for("the drain", lambda: "a-1" in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "a-1")
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_idle(["stays-0"])


ENTRYPOINT_WAS_HERE = "/run/entrypoint-was-here"
"""What the entrypoint of the image leaves."""


AS_USER = ("setpriv", "--reuid=2001", "--regid=2001", "--clear-groups")
REPLACES_NOTHING = "test -d /run/slurm && ! mv /run/slurm /run/mine 2> /dev/null && test ! -w /run"


def surroundings_of_0_3(slurm: SlurmInKubernetes) -> list[dict[str, Any]]:
    """What the chart of 0.3 puts beside its NodeSets, but for the key: Services of slurmctld and of the nodes."""
    objects: list[dict[str, Any]] = [
        service("slurm-controller", {"statefulset.kubernetes.io/pod-name": f"{CLUSTER}-controller-0"}, 6817),
        service("slurm-compute", {"app.kubernetes.io/name": "slurmd"}, 6818),
    ]
    for one in objects:
        one["metadata"]["namespace"] = slurm.namespace
    return objects


def through_the_entrypoint(nodeset: dict[str, Any], name: str) -> dict[str, Any]:
    """The same NodeSet under another name, with one node whose slurmd is started by the entrypoint."""
    made: dict[str, Any] = yaml.safe_load(yaml.safe_dump(nodeset))
    made["metadata"]["name"] = name
    label = "nodeset.slinky.slurm.net/name"
    template = made["spec"]["template"]
    for where in (made["metadata"]["labels"], made["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]):
        where[label] = name
    made["spec"]["replicas"] = 1
    template["spec"]["containers"][0]["command"] = ["tini", "--", "entrypoint.sh"]
    return made


def in_pod(slurm: SlurmInKubernetes, pod: str, *argv: str) -> str:
    """Run a command beside slurmd."""
    return slurm.kube("exec", pod, "--container=slurmd", "--", *argv).strip()
