"""The local Kubernetes does what a real one does, on both of its Nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from tests.support.port_forward import port_forward
from tests.support.web import fetch

# The first test pays for the images and the cluster.
pytestmark = [pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.full]
IMAGE = "localhost/slinky/busybox:1"
PATIENCE = 180.0
"""Seconds that anything may take on a machine that is busy with other things."""

WITH_RESOLVER = "localhost/slinky/slurmctld:26.05"
"""An image with glibc's resolver and bash: a static busybox cannot look names up."""
NAMESPACE = "ground"


def pod(name: str, node: str | None, script: str = "sleep 2147483647", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"trap 'exit 0' TERM; {script} & wait"],
        **spec.pop("container", {}),
    }
    placed = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **placed, **spec},
    }


def wait_ready(kubectl: Kubectl, *names: str) -> None:
    pods = (f"pod/{name}" for name in names)
    kubectl("wait", "-n", NAMESPACE, *pods, "--for=condition=Ready", f"--timeout={PATIENCE}s", timeout=2 * PATIENCE)


def ready_nodes(cluster: Cluster) -> list[str]:
    return sorted(cluster.status()["ready"])


@pytest.fixture(autouse=True, scope="module")
def namespace(kubectl: Kubectl) -> Iterator[None]:
    kubectl("create", "namespace", NAMESPACE)
    wait_for(
        "the service account",
        lambda: "default" in kubectl("get", "serviceaccount", "-n", NAMESPACE, "--output=name"),
        timeout=PATIENCE,
    )
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait", timeout=2 * PATIENCE)


def test_both_nodes_are_ready(cluster: Cluster) -> None:
    wait_for("both Nodes", lambda: ready_nodes(cluster) == ["node-1", "node-2"], PATIENCE)


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_exec_and_logs_work(kubectl: Kubectl, node: str) -> None:
    name = f"talk-{node}"
    kubectl.apply([pod(name, node, "echo hello from $HOSTNAME; sleep 2147483647")])
    wait_ready(kubectl, name)
    # It is Ready as soon as it runs, before it has said anything.
    wait_for("its word", lambda: f"hello from {name}" in kubectl("logs", "-n", NAMESPACE, name), PATIENCE)
    assert kubectl("exec", "-n", NAMESPACE, name, "--", "hostname").strip() == name


def test_a_claim_is_bound_and_keeps_its_data_when_the_pod_is_replaced(kubectl: Kubectl) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    mounted = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    kubectl.apply([claim, pod("writer", None, volumes=[volume], container=mounted)])
    wait_ready(kubectl, "writer")
    kubectl("exec", "-n", NAMESPACE, "writer", "--", "sh", "-c", "echo kept > /data/file")
    kubectl("delete", "pod", "-n", NAMESPACE, "writer", "--wait")
    kubectl.apply([pod("reader", None, volumes=[volume], container=mounted)])
    wait_ready(kubectl, "reader")
    assert kubectl("exec", "-n", NAMESPACE, "reader", "--", "cat", "/data/file") == "kept\n"


def test_a_service_name_resolves_and_answers_from_the_other_node(kubectl: Kubectl, cluster: Cluster) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    serve = "mkdir -p /tmp/www; echo page > /tmp/www/index.html; busybox httpd -f -p 80 -h /tmp/www"
    visitor = pod("visitor", "node-2", container={"image": WITH_RESOLVER})
    kubectl.apply([service, pod("web", "node-1", serve), visitor])
    wait_ready(kubectl, "web", "visitor")

    def visited(host: str) -> bool:
        talk = f"exec 3<>/dev/tcp/{host}/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        return kubectl("exec", "-n", NAMESPACE, "visitor", "--", "bash", "-c", talk).endswith("page\n")

    wait_for("the page by its short name", lambda: visited("web"), timeout=PATIENCE)
    wait_for("the page by its full name", lambda: visited(f"web.{NAMESPACE}.svc.{cluster.domain}"), timeout=PATIENCE)
    with port_forward(kubectl, NAMESPACE, "service/web", 80) as port:
        assert fetch(f"http://127.0.0.1:{port}/").body == b"page\n"


