"""Partitions as Nodes: pods that Kubernetes binds to them run as jobs of Slurm, and are shown as pods are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hack.installing.operator import CHART, NAMESPACE, RELEASE, Installation
from hack.localkube.kubectl import wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from slinky_api import labels
from slinky_api.sylabs import wlm
from tests.support import image_registry
from tests.support.job_namespace import JobNamespace
from tests.support.slurm_in_kubernetes import PATIENCE, RELEASED, NewSlurm, SlurmInKubernetes

# The operator is upgraded with rights on Nodes, and there are more Nodes than machines.
pytestmark = [pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.long(170)]

RIGHTS = "slurm-virtual-nodes"
HOST = "minikube"
NODES = ["compute-0", "compute-1", "compute-2"]
NODE, DENIED = f"slurm-{HOST}-cpu", f"slurm-{HOST}-denied"
TOLERATION = {"key": "virtual-kubelet.io/provider", "operator": "Equal", "value": "wlm", "effect": "NoSchedule"}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": f"wlm.sylabs.io/{name}", "operator": "Gt", "values": ["0"]}
                        for name in ("nodes", "wall-time", "mem-per-node", "cpu-per-node")
                    ]
                }
            ]
        }
    }
}
"""What wlm-operator asked of a Node for a script that needs some of each."""

HELLO = {
    "batch": '#!/bin/sh\n#SBATCH --nodes=1\necho "Hello"\n',
    "nodeSelector": {"kubernetes.io/hostname": "slurm-minikube-cpu"},
}
"""The example hello of wlm-operator, as it is."""

PARAMETERS = "virtual-node.slinky.slurm.net/parameters"
SCRIPT = "virtual-node.slinky.slurm.net/script"
PASSWD = "alice:x:2001:2001::/home/alice:/bin/sh\n"
HELD = f"echo begun; until [ -e {RELEASED}$SLURM_JOB_ID ]; do sleep 0.1; done; echo over"
"""A program that runs until its job is released."""

LOGS = ("logs", "--insecure-skip-tls-verify-backend")
"""The API server of the tests verifies certificates of kubelets, and the operator has made its own."""


class Physics(JobNamespace):
    """A namespace with pods that are alice's jobs."""

    def run(self, name: str, *command: str, node: str = NODE, **container: Any) -> None:
        """Create a pod that Kubernetes binds to a virtual Node."""
        self.create(name, pod_spec(*command, node=node, **container))

    def create(self, name: str, spec: Mapping[str, Any], **annotations: str) -> None:
        """Create a pod."""
        about = {"name": name, "namespace": self.namespace, "annotations": annotations}
        self.slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}])

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod."""
        return self.kubectl.get("--namespace", self.namespace, "pod", name)

    def wait_phase(self, name: str, phase: str) -> dict[str, Any]:
        """Wait for the phase of a pod, and return its status."""
        wait_for(f"pod {name} {phase}", lambda: self.pod(name)["status"].get("phase") == phase, PATIENCE)
        status: dict[str, Any] = self.pod(name)["status"]
        return status

    def job_of(self, name: str) -> str:
        """Return the id of the job of a pod that has run, or runs."""
        (container,) = self.pod(name)["status"]["containerStatuses"]
        return str(container["containerID"]).removeprefix("slurm://")

    def release(self, name: str) -> None:
        """Let the job of a pod end."""
        job = self.job_of(name)
        self.slurm.release(job, self.slurm.job(job)["NodeList"])


def pod_spec(*command: str, node: str = NODE, **container: Any) -> dict[str, Any]:
    """The spec of a pod that runs a program of the nodes."""
    one = {"name": "main", "image": "no-image", **({"command": list(command)} if command else {}), **container}
    return {
        "restartPolicy": "Never",
        "nodeSelector": {"type": "virtual-kubelet", "kubernetes.io/hostname": node},
        "affinity": AFFINITY,
        "tolerations": [TOLERATION],
        "containers": [one],
    }


@pytest.fixture(scope="module")
def physics(new_slurm: NewSlurm, operator: Installation) -> Iterator[Physics]:
    """A Cluster with two virtual Nodes, of which the namespace is granted one, and the operator that may have them."""
    slurm = new_slurm("virtual")
    namespace = f"{slurm.namespace}-physics"
    consent = {labels.ANNOTATION_SYLABS_JOBS: f"{slurm.namespace}/{slurm.name}"}
    owned = {"name": namespace, "annotations": consent}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": owned}])
    chart = str(PROJECT / "helm" / RIGHTS)
    bounds = (f"--set=policy.hosts={{{HOST}}}", f"--set=tenants={{{namespace}}}")
    operator.helm("upgrade", "--install", RIGHTS, chart, *bounds)
    set_clusters(operator, f'["{slurm.namespace}/{slurm.name}"]')
    tenant = {"namespaces": [namespace], "user": "alice", "uid": 2001, "gid": 2001, "partitions": ["cpu"]}
    slurm.create(
        identity={"passwd": {"configMapRef": {"name": "users"}}},
        containers={},
        jobs={
            "tenants": [tenant],
            "sylabs": {},
            "virtualNodes": {"host": HOST, "partitions": ["cpu", "denied"], "sylabsPods": True},
        },
        partitions=[{"name": name, "nodeSets": ["compute"]} for name in ("cpu", "denied")],
    )
    about = {"name": "users", "namespace": slurm.namespace}
    users = {"passwd": PASSWD, "group": "alice:x:2001:\n", "local.conf": image_registry.TRUSTED}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": users}])
    slurm.kubectl.apply([claim(slurm.namespace, "output")])
    slurm.nodeset(
        "compute",
        3,
        image=slurm.image("slurmd-oci"),
        containers="Rootless",
        jobLogs={},
        template=image_registry.beside_slurmd("users", "output"),
    )
    slurm.wait_ready()
    slurm.wait_idle(NODES)
    team = Physics(slurm, namespace)
    account = ("get", "serviceaccounts", "--output=name")
    for one in (team, slurm):
        wait_for("the account", lambda one=one: "serviceaccount/default" in one.kube(*account), PATIENCE)  # type: ignore[misc]
    for node in (NODE, DENIED):
        wait_for(f"{node} ready", lambda node=node: is_ready(slurm, node), PATIENCE)  # type: ignore[misc]
    yield team
    # Pods first: only the operator takes its finalizer away. Then the Nodes, which only it removes in order.
    slurm.kubectl("delete", "namespace", namespace, "--wait", timeout=2 * PATIENCE)
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", '--patch={"spec":{"jobs":{"virtualNodes":null}}}')
    wait_for("the end of virtual Nodes", lambda: not virtual_nodes(slurm), PATIENCE)
    set_clusters(operator, "[]")
    operator.helm("uninstall", RIGHTS, "--wait")


def set_clusters(operator: Installation, clusters: str) -> None:
    """Say which Clusters may have virtual Nodes."""
    setting = f"--set-json=virtualNodes.clusters={clusters}"
    operator.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", setting, "--wait", "--timeout=300s")


def claim(namespace: str, name: str) -> dict[str, Any]:
    """A claim on what the default StorageClass provisions, which all Nodes of the tests share."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    about = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def virtual_nodes(slurm: SlurmInKubernetes) -> set[str]:
    """Names of the virtual Nodes."""
    items = slurm.kubectl.get("nodes", "--selector=type=virtual-kubelet")["items"]
    return {node["metadata"]["name"] for node in items}


