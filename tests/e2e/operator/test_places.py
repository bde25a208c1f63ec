"""What Kubernetes Nodes determine: names, topology, which pods may run where; and lost Nodes.

One Node, on which neither the operator's leader nor a daemon of Slurm runs, is used for faults here: it is tainted, and
in the end its machine dies, is deleted and returns.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from hack.installing.operator import Installation
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support import processes
from tests.support.nodesets import host_of, whole
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.alone,
    pytest.mark.only_slurm("26.05"),
    pytest.mark.long(150),
]

TOPOLOGY = """\
- topology: default
  cluster_default: true
  tree:
    switches:
    - switch: top
      children: s1,s2
    - switch: s1
      nodes: ""
    - switch: s2
      nodes: ""
"""
HOSTNAME = "kubernetes.io/hostname"
GONE = "example.com/gone=yes"
GPU = "example.com/gpu=yes"
ANNOTATIONS = (
    "topology.slinky.slurm.net/spec",
    "nodeset.slinky.slurm.net/hostname-override",
    "nodeset.slinky.slurm.net/node-weight",
)


@dataclass(frozen=True, slots=True)
class Places:
    """The two Nodes by what they are to the tests."""

    safe: str
    """Everything else runs here."""
    other: str


@pytest.fixture(scope="module")
def places(kubectl: Kubectl, operator: Installation, cluster: Cluster) -> Iterator[Places]:
    """The Node of the operator's leader, and the other one."""
    wait_for("a leader that stays", lambda: leads_on(operator) != "", 240)
    safe = leads_on(operator)
    (other,) = set(cluster.node_names()) - {safe}
    yield Places(safe, other)
    kubectl("annotate", "node", safe, other, *(f"{one}-" for one in ANNOTATIONS))


def leads_on(operator: Installation) -> str:
    """The Node of the operator's leader; empty while that is none, or one that is on its way out."""
    pod = operator.pods().get(operator.leader())
    return str(pod["spec"]["nodeName"]) if pod is not None and "deletionTimestamp" not in pod["metadata"] else ""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, places: Places) -> SlurmInKubernetes:
    """A Cluster with a topology, and NodeSets: one on the safe Node from where jobs are started, one on all Nodes."""
    instance = new_slurm("places")
    on_safe = {"spec": {"nodeSelector": {HOSTNAME: places.safe}}}
    instance.create(
        controller={"image": instance.image("slurmctld"), "template": on_safe},
        restapi={"image": instance.image("slurmrestd"), "template": on_safe},
        configFiles={"topology.yaml": TOPOLOGY},
        # Short, since Slurm alone can tell that a node is lost; long enough for a machine that is busy.
        extraConf="SlurmdTimeout=40",
    )
    instance.nodeset("desk", 1, template=on_safe)
    preference = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [places.other]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": preference}]}
    instance.nodeset("anywhere", 0, template={"spec": {"affinity": {"nodeAffinity": preferred}}})
    machine(instance)
    instance.wait_ready()
    instance.wait_idle(["desk-0", places.safe, places.other])
    return instance


def machine(slurm: SlurmInKubernetes, replicas: int | None = None, **template: Any) -> None:
    """Create or replace the NodeSet with one pod on each matching Node, or on that many."""
    slurm.nodeset("machine", replicas, scalingMode="DaemonSet", template={"spec": template})


def annotate(slurm: SlurmInKubernetes, node: str, *annotations: str) -> None:
    slurm.kubectl("annotate", "node", node, "--overwrite", *annotations)


def test_nodes_say_where_slurm_nodes_are_in_the_topology(slurm: SlurmInKubernetes, places: Places) -> None:
    for node, switch in ((places.safe, "s1"), (places.other, "s2")):
        annotate(slurm, node, f"topology.slinky.slurm.net/spec=default:{switch}")
    wait_for("their places", lambda: topology(slurm, places) == ["default:s1", "default:s2"], 120)
    wait_for("the switch's node", lambda: places.other in switch_nodes(slurm, "s2"), 120)

    annotate(slurm, places.other, "topology.slinky.slurm.net/spec=default:s1")
    wait_for("its new place", lambda: topology(slurm, places) == ["default:s1", "default:s1"], 120)
    shown = slurm.run("srun", "-p", "machine", "-N2", "--switches=1", "hostname", pod="desk-0")
    assert sorted(shown.split()) == sorted([places.safe, places.other])


