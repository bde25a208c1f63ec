"""Pods that never register, records without a pod, pods without a record: each is repaired or reported."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.installing.operator import CHART, NAMESPACE, RELEASE, Installation
from hack.localkube.kubectl import Kubectl, wait_for
from slinky_api.labels import ANNOTATION_SECRET_SERVER
from slinky_operator.cluster.parts.keys.sets import key_sets
from tests.support import processes
from tests.support.nodesets import uids
from tests.support.pods import restarts
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("impatient"),
    pytest.mark.full,
    pytest.mark.alone,
    pytest.mark.long(250),
]

KEY = "key-of-nodes"
"""Secret with the key of the nodes of Cluster `elsewhere`."""


@pytest.fixture(scope="module")
def impatient(operator: Installation) -> Iterator[Installation]:
    """The operator with as little patience as it can have."""
    have_patience(operator, 30)
    yield operator
    have_patience(operator, 300)


def have_patience(operator: Installation, seconds: int) -> None:
    patience = f"--set=registrationPatience={seconds}"
    operator.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", patience, "--wait", "--timeout=300s")


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, impatient: Installation) -> SlurmInKubernetes:
    """A Cluster."""
    instance = new_slurm("registration")
    instance.create()
    instance.wait_ready()
    return instance


@pytest.fixture
def elsewhere(slurm: SlurmInKubernetes) -> SlurmInKubernetes:
    """The same Slurm as a Cluster that runs elsewhere, for whose nodes the user has given a wrong key."""
    instance = SlurmInKubernetes(slurm.kubectl, slurm.namespace, slurm.slurm, "elsewhere")
    give_key(slurm, base64.b64encode(key_sets.of_one("generated", secrets.token_bytes(128))).decode())
    server = f"http://{slurm.name}-restapi.{slurm.namespace}.svc:6820"
    slurm.kube(
        "annotate", "--overwrite", "secret", f"{slurm.name}-auth-jwt", KEY, f"{ANNOTATION_SECRET_SERVER}={server}"
    )
    host = f"{slurm.name}-controller-0.{slurm.name}-controller.{slurm.namespace}.svc"
    spec = {
        "server": server,
        "auth": {
            "jwtKeyRef": {"name": f"{slurm.name}-auth-jwt", "key": "jwt.key"},
            "slurmKeyRef": {"name": KEY, "key": "slurm.jwks"},
        },
        "controller": {"external": {"host": host}},
    }
    slurm.kubectl.apply([instance.object("Cluster", instance.name, spec)])
    instance.wait_ready()
    return instance


def give_key(slurm: SlurmInKubernetes, key: str) -> None:
    metadata = {"name": KEY, "namespace": slurm.namespace}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"slurm.jwks": key}}])


@contextmanager
def nobody(operator: Installation, kubectl: Kubectl) -> Iterator[None]:
    """No operator."""
    scale(kubectl, 0)
    try:
        wait_for("the operator's end", lambda: not operator.pods(), 180)
        yield
    finally:
        scale(kubectl, operator.replicas)


def scale(kubectl: Kubectl, replicas: int) -> None:
    kubectl("scale", f"deployment/{RELEASE}", "--namespace", NAMESPACE, f"--replicas={replicas}")


def says(slurm: SlurmInKubernetes, name: str, condition: str, reason: str, *words: str) -> bool:
    found = slurm.condition("nodeset", name, condition)
    return found.get("reason") == reason and all(word in found["message"] for word in words)


def is_ready(slurm: SlurmInKubernetes, name: str) -> bool:
    return slurm.condition("nodeset", name, "Ready").get("status") == "True"


def test_slurmds_that_never_register_are_told_and_made_anew_until_what_is_wrong_is_mended(
    slurm: SlurmInKubernetes, elsewhere: SlurmInKubernetes
) -> None:
    elsewhere.nodeset("silent", 2)
    wait_for(
        "what is waited for",
        lambda: says(slurm, "silent", "Progressing", "NotRegistered", "silent-0 has run since", "recreated at"),
        240,
    )
    before = uids(slurm, "silent")
    assert {restarts(pod) for name, pod in slurm.slurmd_pods().items() if name in before} == {0}

    wait_for("one recreated", lambda: not set(before.values()) <= set(uids(slurm, "silent").values()), 240)
    wait_for("the trouble", lambda: says(slurm, "silent", "Degraded", "NotRegistered", "has another key"), 120)
    slurm.wait_event("silent", "PodsRepaired", "(runs since ")
    assert not {"silent-0", "silent-1"} & set(slurm.states())

    give_key(slurm, slurm.get("secret", f"{slurm.name}-auth-slurm")["data"]["slurm.jwks"])
    slurm.wait_idle_nodes("silent-0", "silent-1", timeout=300)
    wait_for("NodeSet ready", lambda: is_ready(slurm, "silent"), 120)
    assert slurm.condition("nodeset", "silent", "Degraded")["status"] == "False"


def test_a_pod_whose_record_is_lost_is_recreated_once_nothing_runs_there(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("lost", 1)
    slurm.wait_idle_nodes("lost-0")
    wait_for("NodeSet ready", lambda: is_ready(slurm, "lost"), 120)
    before = uids(slurm, "lost")
    slurm.control("scontrol", "delete", "nodename=lost-0")

    why = "lost-0: recreated once slurmd has shown for 2 minutes that nothing runs there"
    wait_for("what is reported", lambda: says(slurm, "lost", "Degraded", "NodeUnknown", why), 120)
    wait_for("another pod", lambda: uids(slurm, "lost") not in ({}, before), 360)
    slurm.wait_idle_nodes("lost-0")
    wait_for("NodeSet ready", lambda: is_ready(slurm, "lost"), 120)


def test_a_record_that_we_drained_is_cleared_when_its_pod_has_gone(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl
) -> None:
    slurm.nodeset("left", 1)
    slurm.wait_idle_nodes("left-0")
    with nobody(operator, kubectl):
        slurm.scale("left", 0)
        reason = f"reason=slurm-operator: scale-in ({slurm.namespace}/left)"
        slurm.control("scontrol", "update", "nodename=left-0", "state=DRAIN", reason)
        pod = slurm.slurmd_pods()["left-0"]
        slurm.kube("delete", "pod", "left-0", "--force", "--grace-period=0")
        # As long as its slurmd lives, Slurm takes the node for up again at once.
        wait_for("its slurmd's end", lambda: not processes.of_pod(pod, "slurmd -D"), 120)
        slurm.control("scontrol", "update", "nodename=left-0", "state=DOWN", reason)
        shown = slurm.control("scontrol", "show", "node", "left-0")
        assert "State=DOWN+DRAIN" in shown
    wait_for("the record's end", lambda: "left-0" not in slurm.states(), 240)
