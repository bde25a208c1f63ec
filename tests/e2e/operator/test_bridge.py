"""Pods that Slurm places on Kubernetes Nodes: when they begin, where they run, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.installing.operator import CHART, NAMESPACE, RELEASE, Installation
from hack.localkube.cluster import Cluster as LocalCluster
from hack.localkube.kubectl import KubectlFailed, wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from slinky_api import labels
from slinky_operator.kube.resources import BATCH_JOBS, JOBSETS, LEADERWORKERSETS, PODGROUPS, STATEFULSETS, Resource
from slurm_client.notation import gres
from tests.support import node_devices, pod_groups, processes
from tests.support.documents import RUNNING, Action, blocks
from tests.support.job_namespace import JobNamespace
from tests.support.reader import Reader
from tests.support.shell import Shell
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

# The operator is upgraded and killed, and Nodes are labelled.
pytestmark = [pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.long(240)]

PAGE = "docs/bridge.md"
RIGHTS = "slurm-bridge"
NODES = ["node-1", "node-2"]
SLURMD = "compute-0"
CHOSEN = {"example.com/slurm": "pods"}
ZONE = "topology.kubernetes.io/zone"
"""Of a Node of the tests it is the Node's name."""

PARTITIONS = ["pods", "urgent"]
GPU = "nvidia.com/gpu"
PASSWD = "alice:x:2001:2001::/home/alice:/bin/sh\n"
OVER = {"Succeeded", "Failed"}
FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
"""A program that ends on SIGTERM."""

STUBBORN = "trap 'echo told; sleep 3; echo over; exit 0' TERM; while :; do sleep 0.2; done"
"""A program that needs some of its grace period."""


@dataclass(frozen=True)
class Pods(JobNamespace):
    """A namespace whose pods Slurm places."""

    def create(
        self,
        name: str,
        program: str,
        on: str = "",
        partition: str = "pods",
        marked: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Create a pod; one for a certain Node selects it."""
        body = self.template(program, on, **spec)
        body["metadata"]["labels"] |= marked or {}
        body["metadata"]["annotations"][f"{labels.BRIDGE_PREFIX}partition"] = partition
        about = {"name": name, "namespace": self.namespace, **body["metadata"]}
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": body["spec"]}])

    def template(self, program: str, on: str = "", **spec: Any) -> dict[str, Any]:
        """What a pod that Slurm places is made of."""
        return {
            "metadata": {
                "labels": {labels.LABEL_BRIDGE_POD: "true"},
                "annotations": {f"{labels.BRIDGE_PREFIX}partition": "pods", f"{labels.BRIDGE_PREFIX}time": "30"},
            },
            "spec": {
                "schedulingGates": [{"name": labels.GATE_BRIDGE}],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 30,
                **({"nodeSelector": {ZONE: on}} if on else {}),
                "containers": [self.container(program)],
                **spec,
            },
        }

    def container(self, program: str) -> dict[str, Any]:
        """The container of such a pod."""
        return {
            "name": "main",
            "image": self.slurm.image("slurmd"),
            "command": ["sh", "-c", program],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }

    def workload(self, kind: str, name: str, spec: Mapping[str, Any], program: str, **pod: Any) -> None:
        """Create a Job or a Deployment."""
        version = "apps/v1" if kind == "Deployment" else "batch/v1"
        template = self.template(program, **pod)
        template["metadata"]["labels"] = {**template["metadata"]["labels"], "app": name}
        about = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": version, "kind": kind, "metadata": about, "spec": {**spec, "template": template}}
        self.kubectl.apply([body])

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Pods of the namespace, or some of them."""
        chosen = [f"--selector={selector}"] if selector else []
        found: list[dict[str, Any]] = self.kubectl.get("--namespace", self.namespace, "pods", *chosen)["items"]
        return found

    def pod(self, name: str) -> dict[str, Any]:
        """One pod."""
        return self.kubectl.get("--namespace", self.namespace, "pod", name)

    def phase(self, name: str) -> str:
        """Phase of a pod."""
        return str(self.pod(name)["status"].get("phase"))

    def wait_phase(self, name: str, phase: str) -> dict[str, Any]:
        """Wait for the phase of a pod, and return the pod."""
        wait_for(f"pod {name} {phase}", lambda: self.phase(name) == phase, PATIENCE)
        return self.pod(name)

    def number(self, pod: Mapping[str, Any]) -> str:
        """Number in Slurm of the job of a pod that was placed."""
        return str(self.status(pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB])["jobId"])

    def placed(self, name: str) -> tuple[str, str]:
        """Reason and message of what a pod shows of its place."""
        conditions = self.pod(name)["status"].get("conditions") or ()
        found = [one for one in conditions if one["type"] == f"{labels.BRIDGE_PREFIX}Placed"]
        return (found[0]["reason"], found[0]["message"]) if found else ("", "")

    def gone(self, name: str) -> bool:
        """Whether there is no such pod."""
        return not self.kube("get", "pod", name, "--ignore-not-found", "--output=name")

    def clear(self, *options: str) -> None:
        """Delete what runs, and wait for its end; who waits in vain hears what keeps it."""
        kinds = "jobs.batch,deployments,statefulsets,pods"
        try:
            self.kube("delete", kinds, "--all", *options, timeout=PATIENCE)
        except KubectlFailed as error:
            shown = ("kind", "metadata.name", "metadata.deletionTimestamp", "metadata.finalizers", "spec.nodeName")
            columns = ",".join(f"C{place}:.{field}" for place, field in enumerate((*shown, "status.phase")))
            left = self.kube("get", kinds, "--no-headers", f"--output=custom-columns={columns}")
            words = "; ".join(" ".join(line.split()) for line in left.splitlines())
            raise AssertionError(f"still there: {words}") from error

    def events(self, name: str) -> str:
        """Events of an object, one a line."""
        found = self.kubectl.get(
            "--namespace", self.namespace, "events", f"--field-selector=involvedObject.name={name}"
        )["items"]
        return "\n".join(f"{one['reason']}: {one['message']}" for one in found)


