"""What a Cluster says of the Services and the storage of its daemons, in a real Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from hack.localkube.servers.addons import PROVISIONER
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("operator"), pytest.mark.full]


CLAIM = "state-slurm-controller-0"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> Iterator[SlurmInKubernetes]:
    """A Cluster without nodes, whose slurmctld has a claim that may grow."""
    instance = new_slurm("settings")
    storage_class = f"growing-{instance.namespace}"
    growing = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": storage_class},
        "provisioner": PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }
    instance.kubectl.apply([growing])
    instance.create(
        controller={
            "image": instance.image("slurmctld"),
            "service": {"spec": {"type": "NodePort"}},
            "persistence": {"size": "1Gi", "storageClassName": storage_class, "whenDeleted": "Delete"},
        },
        auth={"keysWhenDeleted": "Retain"},
    )
    instance.wait_ready()
    yield instance
    instance.kube("delete", "storageclass", storage_class, "--ignore-not-found")


def change(slurm: SlurmInKubernetes, controller: dict[str, Any]) -> None:
    patch = json.dumps({"spec": {"controller": controller}})
    slurm.kube("patch", "cluster.slinky.slurm.net", slurm.name, "--type=merge", "--patch", patch)


def test_slurmctld_is_reached_by_a_second_service(slurm: SlurmInKubernetes) -> None:
    inside, outside = (slurm.get("service", name)["spec"] for name in ("slurm-controller", "slurm-controller-outside"))
    assert (inside["clusterIP"], outside["type"]) == ("None", "NodePort")
    assert inside["selector"] == outside["selector"]
    host = f"{outside['clusterIP']}/{outside['ports'][0]['port']}"
    connect = ("exec", "slurm-controller-0", "--container=slurmctld", "--", "bash", "-c", f"true < /dev/tcp/{host}")
    # A Service is there some time before kube-proxy leads anybody from its address to a pod.
    wait_for("a connection through the Service", lambda: slurm.kube(*connect) == "", PATIENCE)
    change(slurm, {"service": None})
    wait_for("its end", lambda: "slurm-controller-outside" not in slurm.kube("get", "services"), 120)


def test_a_claim_grows_and_never_shrinks_while_slurmctld_runs_on(slurm: SlurmInKubernetes) -> None:
    def requests() -> str:
        return str(slurm.get("pvc", CLAIM)["spec"]["resources"]["requests"]["storage"])

    def said(condition: str) -> str:
        found = slurm.condition("cluster.slinky.slurm.net", slurm.name, condition)
        return f"{found['status']} {found['reason']}: {found['message']}"

    def uid() -> str:
        return str(slurm.get("pod", "slurm-controller-0")["metadata"]["uid"])

    pod, workload = uid(), slurm.get("statefulset", "slurm-controller")["spec"]
    assert requests() == "1Gi"
    change(slurm, {"persistence": {"size": "2Gi"}})
    # The provisioner here makes no volume larger: it is never there.
    growing = f"True ClaimGrowing: claim {CLAIM} has 1Gi of 2Gi: it waits for the volume plugin"
    wait_for("the larger request", lambda: said("Progressing").startswith(growing), PATIENCE)
    assert requests() == "2Gi"
    change(slurm, {"persistence": {"size": "1Gi", "storageClassName": "other"}})
    shrink, other = f"claim {CLAIM} has 2Gi, and a claim cannot shrink to 1Gi", f"claim {CLAIM} was made with "
    wait_for("the refusal", lambda: shrink in said("Degraded") and other in said("Degraded"), PATIENCE)
    assert "True ClaimRefused: spec.controller.persistence." in said("Degraded")
    assert (requests(), uid()) == ("2Gi", pod)
    assert slurm.get("statefulset", "slurm-controller")["spec"] == workload
    assert slurm.condition("cluster.slinky.slurm.net", slurm.name, "Ready")["status"] == "True"


def test_a_deleted_cluster_takes_with_it_and_leaves_what_its_spec_says(slurm: SlurmInKubernetes) -> None:
    keys = {f"secret/slurm-auth-{what}" for what in ("slurm", "jwt", "copy", "accepted")}
    slurm.kube("delete", "cluster.slinky.slurm.net", slurm.name)
    wait_for("the end of the claim", lambda: not slurm.kube("get", "pvc", "--output=name"), PATIENCE)
    assert set(slurm.kube("get", "secrets", "--output=name").split()) >= keys