def test_a_pod_reaches_the_api_server_with_its_own_token(kubectl: Kubectl) -> None:
    ask = (
        "token=$(cat /var/run/secrets/kubernetes.io/serviceaccount/token);"
        ' until wget -qO- --no-check-certificate --header "Authorization: Bearer $token"'
        " https://$KUBERNETES_SERVICE_HOST/version; do sleep 1; done; sleep 2147483647"
    )
    kubectl.apply([pod("asking", None, ask)])
    wait_for("the answer", lambda: "gitVersion" in kubectl("logs", "-n", NAMESPACE, "asking"), timeout=PATIENCE)


def test_drain_evicts_pods_and_a_budget_holds_them(kubectl: Kubectl) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
    }
    kubectl.apply([pod("evicted", "node-2"), pod("held", "node-2"), budget])
    wait_ready(kubectl, "evicted", "held")
    wait_for(
        "the budget counts",
        lambda: kubectl.get("pdb", "held", "-n", NAMESPACE)["status"].get("currentHealthy") == 1,
        timeout=PATIENCE,
    )
    try:
        with pytest.raises(KubectlFailed, match=r"disruption budget|timed out|timeout"):
            kubectl("drain", "node-2", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10s")
        # What was evicted in that time may still be ending.
        wait_for("the end of the other", lambda: "pod/evicted" not in names(kubectl), PATIENCE)
        assert "pod/held" in names(kubectl)
    finally:
        kubectl("uncordon", "node-2")


def names(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "pods", "-n", NAMESPACE, "--output=name").splitlines()


def test_a_network_policy_is_accepted(kubectl: Kubectl) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "nobody", "namespace": NAMESPACE},
        "spec": {"podSelector": {"matchLabels": {"app": "nobody"}}, "policyTypes": ["Ingress"]},
    }
    kubectl.apply([policy])
    assert kubectl.get("networkpolicy", "nobody", "-n", NAMESPACE)["spec"]["policyTypes"] == ["Ingress"]


def test_a_stopped_kubelet_comes_back_and_its_pods_live_on(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply([pod("survivor", "node-1")])
    wait_ready(kubectl, "survivor")
    before = kubectl.get("pod", "survivor", "-n", NAMESPACE)["status"]["containerStatuses"][0]["containerID"]
    node = cluster.machine("node-1")
    heard = heartbeat(kubectl, "node-1")
    node.stop("kubelet")
    wait_for("the kubelet's end", lambda: not node.services()["kubelet"]["running"], timeout=PATIENCE)
    node.resume("kubelet")
    wait_for(
        "exec through it", lambda: kubectl("exec", "-n", NAMESPACE, "survivor", "--", "true") == "", timeout=PATIENCE
    )
    after = kubectl.get("pod", "survivor", "-n", NAMESPACE)["status"]["containerStatuses"][0]["containerID"]
    assert after == before
    # A kubelet that has just started may call its Node not ready for a moment.
    wait_for("its Node, by its own word", lambda: heartbeat(kubectl, "node-1") not in {"", heard}, PATIENCE)


def heartbeat(kubectl: Kubectl, node: str) -> str:
    """When the kubelet of a Node last said that it is ready; empty if it says that it is not."""
    conditions = kubectl.get("node", node)["status"]["conditions"]
    (said,) = (one for one in conditions if one["type"] == "Ready")
    return str(said["lastHeartbeatTime"]) if said["status"] == "True" else ""


def test_up_again_changes_nothing(cluster: Cluster) -> None:
    wait_for("both Nodes", lambda: ready_nodes(cluster) == ["node-1", "node-2"], PATIENCE)
    pids = {name: cluster.machine(name).pid for name in ("control-plane", "node-1", "node-2")}
    cluster.up(nodes=2, domain=cluster.domain)
    assert {name: cluster.machine(name).pid for name in pids} == pids
