"""Parsed Clusters and NodeSets, and the messages about those that cannot be parsed."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from slinky_api import labels, v1alpha1
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1 import Cluster, NodeSet, NodeSetStatus
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_api.v1alpha1.common import ApiObject, Condition
from slinky_api.v1alpha1.nodeset.spec import OnTimeout, ScalingMode

ROOT = Path(__file__).parents[3]
KINDS: dict[str, type[ApiObject]] = {resource.kind: model for resource, model in (*v1alpha1.KINDS, *v1alpha1.JOB_KINDS)}
SAMPLES = [
    pytest.param(obj, id=f"{path.relative_to(ROOT / 'config/samples')}:{obj['kind']}")
    for path in sorted((ROOT / "config/samples").rglob("*.yaml"))
    for obj in yaml.safe_load_all(path.read_text())
    if obj["kind"] in KINDS
]


def cluster(name: str = "slurm", **spec: Any) -> Cluster:
    return Cluster.parse({"kind": "Cluster", "metadata": {"name": name, "namespace": "ns"}, "spec": spec})


def nodeset(name: str = "compute", **spec: Any) -> NodeSet:
    metadata = {"name": name, "namespace": "ns"}
    return NodeSet.parse({"kind": "NodeSet", "metadata": metadata, "spec": {"clusterName": "slurm", **spec}})


@pytest.mark.parametrize("obj", SAMPLES)
def test_every_sample_is_read(obj: dict[str, Any]) -> None:
    model = KINDS[obj["kind"]]
    read = model.parse(obj)
    assert read.name == obj["metadata"]["name"]


def test_an_empty_spec_is_a_cluster() -> None:
    read = cluster()
    assert not read.spec.external
    assert read.slurm_name == "ns_slurm"
    assert read.spec.restapi.replicas == 1
    assert read.spec.controller.persistence.size == "4Gi"
    assert read.spec.token_lifetime == timedelta(minutes=15)
    assert read.spec.accounting is None


def test_no_spec_at_all_is_a_cluster_too() -> None:
    assert Cluster.parse({"metadata": {"name": "a"}}).spec == cluster().spec


def test_a_long_namespace_leaves_the_slurm_name_to_the_cluster() -> None:
    read = Cluster.parse({"metadata": {"name": "slurm", "namespace": "n" * 60}, "spec": {}})
    assert read.slurm_name == "slurm"
    assert cluster(clusterName="lab").slurm_name == "lab"


@pytest.mark.parametrize(
    ("given", "name", "key"),
    [
        ("tok", "tok", "auth-token"),
        ({"name": "tok"}, "tok", "auth-token"),
        ({"name": "tok", "key": "k"}, "tok", "k"),
    ],
)
def test_the_token_is_named_as_in_any_release(given: object, name: str, key: str) -> None:
    token = cluster(server="http://a:6820", token={"secretRef": given}).spec.token
    assert token is not None
    assert (token.secret_name, token.secret_key) == (name, key)


@pytest.mark.parametrize("encoded", [False, True])
def test_the_ca_bundle_is_pem_or_base64_of_it(encoded: bool) -> None:
    pem = f"# für den Rechner\n{certificate()}"
    given = base64.b64encode(pem.encode()).decode() if encoded else pem
    found = cluster(server="https://a", token={"secretRef": "t"}, caBundle=given).spec.ca_pem
    assert found == pem.replace("ü", "?")


def certificate(of: str = "test") -> str:
    """One and the same each time for a name: a digest of it may be told, and be written with digits alone."""
    key, now = ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32), datetime(2026, 1, 1, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, of)])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = made.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return dated.sign(key, None).public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    "bundle",
    [
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----\n\xff").decode(),
    ],
)
def test_a_ca_bundle_that_tls_cannot_read_is_refused_by_its_field(bundle: str) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        cluster(server="https://a", token={"secretRef": "t"}, caBundle=bundle)
    assert caught.value.field == "spec.caBundle"


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"server": "a:6820"}, "spec.server", "must be a URL"),
        ({"server": "http://a"}, "spec", "token is required"),
        ({"server": "http://a", "token": {"secretRef": "t"}, "partitions": []}, "spec", "partitions cannot be set"),
        ({"server": "http://a", "token": {"secretRef": "t"}, "extraConf": "A=1"}, "spec", "extraConf cannot be set"),
        ({"token": {"secretRef": "t"}}, "spec", "token requires server"),
        ({"server": "", "token": {"secretRef": "t"}}, "spec", "token requires server"),
        ({"server": "http://a", "token": {"secretRef": ""}}, "spec", "token is required"),
        ({"controller": {"external": {"host": "h"}}}, "spec", "controller.external requires server"),
        ({"server": "http://a", "token": {"secretRef": 5}}, "spec.token.secretRef", "valid dictionary"),
        ({"server": "http://a", "token": {"secretRef": {"key": "k"}}}, "spec.token.secretRef.name", "required"),
        ({"server": "http://a", "token": {"secretRef": "t"}, "caBundle": "x"}, "spec.caBundle", "must be certificates"),
        ({"partitions": [{"name": "p"}, {"name": "default"}]}, "spec.partitions[1].name", "must not be 'default'"),
        ({"partitions": [{"name": "p", "config": "a\nb"}]}, "spec.partitions[0].config", "must be one line"),
        ({"configFiles": {"slurm.conf": ""}}, "spec.configFiles", "use extraConf"),
        ({"accounting": {"database": {"host": "h"}, "external": {"host": "h"}}}, "spec.accounting", "only one of"),
        ({"identity": {"sssd": {"confRef": {"name": "a"}}, "passwd": {"configMapRef": {"name": "b"}}}},
         "spec.identity", "only one"),
        ({"identity": {"homes": {}}}, "spec.identity.homes", "one of claimName and volume"),
        ({"identity": {"homes": {"claimName": "a", "volume": {"emptyDir": {}}}}}, "spec.identity.homes", "one of"),
        ({"identity": {"homes": {"claimName": "a", "mountPath": "home"}}},
         "spec.identity.homes.mountPath", "must be an absolute path"),
        ({"identity": {"homes": {"claimName": "a", "mountPath": "/home/../etc"}}},
         "spec.identity.homes.mountPath", "must be an absolute path"),
        ({"identity": {"homes": {"claimName": "a", "mountPath": "/var/spool/slurmd"}}},
         "spec.identity.homes.mountPath", "must not be in a folder of the system"),
        ({"restapi": {"replicas": -1}}, "spec.restapi.replicas", "greater than or equal to 0"),
        ({"auth": {"tokenLifetime": "soon"}}, "spec.auth.tokenLifetime", "must be a duration"),
    ],
)  # fmt: skip
def test_a_cluster_that_cannot_be_says_where_and_why(spec: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidObjectError, match=reason) as caught:
        cluster(**spec)
    error = caught.value
    assert (error.kind, error.namespace, error.name, error.field) == ("Cluster", "ns", "slurm", field)


def test_minting_from_a_key_needs_no_token() -> None:
    assert cluster(server="http://a", auth={"jwtKeyRef": {"name": "k"}}).spec.external


@pytest.mark.parametrize(
    ("name", "spec", "field", "reason"),
    [
        ("compute", {"replicas": -1}, "spec.replicas", "greater than or equal to 0"),
        ("compute", {"replicas": 70_000}, "spec.replicas", "less than or equal to 65536"),
        ("default", {}, "", "must not be 'default'"),
        ("all", {}, "", "must not be 'default' or 'all'"),
        ("a.b", {}, "", "DNS label"),
        ("a" * 64, {}, "", "at most 57"),
        ("compute", {"clusterName": None}, "spec.clusterName", "valid string"),
        ("compute", {"partition": {"config": "a\nNodeName=x"}}, "spec.partition.config", "must be one line"),
        ("compute", {"features": ["a", "b,c"]}, "spec.features[1]", "one word"),
        ("compute", {"gres": "gpu:1\nb"}, "spec.gres", "must be a list like"),
        ("compute", {"scalingMode": "Deployment"}, "spec.scalingMode", "StatefulSet"),
        ("compute", {"drain": {"onTimeout": "Kill"}}, "spec.drain.onTimeout", "Wait"),
        ("compute", {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x"}}},
         "spec.updateStrategy.rollingUpdate.maxUnavailable", "percentage"),
        ("compute", {"template": "text"}, "spec.template", "valid dictionary"),
    ],
)  # fmt: skip
def test_a_nodeset_that_cannot_be_says_where_and_why(name: str, spec: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidObjectError, match=reason) as caught:
        nodeset(name, **spec)
    error = caught.value
    assert (error.kind, error.namespace, error.name, error.field) == ("NodeSet", "ns", name, field)
    assert str(error).startswith(f"NodeSet ns/{name}: ")


def test_a_name_that_slinkys_crd_took_can_be_read() -> None:
    assert nodeset("a" * 63).name == "a" * 63


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"spec": {"hostname": "debug-"}}},
        {"template": {"metadata": {"labels": {labels.LABEL_NODESET_NAME: "compute"}}}},
        {"selector": {"matchLabels": {labels.LABEL_NODESET_NAME: "compute"}}},
    ],
)
def test_no_number_of_replicas_is_none_in_what_slinky_0_2_and_0_3_wrote(spec: dict[str, Any]) -> None:
    found = nodeset(**spec)
    assert found.spec.counts_from_zero
    assert found.mode is ScalingMode.STATEFUL_SET
    assert nodeset(**spec, scalingMode="DaemonSet").mode is ScalingMode.DAEMON_SET


@pytest.mark.parametrize(
    "template",
    [
        None,
        {},
        {"spec": {"hostname": "slurm-compute-debug"}},
        {"spec": {"hostname": 5}},
        {"spec": "x", "metadata": ["y"]},
        {"metadata": {"labels": "x"}},
    ],
)
def test_no_number_of_replicas_is_one_on_each_node_in_all_else(template: Any) -> None:
    found = nodeset(template=template)
    assert not found.spec.counts_from_zero
    assert found.mode is ScalingMode.DAEMON_SET


def test_all_problems_are_told() -> None:
    with pytest.raises(InvalidObjectError) as caught:
        nodeset(replicas=-1, weight=-1)
    assert [problem.field for problem in caught.value.problems] == ["spec.replicas", "spec.weight"]


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {"name": "a"}, "spec": []}])
def test_rubbish_is_an_invalid_object_and_nothing_else(obj: dict[str, Any]) -> None:
    with pytest.raises(InvalidObjectError):
        NodeSet.parse(obj)


def test_another_kind_is_refused_by_name() -> None:
    with pytest.raises(InvalidObjectError, match=r"is slinky\.slurm\.net/v1alpha1 Cluster, not"):
        NodeSet.parse({"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster", "metadata": {"name": "a"}})
    with pytest.raises(InvalidObjectError, match="v1beta1"):
        NodeSet.parse({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "a"}})


def test_fields_of_a_newer_version_are_ignored() -> None:
    assert nodeset(replicas=2, fromTheFuture={"a": 1}) == nodeset(replicas=2)


def test_fragments_are_kept_as_they_are() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"newField": [1, {"x": None}]}}
    assert nodeset(template=template).spec.template == template
    resources = nodeset(resources={"limits": {"cpu": 0.5}, "claims": [{"name": "gpu"}]}).spec.resources
    assert resources is not None
    assert resources.to_dict() == {"requests": {}, "limits": {"cpu": 0.5}, "claims": [{"name": "gpu"}]}


@pytest.mark.parametrize(
    ("spec", "status", "mode"),
    [
        ({}, {}, ScalingMode.DAEMON_SET),
        ({"replicas": 0}, {}, ScalingMode.STATEFUL_SET),
        ({"replicas": 3}, {}, ScalingMode.STATEFUL_SET),
        ({"replicas": 3, "scalingMode": "DaemonSet"}, {}, ScalingMode.DAEMON_SET),
        ({"scalingMode": "StatefulSet"}, {}, ScalingMode.STATEFUL_SET),
        ({"replicas": 3}, {"scalingMode": "DaemonSet"}, ScalingMode.DAEMON_SET),
        ({}, {"scalingMode": "StatefulSet"}, ScalingMode.STATEFUL_SET),
    ],
)
def test_the_mode_is_what_was_fixed_else_what_is_asked_for(
    spec: dict[str, Any], status: dict[str, Any], mode: ScalingMode
) -> None:
    read = NodeSet.parse({"metadata": {"name": "a"}, "spec": {"clusterName": "c", **spec}, "status": status})
    assert read.mode is mode


def test_defaults_kill_no_job() -> None:
    spec = nodeset().spec
    assert (spec.drain.on_timeout, spec.drain_timeout) == (OnTimeout.WAIT, None)
    assert spec.update_strategy.rolling_update.max_unavailable == 1
    assert spec.persistent_volume_claim_retention_policy.when_scaled == "Retain"
    assert spec.workload_disruption_protection


def test_models_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        nodeset().spec.replicas = 3


def test_counts_stand_under_the_names_of_both_generations() -> None:
    status = NodeSetStatus.counted(
        desired=8, replicas=7, updated=6, ready=5, available=4, misscheduled=3, idle=2, allocated=1, down=9, drain=10
    ).to_dict()
    pairs = {
        "desired": "desiredNumberScheduled",
        "replicas": "currentNumberScheduled",
        "updatedReplicas": "updatedNumberScheduled",
        "readyReplicas": "numberReady",
        "availableReplicas": "numberAvailable",
        "unavailableReplicas": "numberUnavailable",
        "slurmIdle": "numberIdle",
        "slurmAllocated": "numberAllocated",
        "slurmDown": "numberDown",
        "slurmDrain": "numberDrain",
    }
    assert [status[new] for new in pairs] == [status[old] for old in pairs.values()] == [8, 7, 6, 5, 4, 4, 2, 1, 9, 10]
    assert status["numberMisscheduled"] == 3


def test_a_status_is_written_without_nulls_and_read_back() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    status = ClusterStatus(
        is_ready=True, conditions=(Condition(type="Ready", status="True", last_transition_time=now),), last_contact=now
    )
    written = status.to_dict()
    assert written["isReady"] is True
    assert written["lastContact"] == "2026-01-02T03:04:05Z"
    assert written["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert None not in written.values()
    assert ClusterStatus.model_validate(written) == status


def test_texts_that_clients_in_go_leave_empty_are_absent() -> None:
    cluster = Cluster.parse({"metadata": {"name": "a"}, "spec": {"server": "", "token": {"secretRef": ""}}})
    assert (cluster.spec.external, cluster.spec.server, cluster.spec.token) == (False, None, None)
    nodeset = NodeSet.parse({"metadata": {"name": "a"}, "spec": {"clusterName": "a", "serviceName": ""}})
    assert nodeset.spec.service_name is None