@pytest.fixture(scope="module")
def physics(new_slurm: NewSlurm, operator: Installation) -> Iterator[Pods]:
    """A Cluster with one node of slurmd and all Kubernetes Nodes, and a namespace whose pods it places."""
    slurm = new_slurm("bridge")
    namespace = f"{slurm.namespace}-physics"
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    rights = f"--set=tenants={{{namespace}}},devices=true"
    operator.helm("upgrade", "--install", RIGHTS, str(PROJECT / "helm" / RIGHTS), rights)
    # CPUs are whole: requests of other pods, however small, take one of a Node's, and one Node is to have none.
    set_values(operator, {"clusters": [f"{slurm.namespace}/{slurm.name}"], "devices": True}, cpu="0")
    for node in NODES:
        set_gpus(slurm, node, "2")
        node_devices.start(operator.cluster, node, 2)
    slurm.kubectl.apply([node_devices.device_class()])
    pod_groups.serve_kinds(slurm.kubectl)
    slurm.kubectl("cordon", NODES[1])
    try:
        make(slurm, namespace)
    finally:
        slurm.kubectl("uncordon", NODES[1])
    for node in NODES:
        slurm.kubectl("label", "node", node, *(f"{key}={value}" for key, value in CHOSEN.items()), "--overwrite")
    slurm.wait_idle([SLURMD, *NODES])
    team = Pods(slurm, namespace)
    account = ("get", "serviceaccounts", "--output=name")
    wait_for("the account", lambda: "serviceaccount/default" in team.kube(*account), PATIENCE)
    yield team
    team.clear("--grace-period=0", "--force")
    slurm.kubectl("delete", "namespace", namespace, "--wait", timeout=2 * PATIENCE)
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", '--patch={"spec":{"jobs":{"bridge":null}}}')
    wait_for("the end of its nodes", lambda: set(slurm.states()) == {SLURMD}, PATIENCE)
    for node in NODES:
        slurm.kubectl("label", "node", node, *(f"{key}-" for key in CHOSEN))
        set_gpus(slurm, node, None)
        node_devices.stop(operator.cluster, node)
    slurm.kubectl("delete", "resourceslices,deviceclasses", "--all")
    slurm.kubectl("delete", "crd", *map(pod_groups.name_of, pod_groups.KINDS), "--wait=false")
    set_values(operator, {"clusters": [], "devices": False}, cpu="50m")
    operator.helm("uninstall", RIGHTS, "--wait")