def is_ready(slurm: SlurmInKubernetes, node: str) -> bool:
    """Whether Kubernetes takes a Node for ready."""
    conditions = slurm.kubectl.get("node", node)["status"].get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def jobs_named(slurm: SlurmInKubernetes, name: str) -> list[str]:
    """States of all jobs of that name."""
    return slurm.control("squeue", "--noheader", "--states=all", f"--name={name}", "--format=%T").split()


def wait_logs(physics: Physics, name: str, wanted: str) -> None:
    """Wait until the output of a pod is that."""
    wait_for(f"the output of {name}", lambda: physics.kube(*LOGS, name) == wanted, PATIENCE)


def test_partitions_are_nodes_that_daemonsets_keep_off(physics: Physics) -> None:
    slurm = physics.slurm
    assert virtual_nodes(slurm) == {NODE, DENIED}
    node = slurm.kubectl.get("node", NODE)
    assert node["metadata"]["labels"]["wlm.sylabs.io/partition"] == "cpu"
    assert [taint["key"] for taint in node["spec"]["taints"]] == [TOLERATION["key"]]
    kinds = ("VirtualNodesReady", "KubeletApiReachable")
    wait_for(
        "the Cluster's word",
        lambda: [slurm.condition("cluster", slurm.name, kind)["status"] for kind in kinds] == ["True", "True"],
        PATIENCE,
    )
    template = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": slurm.image("slurmd"), "command": ["sleep", "600"]}],
        "terminationGracePeriodSeconds": 0,
    }
    about = {"name": "agent", "namespace": physics.namespace}
    labels = {"app": "agent"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }
    slurm.kubectl.apply([{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": about, "spec": spec}])

    def scheduled() -> int:
        status = physics.kubectl.get("--namespace", physics.namespace, "daemonset", "agent")["status"]
        return int(status.get("desiredNumberScheduled", 0)) if status.get("observedGeneration") else 0

    wait_for("its pods on real Nodes alone", lambda: scheduled() == len(("node-1", "node-2")), PATIENCE)
    physics.kube("delete", "daemonset", "agent", "--wait=false")


def test_a_script_runs_as_the_user_of_its_namespace(physics: Physics) -> None:
    script = "#!/bin/sh\n#SBATCH --comment=mine\nid -un\necho $SLURM_JOB_PARTITION $1\nexit 3\n"
    physics.create("script", pod_spec(args=["first"]), **{SCRIPT: script})
    status = physics.wait_phase("script", "Failed")
    (container,) = status["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 3
    job = physics.slurm.job(physics.job_of("script"))
    assert (job["UserId"], job["Partition"], job["Comment"]) == ("alice(2001)", "cpu", "mine")
    wait_logs(physics, "script", "alice\ncpu first\n")


def test_output_is_followed_until_the_job_ends(physics: Physics) -> None:
    physics.run("followed", "sh", "-c", HELD)
    physics.wait_phase("followed", "Running")
    wait_logs(physics, "followed", "begun\n")
    command = [str(build.tool("kubectl")), f"--kubeconfig={physics.kubectl.kubeconfig}", *LOGS, "--follow"]
    with subprocess.Popen(
        [*command, f"--namespace={physics.namespace}", "followed"],
        stdout=subprocess.PIPE,
        text=True,
        env=physics.kubectl.environment(),
    ) as follower:
        assert follower.stdout is not None
        try:
            assert follower.stdout.readline() == "begun\n"
            physics.release("followed")
            assert follower.stdout.read() == "over\n"
            assert follower.wait(PATIENCE) == 0
        finally:
            follower.kill()
    physics.wait_phase("followed", "Succeeded")


def test_an_image_runs_with_what_its_pod_says(physics: Physics) -> None:
    # The registry is beside one slurmd: the job must run there.
    physics.slurm.run("sh", "-ec", image_registry.IMAGE, "sh", "exit 9", pod=NODES[0])
    says = '[ "$OF_IMAGE" = yes ] && [ ! -e /etc/slurm ] && echo $WORD $1 && id -u'
    word = {"name": "WORD", "value": "from"}
    spec = pod_spec("/bin/sh", "-ec", says, "sh", image=image_registry.SAMPLE, args=["inside"], env=[word])
    physics.create("image", spec, **{PARAMETERS: json.dumps({"required_nodes": NODES[:1]})})
    physics.wait_phase("image", "Succeeded")
    wait_logs(physics, "image", "from inside\n0\n")


def test_the_example_of_wlm_operator_has_its_pod(physics: Physics) -> None:
    about = {"name": "hello", "namespace": physics.namespace}
    kind = {"apiVersion": wlm.SLURMJOB.api_version, "kind": wlm.SLURMJOB.kind}
    physics.kubectl.apply([{**kind, "metadata": about, "spec": HELLO}])
    wait_for("its pod", lambda: physics.pod("hello-job")["status"].get("phase") == "Succeeded", PATIENCE)
    pod = physics.pod("hello-job")
    assert (pod["spec"]["nodeName"], [one["name"] for one in pod["spec"]["containers"]]) == (NODE, ["jt1"])
    wait_logs(physics, "hello-job", "Hello\n")
    physics.kube("delete", f"{wlm.SLURMJOB.plural}.{wlm.SLURMJOB.group}", "hello", "--wait=false")
    wait_for("the end of its pod", lambda: "hello-job" not in physics.kube("get", "pods", "--output=name"), PATIENCE)


def test_what_slurm_cannot_give_is_refused(physics: Physics) -> None:
    secret = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "key"}}}]
    physics.run("secret", "env", env=secret)
    two = pod_spec("true")
    two["containers"] = [*two["containers"], {"name": "side", "image": "no-image", "command": ["true"]}]
    physics.create("two", two)
    physics.run("elsewhere", "true", node=DENIED)
    stranger = Physics(physics.slurm, physics.slurm.namespace)
    stranger.run("stranger", "true")
    wanted = {
        "secret": ("UnsupportedPodSpec", "spec.containers[0].env[0]"),
        "two": ("UnsupportedPodSpec", "the pod has 2"),
        "elsewhere": ("JobsNotAllowed", "'denied' is not granted"),
    }
    for name, (reason, words) in wanted.items():
        status = physics.wait_phase(name, "Failed")
        assert (status["reason"], words in status["message"]) == (reason, True), status["message"]
        assert jobs_named(physics.slurm, name) == []
    assert stranger.wait_phase("stranger", "Failed")["reason"] == "JobsNotAllowed"
    # The Node stays as long as a pod is bound to it.
    stranger.kube("delete", "pod", "stranger", "--wait", timeout=PATIENCE)