def topology(slurm: SlurmInKubernetes, places: Places) -> list[str]:
    return [slurm.node(name).get("Topology", "") for name in (places.safe, places.other)]


def put_at(slurm: SlurmInKubernetes, node: str, switch: str, *annotations: str) -> None:
    """Give the Slurm node of a Node another place, and wait until it has it.

    Then the operator has seen whatever was written on the Node before.
    """
    annotate(slurm, node, *annotations, f"topology.slinky.slurm.net/spec=default:{switch}")
    wait_place(slurm, node, f"default:{switch}")


def wait_place(slurm: SlurmInKubernetes, node: str, place: str) -> None:
    """Wait until a node has its place: before, it takes no job."""
    wait_for(f"{node} at {place}", lambda: slurm.node(node).get("Topology") == place, 120)


def switch_nodes(slurm: SlurmInKubernetes, switch: str) -> str:
    return slurm.control("scontrol", "show", "topology", f"switch={switch}")


@pytest.mark.full
def test_an_older_slurm_takes_no_topology_and_that_is_told(new_slurm: NewSlurm) -> None:
    older = new_slurm("places", slurm="24.11")
    older.create()
    older.nodeset("compute", 1)
    older.wait_ready()
    older.wait_idle(["compute-0"])
    older.wait_event("compute", "TopologyNotSupported", "compute-0")
    assert older.run("srun", "-p", "compute", "hostname").strip() == "compute-0"


def test_a_taint_is_no_place_for_a_new_pod_unless_tolerated(slurm: SlurmInKubernetes, places: Places) -> None:
    slurm.kubectl("taint", "node", places.other, f"{GPU}:NoSchedule")
    try:
        put_at(slurm, places.other, "s2")
        # The pod that is there stays, until somebody takes it away.
        slurm.kube("delete", "pod", f"machine-{places.other}")
        wait_for("one wanted", lambda: slurm.get("nodeset", "machine")["status"].get("desired") == 1, 120)
        slurm.wait_idle(["desk-0", places.safe])
        machine(slurm, tolerations=[{"key": "example.com/gpu", "operator": "Exists"}])
        # The other pod is updated, too.
        wait_for("both by the new spec", lambda: whole(slurm, "machine", 2), 240)
        slurm.wait_idle_nodes(places.safe, places.other)
    finally:
        slurm.kubectl("taint", "node", places.other, f"{GPU}:NoSchedule-")


def test_a_taint_that_ends_other_pods_lets_a_job_end_first(slurm: SlurmInKubernetes, places: Places) -> None:
    pod = f"machine-{places.other}"
    wait_place(slurm, places.other, "default:s2")
    before = slurm.pod_uid(pod)
    job = slurm.hold(places.other, pod="desk-0", partition="machine")
    slurm.kubectl("taint", "node", places.other, f"{GONE}:NoExecute")
    try:
        wait_for("the drain", lambda: places.other in slurm.drained_nodes(), 120)
        assert slurm.reason(places.other).startswith("slurm-operator: node-mismatch")
        wait_for("the job's name", lambda: job in slurm.condition("nodeset", "machine", "Draining")["message"], 120)
        assert slurm.job_state(job) == "RUNNING"
        assert slurm.pod_uid(pod) == before
        slurm.release(job, pod)
        slurm.wait_job(job, "COMPLETED")
        slurm.wait_gone(places.other, pod)
    finally:
        slurm.kubectl("taint", "node", places.other, f"{GONE}:NoExecute-")
    slurm.wait_idle_nodes(places.safe, places.other)