def make(slurm: SlurmInKubernetes, namespace: str) -> None:
    """Make a Cluster that places pods of a namespace, with one node of slurmd."""
    slurm.create(
        identity={"passwd": {"configMapRef": {"name": "users"}}},
        accounting={},
        # Jobs begin at once, and one partition takes from the other.
        extraConf=(
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0\n"
            "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL"
        ),
        jobs={
            "tenants": [
                {"namespaces": [namespace], "user": "alice", "uid": 2001, "gid": 2001, "partitions": PARTITIONS}
            ],
            "bridge": {
                "nodeLabels": CHOSEN,
                "featureLabels": [ZONE],
                "gres": [{"resource": GPU, "gres": "gpu"}, {"deviceClass": node_devices.DRIVER, "gres": "card"}],
            },
        },
        partitions=[
            {"name": "batch", "nodeSets": ["compute"], "config": "Default=YES"},
            {"name": "pods", "nodeSets": ["bridge"]},
            {"name": "urgent", "nodeSets": ["bridge"], "config": "PriorityTier=10"},
        ],
    )
    about = {"name": "users", "namespace": slurm.namespace}
    users = {"passwd": PASSWD, "group": "alice:x:2001:\n"}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": users}])
    slurm.nodeset("compute", 1, resources={"requests": {"cpu": "0", "memory": "64Mi"}, "limits": {"cpu": "1"}})
    slurm.wait_ready()
    slurm.wait_idle([SLURMD])


def set_gpus(slurm: SlurmInKubernetes, node: str, count: str | None) -> None:
    """Let a Node have devices that no plugin gives away."""
    status = {"capacity": {GPU: count}, "allocatable": {GPU: count}}
    patch = f"--patch={json.dumps({'status': status})}"
    slurm.kubectl("patch", "node", node, "--subresource=status", "--type=merge", patch)


def set_values(operator: Installation, bridge: dict[str, Any], cpu: str) -> None:
    """Say which Clusters may place pods, and how, and what the operator requests."""
    settings = (f"--set-json=bridge={json.dumps(bridge)}", f"--set-string=resources.requests.cpu={cpu}")
    operator.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", *settings, "--wait", "--timeout=300s")


@pytest.fixture
def free(physics: Pods) -> Pods:
    """The namespace without a pod, and all nodes idle."""
    physics.clear("--wait")
    physics.slurm.wait_idle_nodes(*NODES)
    return physics


def recorded(slurm: SlurmInKubernetes, job: str, *fields: str) -> list[str]:
    """What slurmdbd has of a job."""
    answer = slurm.run(
        "sacct", "--noheader", "--parsable2", "--allocations", "--allusers", f"--jobs={job}",
        f"--format={','.join(fields)}",
    )  # fmt: skip
    return answer.strip().split("|")


def queued(slurm: SlurmInKubernetes, name: str) -> list[str]:
    """States of all jobs of a name."""
    return slurm.control("squeue", "--noheader", "--states=all", f"--name={name}", "--format=%T").split()


def test_kubernetes_nodes_are_nodes_of_slurm_beside_those_of_slurmd(physics: Pods) -> None:
    slurm = physics.slurm
    for name in NODES:
        node = slurm.node(name)
        assert {"bridge", f"zone.{name}"} <= set(node["AvailableFeatures"].split(","))
        assert "pods" in node["Partitions"].split(",")
        allocatable = slurm.kubectl.get("node", name)["status"]["allocatable"]
        # Other pods have some of it.
        assert 1 <= int(node["CPUTot"]) <= int(allocatable["cpu"])
    wait_for(
        "the Cluster's word",
        lambda: slurm.condition("cluster", slurm.name, "BridgeReady")["status"] == "True",
        PATIENCE,
    )
    assert "external" in slurm.control("scontrol", "show", "node", NODES[0]).lower()
    # slurmd is on one of the machines, and has its own jobs.
    assert slurm.run("srun", "--partition=batch", "hostname").strip() == SLURMD


def test_the_page_is_followed(free: Pods, tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "here"
    for one in (programs, folder):
        one.mkdir()
    (programs / "kubectl").symlink_to(build.tool("kubectl"))
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(free.kubectl.kubeconfig),
        "KUBECACHEDIR": str(tmp_path / "kubectl-cache"),
    }
    own = {"physics": free.namespace, "slurm": free.slurm.namespace}
    with Shell(folder, tmp_path, environment) as shell:
        reader = Reader(folder, shell, own, {"busybox:1.37": free.slurm.image("slurmd")})
        reader.follow(PAGE, "The first pod", "A gang")
    marked = {one.place for one in blocks(PAGE) if one.action is Action.FILE or one.action in RUNNING}
    assert reader.done == marked
    # One job for both pods of the gang, each on the node of its rank.
    wait_for("the end of its job", lambda: queued(free.slurm, "train") == ["CANCELLED"], PATIENCE)
    owned = free.kubectl.get("--namespace", free.namespace, "slurmjobs")["items"]
    (job,) = (one for one in owned if one["metadata"]["ownerReferences"][0]["name"] == "train")
    allocation = job["status"]["allocation"]
    ranks = {
        one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: one
        for one in free.pods("job-name=train")
    }
    nodes = [one["node"] for one in allocation for _ in range(one["cpus"])]
    assert [ranks[str(rank)]["spec"]["nodeName"] for rank in range(2)] == nodes[:2]


