"""The operator dies, freezes, or loses the connection to Slurm during a scale-in: no job is lost."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from hack.installing.operator import NAMESPACE, RELEASE, Installation
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support import audit, processes
from tests.support.operator_death import PROCESS, dead, wait_whole
from tests.support.pods import restarts
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.full,
    pytest.mark.alone,
    pytest.mark.long(200),
]

HELD = "/tmp/held"
"""As long as this file is in a pod of NodeSet `killed`, the pod does not end."""

WAITS_WHEN_DELETED = {
    "spec": {
        # Its kubelet is not to end it before the file is gone.
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
    """A Cluster with a NodeSet of one node for each test."""
    instance = new_slurm("faults")
    # A job's end is to be there when it is looked at, however long the rest takes.
    instance.create(extraConf="MinJobAge=3600")
    instance.nodeset("killed", 1, template=WAITS_WHEN_DELETED)
    names = ["frozen", *FAULTS]
    for name in names:
        instance.nodeset(name, 1)
    instance.wait_ready()
    instance.wait_idle(f"{name}-0" for name in ("killed", *names))
    return instance


def is_draining(slurm: SlurmInKubernetes, node: str) -> bool:
    return node in slurm.drained_nodes()


def stays(slurm: SlurmInKubernetes, node: str, uid: str) -> bool:
    """Whether the pod of a node is still that one, and not being deleted."""
    metadata = slurm.slurmd_pods().get(node, {"metadata": {}})["metadata"]
    return metadata.get("uid") == uid and "deletionTimestamp" not in metadata


def uid_of(slurm: SlurmInKubernetes, node: str) -> str:
    return str(slurm.slurmd_pods()[node]["metadata"]["uid"])


def wait_gone(slurm: SlurmInKubernetes, node: str) -> None:
    """Wait until neither Kubernetes nor Slurm has the node any more, and its NodeSet is content."""
    wait_for(f"pod {node} gone", lambda: node not in slurm.slurmd_pods(), PATIENCE)
    wait_for(f"record of {node} gone", lambda: node not in slurm.states(), PATIENCE)
    nodeset = node.rpartition("-")[0]
    wait_for(
        f"NodeSet {nodeset} ready", lambda: slurm.condition("nodeset", nodeset, "Ready")["status"] == "True", PATIENCE
    )


def test_killed_at_five_points_of_a_drain_it_comes_to_the_same_end(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl, cluster: Cluster
) -> None:
    node = "killed-0"
    uid = uid_of(slurm, node)
    slurm.kube("exec", node, "--container=slurmd", "--", "touch", HELD)
    job = slurm.hold(node)

    slurm.scale("killed", 0)
    with dead(operator, kubectl):  # 1. right after the wish is known
        assert stays(slurm, node, uid)
    wait_for("the drain", lambda: is_draining(slurm, node), PATIENCE)
    with dead(operator, kubectl):  # 2. right after the drain
        assert is_draining(slurm, node)
    wait_for(
        "what it waits for",
        lambda: f"job {job} " in slurm.condition("nodeset", "killed", "Draining")["message"],
        PATIENCE,
    )
    with dead(operator, kubectl):  # 3. while the job runs
        assert slurm.job_state(job) == "RUNNING"
    assert stays(slurm, node, uid)

    released_at = datetime.now(UTC)
    slurm.release(job, node)
    with dead(operator, kubectl):  # 4. right when the job ends
        slurm.wait_job(job, "COMPLETED")
    wait_for("the pod's end to begin", lambda: not stays(slurm, node, uid), PATIENCE)
    assert uid_of(slurm, node) == uid
    with dead(operator, kubectl):  # 5. while the pod ends, and the record is there
        slurm.kube("exec", node, "--container=slurmd", "--", "rm", HELD)
        wait_for("the pod's end", lambda: node not in slurm.slurmd_pods(), PATIENCE)
        assert node in slurm.states()

    wait_gone(slurm, node)
    assert slurm.job_state(job) == "COMPLETED"
    deletions = [one for one in audit.pod_deletions(cluster.paths.audit_log, slurm.namespace) if one.name == node]
    assert deletions
    assert all(one.at > released_at for one in deletions)


def test_a_frozen_leader_writes_nothing_once_another_has_taken_over(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl, cluster: Cluster
) -> None:
    wait_whole(operator)
    name = operator.leader()
    old = operator.pods()[name]
    kubelet = cluster.machine(old["spec"]["nodeName"])
    # It would take the frozen process for dead one day, and end it before it can wake.
    kubelet.send("kubelet", signal.SIGSTOP)
    try:
        processes.send(old, PROCESS, signal.SIGSTOP)
        # Both would do this: the old leader has it in its socket when it wakes.
        slurm.scale("frozen", 2)
        wait_for("another leader", lambda: operator.leader() not in {"", name}, PATIENCE)
    finally:
        processes.send(old, PROCESS, signal.SIGCONT)
        kubelet.send("kubelet", signal.SIGCONT)
    slurm.wait_idle_nodes("frozen-0", "frozen-1")
    wait_for("the old leader's end", lambda: restarts(operator.pods()[name]) > restarts(old), PATIENCE)
    said = kubectl("logs", "--namespace", NAMESPACE, name, "--previous")
    assert "leadership lost" in said

    lease = kubectl.get("lease", RELEASE, "--namespace", NAMESPACE)["spec"]
    acquired_at = datetime.fromisoformat(lease["acquireTime"])
    new = lease["holderIdentity"].split("_")[0]
    all_writes = list(audit.writes(cluster.paths.audit_log))
    assert any(one.pod == name and one.at < acquired_at for one in all_writes), "the old leader never wrote"
    assert [one for one in all_writes if one.pod == name and one.at > acquired_at] == []
    assert any(one.pod == new and one.at > acquired_at and one.resource == "pods" for one in all_writes)


@contextmanager
def without_slurmrestd(slurm: SlurmInKubernetes, operator: Installation) -> Iterator[None]:
    """No slurmrestd."""
    set_replicas(slurm, 0)
    wait_for("slurmrestd gone", lambda: not daemon_pods(slurm, "restapi"), PATIENCE)
    yield
    set_replicas(slurm, 1)


def set_replicas(slurm: SlurmInKubernetes, replicas: int) -> None:
    patch = json.dumps({"spec": {"restapi": {"replicas": replicas}}})
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", f"--patch={patch}")


def daemon_pods(slurm: SlurmInKubernetes, component: str) -> list[str]:
    items = slurm.get("pods", f"--selector=app.kubernetes.io/component={component}")["items"]
    return [pod["metadata"]["name"] for pod in items]


@contextmanager
def without_slurmctld(slurm: SlurmInKubernetes, operator: Installation) -> Iterator[None]:
    """The pod of slurmctld is deleted, and no Node takes another."""
    taint = "tests/no-new-pods=:NoSchedule"
    slurm.kubectl("taint", "nodes", "--all", taint)
    try:
        slurm.kube("delete", "pod", f"{slurm.name}-controller-0", "--wait", timeout=PATIENCE)
        yield
    finally:
        slurm.kubectl("taint", "nodes", "--all", f"{taint}-")


@contextmanager
def with_a_wrong_key(slurm: SlurmInKubernetes, operator: Installation) -> Iterator[None]:
    """The Secret with the key of tokens holds another one, and the copy too; an operator that starts finds it so."""
    secret = f"{slurm.name}-auth-jwt"
    key = slurm.get("secret", secret)["data"]["jwt.key"]
    with dead(operator, slurm.kubectl):
        for name in (secret, f"{slurm.name}-auth-copy"):
            set_key(slurm, name, base64.b64encode(b"garbage " * 4).decode())
    yield
    set_key(slurm, secret, key)


def set_key(slurm: SlurmInKubernetes, secret: str, value: str) -> None:
    slurm.kube("patch", "secret", secret, "--type=merge", f"--patch={json.dumps({'data': {'jwt.key': value}})}")


@dataclass(frozen=True, slots=True)
class Fault:
    """A way to lose sight of Slurm, and the reason that the NodeSet then gives."""

    happens: Callable[[SlurmInKubernetes, Installation], AbstractContextManager[None]]
    reason: str


FAULTS = {
    "restapi": Fault(without_slurmrestd, "SlurmUnreachable"),
    "controller": Fault(without_slurmctld, "ControllerDown"),
    # The last: a slurmctld that is asked to read its configuration again would read that key, too.
    "token": Fault(with_a_wrong_key, "Unauthorized"),
}


@pytest.mark.parametrize("nodeset", FAULTS)
def test_while_slurm_cannot_be_asked_no_pod_is_deleted_and_the_nodeset_says_why(
    slurm: SlurmInKubernetes, operator: Installation, cluster: Cluster, nodeset: str
) -> None:
    fault = FAULTS[nodeset]
    node = f"{nodeset}-0"
    uid = uid_of(slurm, node)
    job = slurm.hold(node)
    slurm.scale(nodeset, 0)
    wait_for("the drain", lambda: is_draining(slurm, node), PATIENCE)
    with fault.happens(slurm, operator):
        # The node is empty from here on, and the operator cannot know.
        slurm.release(job, node)

        def says_why() -> bool:
            found = slurm.condition("nodeset", nodeset, "SlurmReachable")
            degraded = slurm.condition("nodeset", nodeset, "Degraded")["reason"] == fault.reason
            return (found["status"], found["reason"]) == ("False", fault.reason) and found["message"] != "" and degraded

        wait_for(f"conditions with reason {fault.reason}", says_why, PATIENCE)
        assert stays(slurm, node, uid)
        back_at = datetime.now(UTC)
    wait_gone(slurm, node)
    assert slurm.job_state(job) == "COMPLETED"
    deletions = audit.pod_deletions(cluster.paths.audit_log, slurm.namespace)
    assert all(one.at > back_at for one in deletions if one.name == node)
    assert any(one.name == node for one in deletions)