def test_the_lightest_node_is_taken_under_the_name_it_gives(slurm: SlurmInKubernetes, places: Places) -> None:
    weight, override = "nodeset.slinky.slurm.net/node-weight", "nodeset.slinky.slurm.net/hostname-override"
    # Pods that stand keep their names; those that are made once this is seen have others.
    put_at(slurm, places.safe, "s2", f"{weight}=10", f"{override}=heavy")
    put_at(slurm, places.other, "s1", f"{weight}=1", f"{override}=light")
    slurm.scale("machine", 0)
    slurm.wait_idle(["desk-0"])
    slurm.scale("machine", 1)
    slurm.wait_idle(["desk-0", "light"])
    assert host_of(slurm, "machine-light") == places.other
    wait_place(slurm, "light", "default:s1")
    assert slurm.run("srun", "-p", "machine", "hostname", pod="desk-0").strip() == "light"
    slurm.scale("machine", 2)
    slurm.wait_idle(["desk-0", "light", "heavy"])
    # Among equals the one on the heaviest Node goes.
    slurm.scale("machine", 1)
    slurm.wait_idle(["desk-0", "light"])


def test_the_domain_of_a_node_is_no_part_of_the_slurm_nodes_name(slurm: SlurmInKubernetes, places: Places) -> None:
    name = "rack-9.example.com"
    register(slurm, name)
    try:
        # Room for all: which Nodes would be taken otherwise depends on when the new one is seen.
        slurm.scale("machine", 5)
        wait_for("the pod", lambda: beat(slurm, name) and "machine-rack-9" in slurm.slurmd_pods(), 120)
        spec = slurm.slurmd_pods()["machine-rack-9"]["spec"]
        assert spec["hostname"] == "rack-9"
        arguments = spec["containers"][0]["args"]
        assert arguments[arguments.index("-N") + 1] == "rack-9"
        wait_for("it on its Node", lambda: beat(slurm, name) and host_of(slurm, "machine-rack-9") == name, 120)
    finally:
        slurm.kubectl("delete", "node", name)
    # The Node is none any more. There is no kubelet that could end the pod.
    slurm.kube("delete", "pod", "machine-rack-9", "--force", "--grace-period=0", "--ignore-not-found")
    slurm.wait_idle(["desk-0", "light", "heavy"])


def register(slurm: SlurmInKubernetes, name: str) -> None:
    """Register a Node with no machine behind it, for which pods can be scheduled."""
    metadata = {"name": name, "labels": {HOSTNAME: name}}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Node", "metadata": metadata}])
    beat(slurm, name)


def beat(slurm: SlurmInKubernetes, name: str) -> bool:
    """Say for it that it is ready, again and again, as a kubelet does: else Kubernetes soon takes it for lost."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now}],
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "10"},
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
    }
    slurm.kubectl("patch", "node", name, "--subresource=status", f"--patch={json.dumps({'status': status})}")
    return True


def test_pods_lost_with_their_node_are_replaced_and_come_back_with_it(
    slurm: SlurmInKubernetes, places: Places, cluster: Cluster
) -> None:
    computer = cluster.machine(places.other)
    slurm.scale("anywhere", 1)
    slurm.wait_idle(["desk-0", "anywhere-0", "light", "heavy"])
    assert host_of(slurm, "anywhere-0") == places.other
    wait_place(slurm, "anywhere-0", "default:s1")
    job = slurm.hold("anywhere-0", pod="desk-0")
    before = slurm.slurmd_pods()["anywhere-0"]

    computer.stop("kubelet", signal.SIGKILL)
    try:
        for pod in (before, slurm.slurmd_pods()["machine-light"]):
            processes.send(pod, "slurmd -D", signal.SIGKILL)
        slurm.kubectl("delete", "node", places.other)
        # Nobody can say what became of the job but Slurm, by its own timeout.
        wait_for("the job taken back", lambda: slurm.job(job).get("Restarts") == "1", 300)
        slurm.control("scancel", job)
        wait_for("its pod elsewhere", lambda: slurm.is_replaced("anywhere-0", before["metadata"]["uid"]), 240)
        slurm.wait_idle(["desk-0", "anywhere-0", "heavy"])
        assert host_of(slurm, "anywhere-0") == places.safe
    finally:
        computer.resume("kubelet")
    # It registers as it did first, without what others had written on it.
    slurm.wait_idle(["desk-0", "anywhere-0", "heavy", places.other])
    annotate(slurm, places.other, "topology.slinky.slurm.net/spec=default:s2")
    wait_place(slurm, places.other, "default:s2")
    shown = slurm.run("srun", "-p", "machine", "-w", places.other, "hostname", pod="desk-0")
    assert shown.strip() == places.other