def test_exit_codes_are_in_the_accounting(free: Pods) -> None:
    free.create("code", "exit 3", on=NODES[1])
    pod = free.wait_phase("code", "Failed")
    assert pod["spec"]["nodeName"] == NODES[1]
    job = free.number(pod)
    name = pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB]
    assert free.wait(name, state="Failed")["exitCode"] == 3
    wait_for(
        "the exit code in slurmdbd",
        lambda: recorded(free.slurm, job, "user", "derivedexitcode", "nodelist") == ["alice", "3:0", NODES[1]],
        PATIENCE,
    )
    assert "code" in recorded(free.slurm, job, "comment")[0]


def test_a_pod_waits_with_slurms_words_until_there_is_room(free: Pods) -> None:
    slurm = free.slurm
    cpus = int(slurm.node(NODES[0])["CPUTot"])
    spec = {"parallelism": cpus, "completions": cpus, "completionMode": "Indexed"}
    free.workload("Job", "full", spec, FOREVER, on=NODES[0])
    wait_for("the machine is full", lambda: slurm.node(NODES[0])["CPUAlloc"] == str(cpus), PATIENCE)
    free.create("next", "sleep 600", on=NODES[0])
    waits = "waiting for: (Resources|Priority)"
    wait_for("Slurm's words", lambda: re.search(waits, free.placed("next")[1]) is not None, PATIENCE)
    assert "SchedulingGated" in free.kube("get", "pod", "next")
    wait_for("the Event", lambda: re.search(waits, free.kube("describe", "pod", "next")) is not None, PATIENCE)
    # Who deletes the Job ends the job, and the next one has its turn.
    free.kube("delete", "job", "full", "--wait=false")
    pod = free.wait_phase("next", "Running")
    assert pod["spec"]["nodeName"] == NODES[0]
    assert queued(slurm, "full") == ["CANCELLED"]
    job = free.number(pod)
    free.kube("delete", "pod", "next", "--grace-period=1", "--wait", timeout=PATIENCE)
    slurm.wait_job(job, "CANCELLED")


