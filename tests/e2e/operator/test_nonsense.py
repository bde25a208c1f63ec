"""Invalid objects are rejected at apply by field, or reported in a condition; nothing else is affected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed, wait_for
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one node, in whose namespace the nonsense is tried."""
    instance = new_slurm("nonsense")
    instance.create()
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


@pytest.fixture(autouse=True)
def _others_are_unaffected(slurm: SlurmInKubernetes) -> Iterator[None]:
    """No pod was replaced or restarted, and a job runs."""
    before = identities(slurm)
    assert len(before) == 3
    yield
    assert identities(slurm) == before
    assert slurm.run("srun", "-p", "compute", "hostname").strip() == "compute-0"
    slurm.wait_ready()
    wait_for(
        "NodeSet compute ready", lambda: slurm.condition("nodeset", "compute", "Ready")["status"] == "True", PATIENCE
    )


def has_reason(slurm: SlurmInKubernetes, kind: str, name: str, condition: str, reason: str, word: str) -> bool:
    found = slurm.condition(kind, name, condition)
    return found.get("reason") == reason and word in found["message"]


@pytest.mark.parametrize(
    ("name", "spec", "field"),
    [
        ("negative", {"replicas": -1}, "spec.replicas"),
        ("no_host", {}, "metadata.name"),
        ("no.host", {}, "metadata.name"),
        ("n" * 60, {}, "metadata.name"),
        ("default", {}, "metadata.name"),
        ("two-lines", {"partition": {"config": "State=UP\nSlurmUser=root"}}, "spec.partition.config"),
        ("another", {"partition": {"config": "PartitionName=compute"}}, "spec.partition.config"),
        ("two-lines-too", {"extraConf": "Weight=1\nNodeName=x"}, "spec.extraConf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_nodeset_of_nonsense_is_refused_at_apply_by_the_name_of_its_field(
    slurm: SlurmInKubernetes, name: str, spec: dict[str, Any], field: str
) -> None:
    body = {"clusterName": slurm.name, "replicas": 1, **spec}
    with pytest.raises(KubectlFailed) as failed:
        slurm.kubectl.apply([slurm.object("NodeSet", name, body)])
    assert field in failed.value.stderr


def test_scaling_below_zero_is_refused(slurm: SlurmInKubernetes) -> None:
    with pytest.raises(KubectlFailed) as failed:
        slurm.kube("patch", "nodeset", "compute", "--type=merge", '--patch={"spec":{"replicas":-1}}')
    assert "spec.replicas" in failed.value.stderr


def test_a_nodeset_of_no_cluster_says_so(slurm: SlurmInKubernetes) -> None:
    slurm.kubectl.apply([slurm.object("NodeSet", "lonely", {"clusterName": "nowhere", "replicas": 1})])
    try:
        wait_for(
            "the condition",
            lambda: has_reason(slurm, "nodeset", "lonely", "Degraded", "ClusterNotFound", "nowhere"),
            PATIENCE,
        )
        assert slurm.condition("nodeset", "lonely", "Ready")["status"] == "False"
    finally:
        slurm.kube("delete", "nodeset", "lonely", "--wait", timeout=PATIENCE)


def test_an_external_cluster_without_its_token_says_so_until_the_token_is_there(slurm: SlurmInKubernetes) -> None:
    server = f"http://{slurm.name}-restapi.{slurm.namespace}.svc:6820"
    spec = {"server": server, "token": {"secretRef": "missing"}}
    slurm.kubectl.apply([slurm.object("Cluster", "elsewhere", spec)])
    try:
        wait_for(
            "the condition",
            lambda: has_reason(slurm, "cluster", "elsewhere", "TokenValid", "SecretNotFound", "missing"),
            PATIENCE,
        )
        assert slurm.get("cluster", "elsewhere")["status"]["isReady"] is False
        secret = ("secret", "generic", "missing", "--from-literal")
        slurm.kube("create", *secret, "key=of-another-name")
        wait_for(
            "the condition",
            lambda: has_reason(slurm, "cluster", "elsewhere", "TokenValid", "SecretKeyNotFound", "auth-token"),
            PATIENCE,
        )
        slurm.kube("delete", "secret", "missing")
        slurm.kube("create", *secret, "auth-token=of no use")
        wait_for(
            "the condition",
            lambda: has_reason(slurm, "cluster", "elsewhere", "TokenValid", "SecretInvalid", "missing"),
            PATIENCE,
        )
        token = slurm.control("scontrol", "token", "username=slurm", "lifespan=600").strip().partition("=")[2]
        slurm.kube("delete", "secret", "missing")
        slurm.kube("create", *secret, f"auth-token={token}")
        wait_for("its use", lambda: slurm.get("cluster", "elsewhere")["status"].get("isReady") is True, PATIENCE)
    finally:
        slurm.kube("delete", "cluster", "elsewhere", "--wait", timeout=PATIENCE)


def test_a_nodeset_named_like_another_ones_node_is_left_out_with_a_word_about_its_name(
    slurm: SlurmInKubernetes,
) -> None:
    """Slurm refuses a configuration in which a node is named like a NodeSet."""
    slurm.nodeset("compute-0", 1)
    try:
        wait_for(
            "the condition of the Cluster",
            lambda: "NodeSet compute-0: metadata.name" in applied(slurm),
            PATIENCE,
        )
        wait_for(
            "the Event of the NodeSet",
            lambda: any(one.startswith("ConfigRefused: metadata.name") for one in slurm.events("compute-0")),
            PATIENCE,
        )
        wait_for(
            "the condition of the NodeSet",
            lambda: slurm.condition("nodeset", "compute-0", "Progressing").get("reason") == "NotInConfig",
            PATIENCE,
        )
        assert set(slurm.slurmd_pods()) == {"compute-0"}
    finally:
        slurm.kube("delete", "nodeset", "compute-0", "--wait", timeout=PATIENCE)


def applied(slurm: SlurmInKubernetes) -> str:
    return str(slurm.condition("cluster", slurm.name, "ConfigApplied").get("message", ""))