def test_deletion_cancels_the_job(physics: Physics) -> None:
    physics.run("long", "sleep", "600")
    physics.wait_phase("long", "Running")
    job = physics.job_of("long")
    physics.kube("delete", "pod", "long", "--wait", timeout=PATIENCE)
    assert physics.slurm.job_state(job) == "CANCELLED"


def test_an_indexed_job_has_a_slurm_job_for_each_index(physics: Physics) -> None:
    about = {"name": "parts", "namespace": physics.namespace}
    spec = {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "podReplacementPolicy": "Failed",
        "template": {"spec": pod_spec("sh", "-c", "echo part $JOB_COMPLETION_INDEX")},
    }
    physics.kubectl.apply([{"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}])
    physics.kube("wait", "--for=condition=Complete", "job/parts", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE)
    pods = physics.kubectl.get("--namespace", physics.namespace, "pods", "--selector=job-name=parts")["items"]
    assert len(pods) == spec["completions"]
    for pod in pods:
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        wait_logs(physics, pod["metadata"]["name"], f"part {index}\n")


@pytest.mark.full
def test_a_job_outlives_its_node_and_the_operator(physics: Physics, operator: Installation) -> None:
    slurm = physics.slurm
    physics.run("kept", "sh", "-c", HELD)
    physics.wait_phase("kept", "Running")
    before = slurm.kubectl.get("node", NODE)["metadata"]["uid"]
    slurm.kubectl("delete", "node", NODE)
    wait_for(
        "another Node",
        lambda: is_ready(slurm, NODE) and slurm.kubectl.get("node", NODE)["metadata"]["uid"] != before,
        PATIENCE,
    )
    leader = operator.leader()
    slurm.kubectl("--namespace", NAMESPACE, "delete", "pod", leader, "--grace-period=0", "--force")
    wait_for("another leader", lambda: operator.leader() not in {"", leader}, PATIENCE)
    physics.release("kept")
    physics.wait_phase("kept", "Succeeded")
    assert jobs_named(slurm, "kept") == ["COMPLETED"]
    wait_logs(physics, "kept", "begun\nover\n")