def test_a_job_that_is_cancelled_evicts_its_pod_in_its_grace_period(free: Pods) -> None:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "service"}}}
    free.workload("Deployment", "service", spec, STUBBORN, restartPolicy="Always")
    wait_for(
        "its pod", lambda: [one["status"].get("phase") for one in free.pods("app=service")] == ["Running"], PATIENCE
    )
    (first,) = free.pods("app=service")
    name, job = first["metadata"]["name"], free.number(first)
    # So that it can be looked at when it has ended.
    free.kube("patch", "pod", name, "--type=merge", '--patch={"metadata":{"finalizers":["example.com/kept"]}}')
    free.slurm.control("scancel", job)
    wait_for("its end", lambda: free.phase(name) in {"Succeeded", "Failed"}, PATIENCE)
    ended = free.pod(name)
    conditions = {one["type"]: one for one in ended["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
    assert ended["metadata"]["deletionGracePeriodSeconds"] == 30
    (container,) = ended["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0
    wait_for("the Event", lambda: "Cancelled" in free.events(name), PATIENCE)
    free.kube("patch", "pod", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')

    def next_runs() -> bool:
        found = [one for one in free.pods("app=service") if one["metadata"]["uid"] != first["metadata"]["uid"]]
        return any(one["status"].get("phase") == "Running" for one in found)

    wait_for("the next pod", next_runs, PATIENCE)
    (second,) = (one for one in free.pods("app=service") if one["metadata"]["uid"] != first["metadata"]["uid"])
    assert free.number(second) != job


def test_a_time_limit_ends_the_pod(free: Pods) -> None:
    free.create("limited", FOREVER)
    pod = free.wait_phase("limited", "Running")
    job = free.number(pod)
    assert labels.ANNOTATION_BRIDGE_DEADLINE in pod["metadata"]["annotations"]
    assert free.slurm.job(job)["TimeLimit"] == "00:30:00"
    free.slurm.control("scontrol", "update", f"jobid={job}", "timelimit=0")
    wait_for("the end of the pod", lambda: free.gone("limited"), PATIENCE)
    wait_for("the Event", lambda: "Timeout" in free.events("limited"), PATIENCE)
    assert free.slurm.job_state(job) == "TIMEOUT"


def test_an_operator_that_is_killed_places_each_pod_once(free: Pods, operator: Installation) -> None:
    slurm = free.slurm
    slurm.control("scontrol", "update", "partitionname=pods", "state=down")
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0}
    free.workload("Job", "once", spec, "echo begun; sleep 1")
    wait_for("the job waits", lambda: queued(slurm, "once") == ["PENDING"], PATIENCE)
    leader = operator.leader()
    slurm.control("scontrol", "update", "partitionname=pods", "state=up")
    slurm.kubectl("--namespace", NAMESPACE, "delete", "pod", leader, "--grace-period=0", "--force")
    free.kube("wait", "--for=condition=Complete", "job/once", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE)
    pods = free.pods("job-name=once")
    assert len(pods) == 2
    assert len({free.number(one) for one in pods}) == 1
    assert {one["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] for one in pods} == {"0", "1"}
    for one in pods:
        assert one["status"]["containerStatuses"][0]["restartCount"] == 0
        assert free.kube("logs", one["metadata"]["name"]) == "begun\n"
    wait_for("the end of its job", lambda: queued(slurm, "once") == ["CANCELLED"], PATIENCE)


@pytest.mark.full
def test_the_gate_is_the_operators(free: Pods) -> None:
    free.slurm.control("scontrol", "update", "partitionname=pods", "state=down")
    free.create("waiting", "true")
    wait_for("a word of Slurm", lambda: free.placed("waiting")[0] not in {"", "Submitting"}, PATIENCE)
    refused = refusal(free, "patch", "pod", "waiting", "--type=merge", '--patch={"spec":{"schedulingGates":null}}')
    assert "only slurm-operator removes the scheduling gate" in refused
    free.kube("delete", "pod", "waiting", "--wait=false")
    free.slurm.control("scontrol", "update", "partitionname=pods", "state=up")


def refusal(pods: Pods, *arguments: str) -> str:
    """What the API server says to a request that it refuses."""
    with pytest.raises(KubectlFailed) as failed:
        pods.kube(*arguments)
    return failed.value.stderr


def test_a_node_goes_with_its_label_when_its_job_has_ended(free: Pods) -> None:
    slurm, node = free.slurm, NODES[1]
    free.create("last", FOREVER, on=node)
    free.wait_phase("last", "Running")
    slurm.kubectl("label", "node", node, *(f"{key}-" for key in CHOSEN))
    wait_for("it takes no more jobs", lambda: slurm.states()[node].startswith("draining"), PATIENCE)
    assert slurm.reason(node).startswith("slurm-operator: bridge:")
    assert free.phase("last") == "Running"
    free.kube("delete", "pod", "last", "--wait=false")
    wait_for("the end of the node", lambda: node not in slurm.states(), PATIENCE)
    slurm.kubectl("label", "node", node, *(f"{key}={value}" for key, value in CHOSEN.items()))
    slurm.wait_idle_nodes(*NODES)


def in_slurm(slurm: SlurmInKubernetes) -> set[str]:
    """Numbers of jobs that wait or run in the partitions of the bridge."""
    chosen = (f"--partition={','.join(PARTITIONS)}", "--states=PENDING,RUNNING")
    return set(slurm.control("squeue", "--noheader", *chosen, "--format=%A").split())


def agree(pods: Pods) -> None:
    """Wait until each pod that runs has its job, no two have one, and no job runs without a pod."""

    def do() -> bool:
        running = [one for one in pods.pods() if one["status"].get("phase") == "Running"]
        numbers = [pods.number(one) for one in running if not one["metadata"].get("deletionTimestamp")]
        return len(set(numbers)) == len(numbers) and set(numbers) == in_slurm(pods.slurm)

    wait_for("pods and jobs agree", do, PATIENCE)


def test_a_pod_makes_room_for_a_job_of_a_higher_partition(free: Pods) -> None:
    slurm, cpus = free.slurm, free.slurm.node(NODES[0])["CPUTot"]
    whole = {"requests": {"cpu": cpus, "memory": "64Mi"}}
    container = {"name": "main", "image": slurm.image("slurmd"), "command": ["sh", "-c", STUBBORN], "resources": whole}
    free.create("low", STUBBORN, on=NODES[0], containers=[container])
    job = free.number(free.wait_phase("low", "Running"))
    free.create("high", FOREVER, on=NODES[0], partition="urgent")
    wait_for("Slurm takes the Node", lambda: slurm.job_state(job) == "PREEMPTED", PATIENCE)
    # Slurm has given the Node away at once; the pod ends in its time, and the next one waits for it.
    high = free.wait_phase("high", "Running")
    assert high["spec"]["nodeName"] == NODES[0]
    assert high["status"]["containerStatuses"][0]["restartCount"] == 0
    wait_for("the end of the pod", lambda: free.gone("low"), PATIENCE)
    wait_for("the Event", lambda: "Preempted" in free.events("low"), PATIENCE)
    assert "OutOf" not in free.events("high")
    agree(free)


def test_a_machine_is_shared_by_a_job_of_slurmd_and_pods(free: Pods) -> None:
    slurm = free.slurm
    host = slurm.slurmd_pods()[SLURMD]["spec"]["nodeName"]
    batch = slurm.hold(SLURMD, partition="batch")
    free.create("beside", FOREVER, on=host)
    free.wait_phase("beside", "Running")
    assert slurm.job_state(batch) == "RUNNING"
    agree(free)
    # What the bridge may give away and what all other pods there request never exceed the machine.
    requested = 0.0
    for pod in slurm.kubectl.get("pods", "--all-namespaces", f"--field-selector=spec.nodeName={host}")["items"]:
        if labels.LABEL_BRIDGE_POD in (pod["metadata"].get("labels") or {}) or pod["status"]["phase"] in OVER:
            continue
        for container in pod["spec"]["containers"]:
            requested += cpus_of(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
    allocatable = cpus_of(slurm.kubectl.get("node", host)["status"]["allocatable"]["cpu"])
    assert int(slurm.node(host)["CPUTot"]) + requested <= allocatable
    slurm.release(batch, SLURMD)
    slurm.wait_job(batch, "COMPLETED")


def cpus_of(text: str) -> float:
    """CPUs of a quantity."""
    return float(text.removesuffix("m")) / 1000 if text.endswith("m") else float(text)


def test_a_claim_is_bound_where_slurm_has_placed_its_pod_and_gpus_are_counted(free: Pods) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    about = {"name": "data", "namespace": free.namespace}
    free.kubectl.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim}])
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {GPU: "2"}}
    container = {"name": "main", "image": free.slurm.image("slurmd"), "resources": resources}
    writes = {
        **container,
        "command": ["sh", "-c", f"echo here > /data/x; {FOREVER}"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    free.create("claims", "", on=NODES[1], containers=[writes], volumes=[volume])
    pod = free.wait_phase("claims", "Running")
    bound = free.kubectl.get("--namespace", free.namespace, "pvc", "data")
    assert bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == NODES[1]
    status = free.status(pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB])
    assert [one["gres"] for one in status["allocation"]] == [["gpu:2(IDX:0-1)"]]
    # There are CPUs left, and no GPU.
    free.create("second", "", on=NODES[1], containers=[{**container, "command": ["true"]}])
    wait_for("Slurm's words", lambda: "waiting for: Resources" in free.placed("second")[1], PATIENCE)
    free.kube("delete", "pod", "claims", "--wait=false")
    free.wait_phase("second", "Succeeded")
    free.kube("delete", "pvc", "data", "--wait=false")


def test_pods_have_the_devices_that_slurm_has_given_to_their_jobs(free: Pods) -> None:
    """Drivers of devices are the test; the kubelets ask them, and end no pod of the bridge for a device."""
    slurm = free.slurm
    for count in (1, 2):
        free.kubectl.apply([node_devices.claim_template(f"cards-{count}", free.namespace, count)])
    node = NODES[1]
    wait_for("its devices", lambda: "card:2" in slurm.node(node)["Gres"], PATIENCE)
    container = free.container(f"cat {node_devices.FILE}; {FOREVER}")
    for name in ("one", "two"):
        free.create(name, "", on=node, **node_devices.claiming(container, "cards-1"))
    beside = [free.wait_phase(name, "Running") for name in ("one", "two")]
    given = [cards(free, pod) for pod in beside]
    assert sorted(given) == [["device-0"], ["device-1"]]
    # Nothing is free, and then all of it.
    free.create("both", "", on=node, **node_devices.claiming(container, "cards-2"))
    wait_for("Slurm's words", lambda: "waiting for: Resources" in free.placed("both")[1], PATIENCE)
    free.kube("delete", "pod", "one", "two", "--wait=false")
    assert cards(free, free.wait_phase("both", "Running")) == ["device-0", "device-1"]


def cards(pods: Pods, pod: Mapping[str, Any]) -> list[str]:
    """The devices that a container sees: those whose indices Slurm's job has."""
    name = pod["metadata"]["name"]
    shown = pods.slurm.control("scontrol", "show", "job", "--details", pods.number(pod))
    (words,) = re.findall(r" GRES=(\S*card\S*)", shown)
    (of_slurm,) = (one for one in gres.parse(words) if one.name == "card")
    wanted = [f"device-{index}" for index in of_slurm.indices or ()]
    wait_for("as many words", lambda: len(pods.kube("logs", name).split()) >= len(wanted), PATIENCE)
    seen = pods.kube("logs", name).split()
    assert seen == wanted
    assert pod["spec"]["nodeName"] in shown
    return seen


def test_groups_of_each_kind_take_their_turns_and_are_in_the_accounting(free: Pods) -> None:
    """The test is the controllers of their kinds, as far as these are not of Kubernetes itself."""
    slurm = free.slurm

    def indexed(pods: int, program: str) -> dict[str, Any]:
        spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0}
        return {**spec, "template": free.template(program)}

    def replicated(name: str, pods: int, program: str) -> dict[str, Any]:
        return {"name": name, "replicas": 1, "template": {"spec": indexed(pods, program)}}

    def create(resource: Resource, name: str, spec: Mapping[str, Any], **about: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": free.namespace, **about}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        free.kubectl.apply([body])
        return free.kubectl.get("--namespace", free.namespace, pod_groups.name_of(resource), name)

    _ = create(BATCH_JOBS, "gang", indexed(2, "exit 0"))
    parts = [replicated("driver", 1, "exit 0"), replicated("node", 1, "exit 3")]
    jobset = create(JOBSETS, "parts", {"replicatedJobs": parts})
    trainjob = create(pod_groups.TRAINJOBS, "train", {})
    owner = pod_groups.controlled(trainjob, "TrainJob", trainjob["apiVersion"])
    trained = create(JOBSETS, "train", {"replicatedJobs": [replicated("node", 2, "exit 0")]}, ownerReferences=[owner])
    workers = {"size": 2, "workerTemplate": free.template(FOREVER, restartPolicy="Always")}
    served = create(LEADERWORKERSETS, "serve", {"startupPolicy": "LeaderCreated", "leaderWorkerTemplate": workers})
    free.kubectl.apply([*pod_groups.jobs_of(jobset), *pod_groups.jobs_of(trained), pod_groups.leaders_of(served)])
    _ = create(PODGROUPS, "mpi", {"minMember": 2})
    for name in ("mpi-a", "mpi-b"):
        free.create(name, "exit 0", marked={pod_groups.POD_GROUP: "mpi"})
    wait_for("the leader", lambda: not free.gone("serve-0"), PATIENCE)
    free.kubectl.apply([pod_groups.worker_of(served, free.pod("serve-0"))])

    free.kube("wait", "--for=condition=Failed", "job/parts-node-0", f"--timeout={PATIENCE:.0f}s", timeout=PATIENCE + 9)
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    about = ("patch", pod_groups.name_of(JOBSETS), "parts", "--subresource=status", "--type=merge")
    free.kube(*about, f"--patch={json.dumps(failed)}")
    numbers = {"serve": together(free, f"{pod_groups.LWS}name=serve", "Running")}
    kinds = ",".join(pod_groups.name_of(one) for one in (LEADERWORKERSETS, STATEFULSETS))
    free.kube("delete", kinds, "--all", "--wait=false")
    for name, chosen in (
        ("gang", "job-name=gang"),
        ("parts", f"{pod_groups.JOBSET}jobset-name=parts"),
        ("train", f"{pod_groups.JOBSET}jobset-name=train"),
        ("mpi", f"{pod_groups.POD_GROUP}=mpi"),
    ):
        numbers[name] = together(free, chosen, "Succeeded", "Failed")
    # Whose owner is deleted is cancelled; the others have ended.
    ends = {
        "gang": "0:0|pods of Job gang, ended; pods gang-0-",
        "parts": "3:0|pods of JobSet parts, Failed; parts-node-0-0-",
        "train": "0:0|pods of JobSet train, ended; pods train-node-0-0-",
        "mpi": "0:0|pods of PodGroup mpi, ended; pods mpi-a, mpi-b; ",
        "serve": "0:0|",
    }
    fields = "--format=jobidraw,jobname,user,state,derivedexitcode,comment"
    asked = ("sacct", "--noheader", "--parsable2", "--allocations", "--allusers", fields)

    def are_recorded() -> bool:
        lines = slurm.look(*asked, f"--jobs={','.join(numbers.values())}").splitlines()
        found = {line.partition("|")[0]: re.sub(r"CANCELLED by \d+", "CANCELLED", line) for line in lines}
        begins = {name: f"{numbers[name]}|{name}|alice|CANCELLED|{end}" for name, end in ends.items()}
        return all(found.get(numbers[name], "").startswith(begin) for name, begin in begins.items())

    wait_for("all five in slurmdbd", are_recorded, PATIENCE)


def together(pods: Pods, chosen: str, *phases: str) -> str:
    """Wait for the two pods of a group, which one job has placed by their ranks, and return the job's number."""

    def are_there() -> bool:
        found = [one["status"].get("phase") for one in pods.pods(chosen)]
        return len(found) == 2 and set(found) <= set(phases)

    wait_for(f"pods {chosen} {phases}", are_there, PATIENCE)
    found = sorted(pods.pods(chosen), key=lambda one: str(one["metadata"]["name"]))
    noted = [one["metadata"]["annotations"] for one in found]
    assert [one[labels.ANNOTATION_BRIDGE_SLOT] for one in noted] == ["0", "1"]
    (job,) = {one[labels.ANNOTATION_BRIDGE_SLURMJOB] for one in noted}
    status = pods.status(job)
    nodes = [one["node"] for one in status["allocation"] for _ in range(one["cpus"])]
    assert [one["spec"]["nodeName"] for one in found] == nodes
    for one in found:
        (container,) = one["status"]["containerStatuses"]
        assert container["restartCount"] == 0
    return str(status["jobId"])


def test_a_node_that_is_lost_is_left_and_its_pods_go_on_elsewhere(free: Pods, cluster: LocalCluster) -> None:
    slurm = free.slurm
    # Commands for Slurm go by way of the kubelet of its controller.
    safe = slurm.get("pod", f"{slurm.name}-controller-0")["spec"]["nodeName"]
    (node,) = set(NODES) - {safe}
    lost = cluster.machine(node)
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "service"}}}
    free.create("holds", FOREVER, on=node)
    job = free.number(free.wait_phase("holds", "Running"))
    lost.send("kubelet", signal.SIGSTOP)
    try:
        # Who knows that it is gone for good says so to Slurm.
        slurm.control("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
        free.workload("Deployment", "service", spec, FOREVER, restartPolicy="Always")
        slurm.wait_job(job, "NODE_FAIL")
        wait_for("its eviction", lambda: "deletionTimestamp" in free.pod("holds")["metadata"], PATIENCE)
        wait_for("the Event", lambda: "NodeFail" in free.events("holds"), PATIENCE)
        # Its kubelet cannot end it: it keeps nobody from running elsewhere.
        wait_for("the other", lambda: [p["status"].get("phase") for p in free.pods("app=service")] == ["Running"], 120)
        assert [one["spec"]["nodeName"] for one in free.pods("app=service")] == [safe]
    finally:
        lost.send("kubelet", signal.SIGCONT)
        slurm.control("scontrol", "update", f"nodename={node}", "state=resume")
    wait_for("the end of the pod", lambda: free.gone("holds"), PATIENCE)


@pytest.mark.full
def test_a_slurmctld_that_is_killed_under_pods_that_have_just_begun_leaves_them_and_no_job(free: Pods) -> None:
    """It has forgotten, or does not know to have started, what it has not written down yet."""
    slurm = free.slurm
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0}
    free.workload("Job", "short", spec, "echo begun; sleep 5")
    chosen = "job-name=short"
    wait_for("pods", lambda: [one["status"]["phase"] for one in free.pods(chosen)] == ["Running"] * 2, PATIENCE)
    processes.send(slurm.get("pod", f"{slurm.name}-controller-0"), "slurmctld", signal.SIGKILL)
    free.kube("wait", "--for=condition=Complete", "job/short", f"--timeout={PATIENCE:.0f}s", timeout=2 * PATIENCE)
    pods = free.pods(chosen)
    assert sorted(one["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] for one in pods) == ["0", "1"]
    assert len({one["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB] for one in pods}) == 1
    for one in pods:
        assert one["status"]["containerStatuses"][0]["restartCount"] == 0
        assert free.kube("logs", one["metadata"]["name"]) == "begun\n"
    wait_for("the end of its job", lambda: not in_slurm(slurm), PATIENCE)
